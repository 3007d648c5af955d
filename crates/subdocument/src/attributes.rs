//! The extended attributes of a document that is being changed. Source:
//! docs/specification/protocol.md, section 13.1.

use std::ops::Range;

use document::placeholders::Placeholders;
use document::xattr;

use crate::edit::{Edit, edit};
use crate::failure::Failure;
use crate::macros::resolve_marks;
use crate::path::{Name, Path};

/// How an attribute's value looks as the only entry of an object, which paths that begin with the
/// attribute's key can be followed through. The key itself may have letters that JSON has not.
const BEFORE_VALUE: &[u8] = b"{\"x\":";
const AFTER_VALUE: &[u8] = b"}";
const NO_VALUE: &[u8] = b"{}";
/// Bytes of a section's length word.
const SECTION_HEAD_SIZE: usize = 4;
/// The name there.
pub(crate) const STAND_IN: Name<'_> = Name::plain(b"x");

/// The entries of a section, without its length word.
#[derive(Clone, Debug, Default)]
pub(crate) struct Attributes(Vec<u8>);

impl Attributes {
    /// Those of a section, whose length word is left out. A malformed entry and all behind it
    /// are none: nothing that is put there would be found.
    pub(crate) fn of(section: &[u8]) -> Self {
        let size = xattr::entries(section).map(|entry| entry.size).sum();
        Self(section.get(..size).unwrap_or_default().to_vec())
    }

    /// The entries as they are stored.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The value of an attribute.
    pub(crate) fn get(&self, key: &[u8]) -> Option<&[u8]> {
        value_of(&self.0, key)
    }

    /// Gives an attribute a value: in place, or behind all others if it is new.
    pub(crate) fn set(&mut self, key: &[u8], value: &[u8]) {
        let size = key.len() + value.len() + 2;
        let size = u32::try_from(size).expect("an attribute is part of a request of 30 MiB");
        let entry = [&size.to_be_bytes()[..], key, &[0], value, &[0]].concat();
        let place = self.place(key).unwrap_or(self.0.len()..self.0.len());
        self.0.splice(place, entry);
    }

    /// Takes an attribute away.
    pub(crate) fn remove(&mut self, key: &[u8]) {
        if let Some(place) = self.place(key) {
            self.0.drain(place);
        }
    }

    /// Takes all attributes away but those of the system.
    pub(crate) fn keep_those_of_system(&mut self) {
        let mut kept = Vec::new();
        let mut at = 0;
        for entry in xattr::entries(&self.0) {
            let end = at + entry.size;
            if entry.key.starts_with(b"_") {
                kept.extend_from_slice(self.0.get(at..end).unwrap_or_default());
            }
            at = end;
        }
        self.0 = kept;
    }

    /// Bytes of the entries of users and of those of the system.
    pub(crate) fn sizes(&self) -> (usize, usize) {
        xattr::entries(&self.0).fold((0, 0), |(user, system), entry| {
            if entry.key.starts_with(b"_") {
                (user, system + entry.size)
            } else {
                (user + entry.size, system)
            }
        })
    }

    /// Carries out an edit whose path begins with [`STAND_IN`] in place of `key`, or changes
    /// nothing.
    pub(crate) fn edit(&mut self, key: &[u8], change: &Edit<'_>) -> Result<Option<i64>, Failure> {
        let mut text = match self.get(key) {
            Some(value) => [BEFORE_VALUE, value, AFTER_VALUE].concat(),
            None => NO_VALUE.to_vec(),
        };
        let number = edit(&mut text, change)?;
        if is_empty_object(&text) {
            self.remove(key);
            return Ok(number);
        }
        let value = text.strip_prefix(BEFORE_VALUE);
        let value = value.and_then(|text| text.strip_suffix(AFTER_VALUE));
        // Only around a value that was no JSON is anything else changed.
        self.set(key, value.ok_or(Failure::NotJson)?);
        Ok(number)
    }

    /// Writes what the marks of macros stand for, given the body, and tells where CAS and seqno
    /// belong in the value that [`Attributes::with_body`] makes.
    pub(crate) fn resolve_marks(&mut self, body: &[u8]) -> Placeholders {
        resolve_marks(&mut self.0, body).moved_by(SECTION_HEAD_SIZE)
    }

    /// The value of a document: length word, entries and body.
    pub(crate) fn with_body(&self, body: &[u8]) -> Vec<u8> {
        let size = u32::try_from(self.0.len()).expect("attributes are part of a value of 21 MiB");
        [&size.to_be_bytes()[..], &self.0, body].concat()
    }

    fn place(&self, key: &[u8]) -> Option<Range<usize>> {
        let mut at = 0;
        for entry in xattr::entries(&self.0) {
            if entry.key == key {
                return Some(at..at + entry.size);
            }
            at += entry.size;
        }
        None
    }
}

/// Whether nothing is left in the object but blanks, which may have stood behind a value.
fn is_empty_object(text: &[u8]) -> bool {
    let inner = text.strip_prefix(b"{").and_then(|text| text.strip_suffix(b"}"));
    inner.is_some_and(|inner| inner.trim_ascii().is_empty())
}

/// The value of an attribute in a section, whose length word is left out.
pub(crate) fn value_of<'s>(section: &'s [u8], key: &[u8]) -> Option<&'s [u8]> {
    xattr::entries(section).find(|entry| entry.key == key).map(|entry| entry.value)
}

/// The path of an attribute as [`Attributes::edit`] needs it, given what is behind the key.
pub(crate) fn path_below_key(rest: &[u8]) -> Result<Path<'_>, Failure> {
    Path::below(STAND_IN, rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Command;

    fn shown(attributes: &Attributes) -> Vec<(&str, &str)> {
        let text = |bytes| std::str::from_utf8(bytes).unwrap();
        let entries = xattr::entries(attributes.bytes());
        entries.map(|entry| (text(entry.key), text(entry.value))).collect()
    }

    #[test]
    fn attributes_come_change_and_go() {
        let mut attributes = Attributes::default();
        attributes.set(b"a", b"1");
        attributes.set(b"_b", b"{}");
        attributes.set(b"c", b"[]");
        attributes.set(b"a", b"\"longer\"");
        assert_eq!(shown(&attributes), [("a", "\"longer\""), ("_b", "{}"), ("c", "[]")]);
        assert_eq!(attributes.sizes(), (4 + 11 + 4 + 5, 4 + 6));
        attributes.remove(b"a");
        attributes.remove(b"x");
        assert_eq!(shown(&attributes), [("_b", "{}"), ("c", "[]")]);
        attributes.keep_those_of_system();
        assert_eq!(shown(&attributes), [("_b", "{}")]);
        assert_eq!(attributes.get(b"_b"), Some(&b"{}"[..]));
        assert_eq!(attributes.get(b"b"), None);
    }

    #[test]
    fn a_value_that_is_no_json_stays() {
        let mut attributes = Attributes::default();
        attributes.set(b"a", b"[7");
        let path = path_below_key(b"").unwrap();
        let (command, value) = (Command::Replace, &b"1"[..]);
        let change = Edit { command, path: &path, value, is_mark: false, creates_parents: false };
        assert_eq!(attributes.edit(b"a", &change), Err(Failure::NotJson));
        assert_eq!(shown(&attributes), [("a", "[7")]);
    }

    #[test]
    fn what_is_malformed_is_dropped() {
        let mut attributes = Attributes::of(b"\0\0\0\x04a\x001\0\0\0\0\x09b\x001\0");
        assert_eq!(shown(&attributes), [("a", "1")]);
        attributes.set(b"c", b"2");
        assert_eq!(shown(&attributes), [("a", "1"), ("c", "2")]);
    }

    #[test]
    fn paths_begin_with_the_key() {
        let mut attributes = Attributes::default();
        let mut change = |command, rest: &[u8], value: &[u8], creates_parents| {
            let path = path_below_key(rest)?;
            let change = Edit { command, path: &path, value, is_mark: false, creates_parents };
            attributes.edit(b"k\"", &change).map(|number| {
                let value = attributes.get(b"k\"");
                (number, value.map(|value| String::from_utf8(value.to_vec()).unwrap()))
            })
        };
        let is = |text: &str| Ok((None, Some(text.to_owned())));
        assert_eq!(change(Command::DictAdd, b".a", b"1", false), Err(Failure::PathNotFound));
        assert_eq!(change(Command::DictAdd, b".a", b"1", true), is("{\"a\":1}"));
        assert_eq!(change(Command::DictAdd, b"", b"1", false), Err(Failure::PathExists));
        assert_eq!(change(Command::Delete, b".a", b"", false), is("{}"));
        assert_eq!(change(Command::DictUpsert, b"", b" [1]", false), is(" [1]"));
        assert_eq!(change(Command::ArrayPushLast, b"", b"2", false), is(" [1,2]"));
        assert_eq!(change(Command::Replace, b"[0]", b"0", false), is(" [0,2]"));
        assert_eq!(change(Command::Delete, b"", b"", false), Ok((None, None)));
        assert_eq!(change(Command::DictUpsert, b"", b" 1\n", false), is(" 1\n"));
        assert_eq!(change(Command::Delete, b"", b"", false), Ok((None, None)));
        let counted = Ok((Some(5), Some("5".to_owned())));
        assert_eq!(change(Command::Counter, b"", b"5", false), counted);
        assert_eq!(change(Command::Replace, b".x", b"5", false), Err(Failure::PathMismatch));
    }
}
