//! Columns for people.

use std::fmt;

/// What stands between two columns.
const GAP: &str = "  ";

/// Rows below a heading, each column as wide as its widest word.
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    pub(crate) fn new(heading: &[&str]) -> Self {
        Self { rows: vec![heading.iter().map(|word| (*word).to_owned()).collect()] }
    }

    /// Adds a row, which has as many columns as the heading.
    pub(crate) fn push(&mut self, row: Vec<String>) {
        assert_eq!(Some(row.len()), self.rows.first().map(Vec::len), "every column has a heading");
        self.rows.push(row);
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = |column: usize| {
            let words = self.rows.iter().filter_map(|row| row.get(column));
            words.map(|word| word.chars().count()).max().unwrap_or(0)
        };
        for row in &self.rows {
            let cells = row.iter().enumerate();
            let line: Vec<String> = cells
                .map(|(column, word)| format!("{word:<width$}", width = width(column)))
                .collect();
            writeln!(f, "{}", line.join(GAP).trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_word() {
        let mut table = Table::new(&["NAME", "ITEMS"]);
        assert_eq!(table.to_string(), "NAME  ITEMS\n");
        for (name, items) in [("orders", "7"), ("\u{fc}", "12345678")] {
            table.push(vec![name.to_owned(), items.to_owned()]);
        }
        assert_eq!(table.to_string(), "NAME    ITEMS\norders  7\n\u{fc}       12345678\n");
    }
}
