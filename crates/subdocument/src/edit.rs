//! Changing JSON text at a path: a piece is cut out and another put in, all else stays as it is,
//! white space included. Source: docs/specification/protocol.md, section 12.7.

use std::ops::Range;

use crate::command::Command;
use crate::entries::{Entries, EntryHead};
use crate::failure::Failure;
use crate::find::{Gap, Location, find, part};
use crate::json::{Values, one_value, values};
use crate::path::{Component, Path};
use crate::scan::{DEPTH_MAX, skip_space};

/// A change of a text.
#[derive(Debug)]
pub(crate) struct Edit<'a> {
    pub(crate) command: Command,
    pub(crate) path: &'a Path<'a>,
    /// What is put in, in the form that the command needs.
    pub(crate) value: &'a [u8],
    /// Whether the value is a mark of a macro: it will be a string, and is none yet.
    pub(crate) is_mark: bool,
    /// Whether objects that are missing on the way are made.
    pub(crate) creates_parents: bool,
}

const MARK: Values = Values { depth: 0, count: 1 };

/// What is cut out, and what is put in there.
#[derive(Debug)]
struct Splice {
    range: Range<usize>,
    text: Vec<u8>,
}

/// Carries out the edit, or changes nothing. Of a counter it tells the new number.
pub(crate) fn edit(text: &mut Vec<u8>, edit: &Edit<'_>) -> Result<Option<i64>, Failure> {
    let splice = match edit.command {
        Command::DictAdd | Command::DictUpsert => put_in_object(text, edit)?,
        Command::Delete => delete(text, edit.path)?,
        Command::Replace => replace(text, edit)?,
        Command::ArrayPushLast | Command::ArrayPushFirst => push(text, edit)?,
        Command::ArrayInsert => insert_in_array(text, edit)?,
        Command::ArrayAddUnique => add_unique(text, edit)?,
        Command::Counter => {
            let (splice, number) = count(text, edit)?;
            splice.apply(text);
            return Ok(Some(number));
        }
        other => unreachable!("{other:?} is no change of a text"),
    };
    splice.apply(text);
    Ok(None)
}

impl Edit<'_> {
    /// What is known of the value, which must be one.
    fn one_value(&self) -> Result<Values, Failure> {
        if self.is_mark { Ok(MARK) } else { one_value(self.value) }
    }

    /// What is known of the values.
    fn values(&self) -> Result<Values, Failure> {
        if self.is_mark { Ok(MARK) } else { values(self.value) }
    }
}

impl Splice {
    fn insertion(at: usize, text: Vec<u8>) -> Self {
        Self { range: at..at, text }
    }

    fn apply(self, text: &mut Vec<u8>) {
        let Range { start, end } = self.range;
        assert!(start <= end && end <= text.len(), "what is cut out lies in the text");
        let size = text.len();
        let new_end = start + self.text.len();
        text.resize(size.max(size - end + new_end), 0);
        text.copy_within(end..size, new_end);
        text.truncate(size - end + new_end);
        text.get_mut(start..new_end).expect("there is room now").copy_from_slice(&self.text);
    }
}

fn put_in_object(text: &[u8], edit: &Edit<'_>) -> Result<Splice, Failure> {
    if !matches!(edit.path.last(), Some(Component::Name(_))) {
        return Err(Failure::PathInvalid);
    }
    let depth = edit.one_value()?.depth;
    match find(text, edit.path.components())? {
        Location::There(_) if edit.command == Command::DictAdd => Err(Failure::PathExists),
        Location::There(target) => {
            check_depth(edit.path, depth)?;
            Ok(Splice { range: target.value, text: edit.value.to_vec() })
        }
        Location::Missing(gap) => create(edit, &gap, depth, edit.value),
    }
}

fn delete(text: &[u8], path: &Path<'_>) -> Result<Splice, Failure> {
    let Location::There(target) = find(text, path.components())? else {
        return Err(Failure::PathNotFound);
    };
    let entry = target.entry.ok_or(Failure::CannotInsert)?;
    let range = with_comma(text, &entry, target.value.end);
    Ok(Splice { range, text: Vec::new() })
}

/// The entry and one of the commas around it.
fn with_comma(text: &[u8], entry: &EntryHead, end: usize) -> Range<usize> {
    if entry.index > 0 {
        return entry.previous_end..end;
    }
    let behind = skip_space(text, end);
    if text.get(behind) == Some(&b',') {
        return entry.start..skip_space(text, behind + 1);
    }
    entry.start..end
}

fn replace(text: &[u8], edit: &Edit<'_>) -> Result<Splice, Failure> {
    let depth = edit.one_value()?.depth;
    let Location::There(target) = find(text, edit.path.components())? else {
        return Err(Failure::PathNotFound);
    };
    check_depth(edit.path, depth)?;
    Ok(Splice { range: target.value, text: edit.value.to_vec() })
}

fn push(text: &[u8], edit: &Edit<'_>) -> Result<Splice, Failure> {
    let depth = edit.values()?.depth;
    let array = match find(text, edit.path.components())? {
        Location::There(target) => target.value,
        Location::Missing(gap) => return create_array(edit, &gap, depth),
    };
    let array_text = part(text, array.clone());
    if array_text.first() != Some(&b'[') {
        return Err(Failure::PathMismatch);
    }
    check_depth(edit.path, depth + 1)?;
    let first_at = skip_space(array_text, 1);
    let is_empty = first_at + 1 == array_text.len();
    Ok(if edit.command == Command::ArrayPushFirst {
        let after = if is_empty { &b""[..] } else { b"," };
        Splice::insertion(array.start + 1, [edit.value, after].concat())
    } else {
        append(array.start + last_end(array_text), is_empty, edit.value)
    })
}

/// Behind the last element of the array, or behind the bracket that opens it.
fn last_end(array: &[u8]) -> usize {
    let inside = array.split_last().map_or(&[][..], |(_, inside)| inside);
    inside.trim_ascii_end().len()
}

fn append(at: usize, is_first: bool, value: &[u8]) -> Splice {
    let before = if is_first { &b""[..] } else { b"," };
    Splice::insertion(at, [before, value].concat())
}

fn insert_in_array(text: &[u8], edit: &Edit<'_>) -> Result<Splice, Failure> {
    let Some(Component::Index(index)) = edit.path.last() else { return Err(Failure::PathInvalid) };
    let depth = edit.values()?.depth;
    let splice = match find(text, edit.path.components())? {
        Location::There(target) => {
            let entry = target.entry.expect("a path with a component leads to an entry");
            Splice::insertion(entry.start, [edit.value, b","].concat())
        }
        Location::Missing(gap) if gap.steps + 1 == edit.path.depth() && gap.count == index => {
            append(gap.end, gap.count == 0, edit.value)
        }
        Location::Missing(_) => return Err(Failure::PathNotFound),
    };
    check_depth(edit.path, depth)?;
    Ok(splice)
}

fn add_unique(text: &[u8], edit: &Edit<'_>) -> Result<Splice, Failure> {
    if !edit.one_value()?.is_primitive() {
        return Err(Failure::CannotInsert);
    }
    let array = match find(text, edit.path.components())? {
        Location::There(target) => target.value,
        Location::Missing(gap) => return create_array(edit, &gap, 0),
    };
    let elements = Entries::of(text, array.start, edit.path.depth());
    let mut elements = elements.filter(|elements| !elements.is_object());
    let elements = elements.as_mut().ok_or(Failure::PathMismatch)?;
    while let Some(head) = elements.next()? {
        let end = elements.pass(&head)?;
        let element = part(text, head.value_at..end);
        if matches!(element.first(), Some(b'{' | b'[')) {
            return Err(Failure::PathMismatch);
        }
        if element == edit.value.trim_ascii() {
            return Err(Failure::PathExists);
        }
    }
    check_depth(edit.path, 1)?;
    Ok(append(elements.end(), elements.count() == 0, edit.value))
}

fn count(text: &[u8], edit: &Edit<'_>) -> Result<(Splice, i64), Failure> {
    let delta = delta(edit.value).ok_or(Failure::DeltaInvalid)?;
    match find(text, edit.path.components())? {
        Location::There(target) => {
            let old = part(text, target.value.clone());
            if !is_integer(old) {
                return Err(Failure::PathMismatch);
            }
            let old = number(old).ok_or(Failure::NumberOutOfRange)?;
            let new = old.checked_add(delta).ok_or(Failure::CannotInsert)?;
            Ok((Splice { range: target.value, text: new.to_string().into_bytes() }, new))
        }
        Location::Missing(gap) => {
            let new = delta.to_string();
            create(edit, &gap, 0, new.as_bytes()).map(|splice| (splice, delta))
        }
    }
}

/// What is added: a decimal number without zeros or a plus in front, not 0.
fn delta(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    number(text).filter(|_| matches!(digits, [b'1'..=b'9', ..]))
}

/// Whether a number of JSON has neither fraction nor exponent.
fn is_integer(text: &[u8]) -> bool {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)
}

fn number(text: &[u8]) -> Option<i64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// A new array with the values where the path leads.
fn create_array(edit: &Edit<'_>, gap: &Gap, depth: usize) -> Result<Splice, Failure> {
    if !edit.creates_parents {
        return Err(Failure::PathNotFound);
    }
    create(edit, gap, depth + 1, &[b"[", edit.value, b"]"].concat())
}

/// A new entry in an object, with objects around the value if more than the last component is
/// missing.
fn create(edit: &Edit<'_>, gap: &Gap, depth: usize, value: &[u8]) -> Result<Splice, Failure> {
    let missing = edit.path.components().get(gap.steps..).unwrap_or_default();
    if missing.len() > 1 && !edit.creates_parents {
        return Err(Failure::PathNotFound);
    }
    let mut text = Vec::with_capacity(value.len() + 64);
    for (number, component) in missing.iter().enumerate() {
        // A missing element stands for no place, and arrays are not made on the way.
        let Component::Name(name) = component else { return Err(Failure::PathNotFound) };
        if number > 0 {
            text.push(b'{');
        } else if gap.count > 0 {
            text.push(b',');
        }
        name.write_key(&mut text);
        text.push(b':');
    }
    check_depth(edit.path, depth)?;
    text.extend_from_slice(value);
    text.extend(std::iter::repeat_n(b'}', missing.len().saturating_sub(1)));
    Ok(Splice::insertion(gap.end, text))
}

/// Whether a value of this depth may stand where the path leads.
fn check_depth(path: &Path<'_>, depth: usize) -> Result<(), Failure> {
    if path.depth() + depth > DEPTH_MAX { Err(Failure::ValueTooDeep) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
