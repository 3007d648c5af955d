//! The opcodes of COMPAT.md against the table of `protocol`.

use std::collections::BTreeSet;

/// A row of either table: the number as `0x1f`, and the name.
type Opcode = (String, String);

/// Complaints about opcodes that only one of the two names.
pub(super) fn check(code: &str, document: &str) -> Vec<String> {
    let in_code: BTreeSet<Opcode> = code.lines().filter_map(code_row).collect();
    let in_document: BTreeSet<Opcode> = document.lines().filter_map(document_row).collect();
    let mut complaints = Vec::new();
    if in_code.is_empty() {
        complaints.push("crates/protocol: no opcode table found".to_owned());
    }
    for (number, name) in in_code.difference(&in_document) {
        complaints.push(format!("COMPAT.md: no row for opcode {number} {name}"));
    }
    for (number, name) in in_document.difference(&in_code) {
        complaints.push(format!("COMPAT.md: `protocol` knows no opcode {number} {name}"));
    }
    complaints
}

/// From `0x00 Get "GET" ...`.
fn code_row(line: &str) -> Option<Opcode> {
    let (number, rest) = line.trim().split_once(' ')?;
    let name = rest.split('"').nth(1)?;
    Some((opcode_number(number)?, name.to_owned()))
}

/// From `` | `0x00` | `GET` | ... ``.
fn document_row(line: &str) -> Option<Opcode> {
    let mut cells = line.trim().strip_prefix('|')?.split('|');
    let mut cell = || cells.next().map(|cell| cell.trim().trim_matches('`').to_owned());
    Some((opcode_number(&cell()?)?, cell()?))
}

/// Two hexadecimal digits; wider numbers are feature bits and statuses.
fn opcode_number(text: &str) -> Option<String> {
    let digits = text.strip_prefix("0x")?;
    let is_opcode = digits.len() == 2 && u8::from_str_radix(digits, 16).is_ok();
    is_opcode.then(|| text.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: &str = "opcodes! {\n    0x00 Get \"GET\" Core [ro] DOCUMENT;\n    \
        0xb7 SeqnoPersistence \"SEQNO_PERSISTENCE\" Ext [] VBUCKET;\n}\n";
    const DOCUMENT: &str = "| Opcode | Name | |\n|---|---|---|\n| `0x00` | `GET` | yes |\n\
        | 0xB7 | SEQNO_PERSISTENCE | yes |\n| 0x0001 | a feature bit | yes |\n";

    #[test]
    fn equal_tables_agree() {
        assert!(check(CODE, DOCUMENT).is_empty());
    }

    #[test]
    fn what_only_one_side_has_is_named() {
        let missing = DOCUMENT.replace("| 0xB7 | SEQNO_PERSISTENCE | yes |\n", "");
        assert_eq!(check(CODE, &missing).len(), 1);
        let added = format!("{DOCUMENT}| 0x77 | NEW | no |\n");
        assert_eq!(check(CODE, &added).len(), 1);
        let renamed = DOCUMENT.replace("GET", "GOT");
        assert_eq!(check(CODE, &renamed).len(), 2);
    }

    #[test]
    fn a_table_that_cannot_be_found_is_a_complaint() {
        assert!(!check("", "").is_empty());
    }
}
