//! A line of a case: a verb, words and fields.

use crate::notation::{bytes_of, number_of};

/// A line, taken apart: `verb word name=value`, in any order behind the verb.
#[derive(Clone, Debug)]
pub struct Line<'a> {
    /// All of it.
    pub text: &'a str,
    /// What is to happen.
    pub verb: &'a str,
    /// What has no name, in order.
    pub words: Vec<&'a str>,
    /// What has one, in order.
    pub fields: Vec<(&'a str, &'a str)>,
}

impl<'a> Line<'a> {
    /// Takes a line apart at its spaces. Those between quotation marks stay.
    pub fn parse(text: &'a str) -> Self {
        let mut parts = split(text, ' ').into_iter().filter(|part| !part.is_empty());
        let verb = parts.next().unwrap_or_default();
        let (mut words, mut fields) = (Vec::new(), Vec::new());
        for part in parts {
            match part.split_once('=') {
                Some((name, value)) if !name.contains('"') => fields.push((name, value)),
                _ => words.push(part),
            }
        }
        Self { text, verb, words, fields }
    }

    /// What stands behind the verb, spaces and all.
    pub fn rest(&self) -> &'a str {
        self.text.strip_prefix(self.verb).unwrap_or_default().trim_start()
    }

    /// The word at `index`, counted from 0.
    pub fn word(&self, index: usize) -> &'a str {
        self.words.get(index).unwrap_or_else(|| panic!("`{}` lacks a word", self.text))
    }

    /// The number at `index` among the words.
    pub fn number(&self, index: usize) -> u64 {
        number_of(self.word(index))
    }

    /// The field of a name, as it is written.
    pub fn field(&self, name: &str) -> Option<&'a str> {
        self.fields.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }

    /// The number in a field.
    pub fn number_in(&self, name: &str) -> Option<u64> {
        self.field(name).map(number_of)
    }

    /// The bytes in a field; none without one.
    pub fn bytes_in(&self, name: &str) -> Vec<u8> {
        self.field(name).map(bytes_of).unwrap_or_default()
    }

    /// Panics unless all fields are among `names`: a misspelt one is no silent default.
    pub fn allow(&self, names: &[&str]) {
        for (name, _) in &self.fields {
            assert!(names.contains(name), "`{}`: there is no field `{name}`", self.text);
        }
    }
}

/// The parts of `text` between separators that stand outside of quotation marks.
pub(crate) fn split(text: &str, separator: char) -> Vec<&str> {
    let (mut parts, mut start) = (Vec::new(), 0);
    let (mut is_quoted, mut is_escaped) = (false, false);
    for (at, character) in text.char_indices() {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            _ if character == separator && !is_quoted => {
                parts.push(&text[start..at]);
                start = at + separator.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_taken_apart_but_not_within_quotation_marks() {
        let line = Line::parse(r#"send SET  key="a b" value="c=\"d e" 7"#);
        assert_eq!((line.verb, &line.words[..]), ("send", &["SET", "7"][..]));
        assert_eq!(line.bytes_in("key"), b"a b");
        assert_eq!(line.bytes_in("value"), b"c=\"d e");
        assert_eq!(line.bytes_in("extras"), b"");
        assert_eq!((line.number(1), line.number_in("cas")), (7, None));
        assert_eq!(Line::parse("bytes \"x=y\" 00").words, ["\"x=y\"", "00"]);
        assert_eq!(line.rest(), r#"SET  key="a b" value="c=\"d e" 7"#);
    }
}
