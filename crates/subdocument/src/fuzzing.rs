//! Entrances for the fuzzers: any bytes, no panic, and the outcome of a plain model.

mod model;

use std::hint::black_box;

use document::{Cas, Datatype, Seqno, xattr};

use crate::command::Command;
use crate::edit::{Edit, edit};
use crate::failure::Failure;
use crate::find::{count_at, value_at};
use crate::flags::DocumentFlags;
use crate::json::{one_value, values};
use crate::lookup::LookupRequest;
use crate::mutation::{MutationRequest, Storing};
use crate::path::Path;
use crate::request::{ClientRights, RawSpec, RequestForm, RequestHead, Specs};
use crate::scan::DEPTH_MAX;
use crate::stored::{ClockFacts, DocumentFacts, StoredDocument};

use model::{Model, Tree};

/// What a command on a path made: the piece of text that it found, the number that it counted, or
/// the text that it changed.
#[derive(Debug, PartialEq, Eq)]
enum Made {
    Found(Tree),
    Number(usize),
    Text(Tree),
}

/// One command on one document, compared with the model: opcode, whether parents are made, path, 0,
/// value, 0, document.
pub fn path_command(bytes: &[u8]) {
    let [opcode, creates, rest @ ..] = bytes else { return };
    let mut parts = rest.splitn(3, |&byte| byte == 0);
    let mut part = || parts.next().unwrap_or_default();
    let (path, value, text) = (part(), part(), part());
    one_json(value);
    one_json(text);
    if let Some(command) = Command::from_opcode(*opcode) {
        black_box(compare(command, creates & 1 == 1, path, value, text));
    }
}

/// A multi request on one document: first byte, document flags, datatype, size of the stored value
/// in two bytes, the value, and what is repeated: opcode, path flags, path, 0, value, 0.
pub fn multi_request(bytes: &[u8]) {
    let [shape, flags, datatype, high, low, rest @ ..] = bytes else { return };
    let size = usize::from(u16::from_be_bytes([*high, *low]));
    let (value, mut rest) = rest.split_at(size.min(rest.len()));
    let mut specs = Specs::new();
    while let [opcode, path_flags, behind @ ..] = rest {
        let mut parts = behind.splitn(3, |&byte| byte == 0);
        let mut part = || parts.next().unwrap_or_default();
        let (path, value) = (part(), part());
        rest = part();
        let raw = RawSpec { opcode: *opcode, path_flags: *path_flags, path, value };
        if specs.push(raw).is_err() {
            break;
        }
    }
    let form = if shape & 1 == 0 { RequestForm::Multi } else { RequestForm::Single };
    let head = RequestHead { form, flags: DocumentFlags::from_bits(*flags), cas: Cas::ANY };
    let stored = StoredDocument {
        value,
        datatype: Datatype::from_bits(*datatype & 5).unwrap_or_default(),
        facts: DocumentFacts { is_deleted: shape & 2 != 0, ..DocumentFacts::default() },
    };
    let stored = (shape & 4 == 0).then_some(&stored);
    look_up(head, &specs, stored);
    mutate(head, &specs, stored);
}

const RIGHTS: ClientRights = ClientRights {
    has_attributes: true,
    has_binary_attributes: true,
    reads_system_attributes: true,
    writes_system_attributes: true,
};

fn look_up(head: RequestHead, specs: &Specs<'_>, stored: Option<&StoredDocument<'_>>) {
    let Ok(request) = LookupRequest::new(head, specs, RIGHTS) else { return };
    if let Ok(results) = request.look_up(stored, ClockFacts::default()) {
        assert_eq!(results.count(), specs.as_slice().len(), "each path has a result");
    }
}

fn mutate(head: RequestHead, specs: &Specs<'_>, stored: Option<&StoredDocument<'_>>) {
    let Ok(request) = MutationRequest::new(head, specs, RIGHTS) else { return };
    let Ok(mut mutated) = request.mutate(stored) else { return };
    mutated.placeholders.fill(&mut mutated.value, Cas(1), Seqno(2));
    let mut body = &mutated.value[..];
    if mutated.datatype.contains(Datatype::XATTR) {
        let (section, rest) = xattr::split(body).expect("the value has a section");
        let entries = section.get(4..).unwrap_or_default();
        let size: usize = xattr::entries(entries).map(|entry| entry.size).sum();
        assert!(size > 0, "a section is not empty");
        assert_eq!(size, entries.len(), "a section can be read");
        body = rest;
    }
    assert!(!mutated.is_deleted || body.is_empty(), "a tombstone has no body");
    assert!(!mutated.is_deleted || mutated.storing != Storing::Revive, "what is revived lives");
    let was_json = stored.is_none_or(|stored| {
        let is_marked = stored.datatype.contains(Datatype::JSON);
        !is_marked || document::datatype::is_json(stored.parts().1)
    });
    if was_json && mutated.datatype.contains(Datatype::JSON) {
        assert!(document::datatype::is_json(body), "what is marked as JSON is JSON");
    }
}

/// Compares what two judges say of a text: ours and serde's.
fn one_json(text: &[u8]) {
    let is_json = document::datatype::is_json(text);
    match one_value(text) {
        Ok(_) => assert!(is_json, "only JSON is taken for JSON"),
        Err(Failure::ValueTooDeep) => assert!(brackets(text) > DEPTH_MAX, "it is nested deeply"),
        Err(_) => assert!(!is_json, "JSON is taken for JSON"),
    }
    black_box(values(text).is_ok());
}

/// Compares what a command makes with what the model makes, where the document is one that the
/// server could have. Tells whether both make something; `None` if there was nothing to compare.
fn compare(
    command: Command,
    creates_parents: bool,
    path: &[u8],
    value: &[u8],
    text: &[u8],
) -> Option<bool> {
    let made = carry_out(command, creates_parents, path, value, text)?;
    let Ok(parsed) = Path::parse(path) else {
        assert!(made.is_err(), "a malformed path leads nowhere");
        return None;
    };
    let tree = document::datatype::is_json(text).then(|| Tree::parse(text));
    let tree = tree.filter(|tree| tree.depth() <= DEPTH_MAX)?;
    let model = Model { command, creates_parents, path: parsed.components(), value };
    let expected = model.carry_out(tree);
    if made == Err(Failure::ValueTooDeep) && brackets(value) > DEPTH_MAX {
        // The model reads to the end before it measures.
        return None;
    }
    let shown = |bytes| String::from_utf8_lossy(bytes).into_owned();
    let inputs = (command, creates_parents, shown(path), shown(value), shown(text));
    assert_eq!(made, expected, "{inputs:?}");
    Some(made.is_ok())
}

/// What our side makes; `None` of commands that are not about paths.
fn carry_out(
    command: Command,
    creates_parents: bool,
    path: &[u8],
    value: &[u8],
    text: &[u8],
) -> Option<Result<Made, Failure>> {
    let path = match Path::parse(path) {
        Ok(path) => path,
        Err(failure) => return Some(Err(failure)),
    };
    let components = path.components();
    let is_json = document::datatype::is_json(text);
    Some(match command {
        Command::GetBody | Command::SetBody | Command::DeleteBody => return None,
        Command::ReplaceBodyWithXattr => return None,
        Command::Get | Command::Exists => value_at(text, components)
            .map(|found| Made::Found(if is_json { Tree::parse(found) } else { Tree::default() })),
        Command::GetCount => count_at(text, components).map(Made::Number),
        _ => {
            let mut changed = text.to_vec();
            let change = Edit { command, path: &path, value, is_mark: false, creates_parents };
            let outcome = edit(&mut changed, &change);
            assert!(outcome.is_ok() || changed == text, "a failure changes nothing");
            assert!(
                !is_json || document::datatype::is_json(&changed),
                "JSON stays JSON: {}",
                String::from_utf8_lossy(&changed)
            );
            let tree = || if is_json { Tree::parse(&changed) } else { Tree::default() };
            outcome.map(|_| Made::Text(tree()))
        }
    })
}

fn brackets(text: &[u8]) -> usize {
    text.iter().filter(|byte| matches!(byte, b'[' | b'{')).count()
}

#[cfg(test)]
mod tests;
