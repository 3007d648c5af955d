//! Following the steps of a path through JSON text, without a tree and without allocation.

use std::ops::Range;

use crate::entries::{Entries, EntryHead};
use crate::failure::Failure;
use crate::path::Component;
use crate::scan::{skip_space, value_end};

/// Where a path leads.
#[derive(Debug)]
pub(crate) enum Location {
    /// To a value.
    There(Target),
    /// Out of a container that has no such entry.
    Missing(Gap),
}

/// A value that is there.
#[derive(Debug)]
pub(crate) struct Target {
    /// The value.
    pub(crate) value: Range<usize>,
    /// Its entry in its container; of the root there is none.
    pub(crate) entry: Option<EntryHead>,
}

/// Where an entry could be.
#[derive(Debug)]
pub(crate) struct Gap {
    /// How many steps of the path lead to the container.
    pub(crate) steps: usize,
    /// Behind the container's last value, or behind its opening bracket.
    pub(crate) end: usize,
    /// How many entries the container has.
    pub(crate) count: usize,
}

/// Follows the steps. Of duplicate names the first is meant.
pub(crate) fn find(text: &[u8], path: &[Component<'_>]) -> Result<Location, Failure> {
    let mut at = skip_space(text, 0);
    let mut entry = None;
    for (steps, component) in path.iter().enumerate() {
        let mut entries = Entries::of(text, at, steps).ok_or_else(|| not_a_container(text, at))?;
        let Some(head) = choose(text, &mut entries, component)? else {
            let (end, count) = (entries.end(), entries.count());
            return Ok(Location::Missing(Gap { steps, end, count }));
        };
        at = head.value_at;
        entry = Some(head);
    }
    let end = value_end(text, at, path.len())?;
    Ok(Location::There(Target { value: at..end, entry }))
}

/// The value at the path.
pub(crate) fn value_at<'d>(text: &'d [u8], path: &[Component<'_>]) -> Result<&'d [u8], Failure> {
    match find(text, path)? {
        Location::There(target) => Ok(part(text, target.value)),
        Location::Missing(_) => Err(Failure::PathNotFound),
    }
}

/// How many entries the container at the path has.
pub(crate) fn count_at(text: &[u8], path: &[Component<'_>]) -> Result<usize, Failure> {
    let value = value_at(text, path)?;
    let mut entries = Entries::of(value, 0, path.len()).ok_or(Failure::PathMismatch)?;
    entries.pass_all()?;
    Ok(entries.count())
}

/// What was found.
pub(crate) fn part(text: &[u8], range: Range<usize>) -> &[u8] {
    text.get(range).expect("what was found lies in the text")
}

fn not_a_container(text: &[u8], at: usize) -> Failure {
    if at < text.len() { Failure::PathMismatch } else { Failure::NotJson }
}

fn choose(
    text: &[u8],
    entries: &mut Entries<'_>,
    component: &Component<'_>,
) -> Result<Option<EntryHead>, Failure> {
    if entries.is_object() != matches!(component, Component::Name(_)) {
        return Err(Failure::PathMismatch);
    }
    let mut last = None;
    while let Some(head) = entries.next()? {
        let is_chosen = match component {
            Component::Name(name) => name.is(part(text, head.key.clone())),
            Component::Index(index) => head.index == *index,
            Component::Last => false,
        };
        if is_chosen {
            return Ok(Some(head));
        }
        entries.pass(&head)?;
        last = Some(head);
    }
    Ok(last.filter(|_| *component == Component::Last))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::Path;

    const DOCUMENT: &[u8] = br#" { "a" : 1 , "b":[10, {"c":"x"}, [ ] ], "a":2,
        "d\"e":{"f":{"g":null}}, "`":true } "#;

    fn look_up(path: &str) -> Result<&'static str, Failure> {
        let path = Path::parse(path.as_bytes())?;
        value_at(DOCUMENT, path.components()).map(|value| std::str::from_utf8(value).unwrap())
    }

    #[test]
    fn paths_lead_to_the_bytes_of_their_values() {
        for (path, value) in [
            ("a", "1"),
            ("b", "[10, {\"c\":\"x\"}, [ ] ]"),
            ("b[0]", "10"),
            ("b[1].c", "\"x\""),
            ("b[-1]", "[ ]"),
            ("d\\\"e.f.g", "null"),
            ("````", "true"),
        ] {
            assert_eq!(look_up(path), Ok(value), "{path}");
        }
        let root = look_up("").unwrap();
        assert!(root.starts_with("{ \"a\"") && root.ends_with("true }"), "{root}");
    }

    #[test]
    fn paths_that_lead_nowhere_say_why() {
        for (path, failure) in [
            ("x", Failure::PathNotFound),
            ("b[3]", Failure::PathNotFound),
            ("b[2][-1]", Failure::PathNotFound),
            ("d\\\"e.x.y", Failure::PathNotFound),
            ("a.b", Failure::PathMismatch),
            ("a[0]", Failure::PathMismatch),
            ("b.c", Failure::PathMismatch),
            ("[0]", Failure::PathMismatch),
            ("[-1]", Failure::PathMismatch),
        ] {
            assert_eq!(look_up(path), Err(failure), "{path}");
        }
    }

    #[test]
    fn entries_are_counted() {
        for (path, count) in [("", Ok(5)), ("b", Ok(3)), ("b[2]", Ok(0)), ("d\\\"e.f", Ok(1))] {
            let path = Path::parse(path.as_bytes()).unwrap();
            assert_eq!(count_at(DOCUMENT, path.components()), count, "{path:?}");
        }
        let scalar = Path::parse(b"a").unwrap();
        assert_eq!(count_at(DOCUMENT, scalar.components()), Err(Failure::PathMismatch));
    }

    #[test]
    fn what_is_no_json_is_said_to_be_none() {
        let path = Path::parse(b"a").unwrap();
        for text in
            ["", " ", "{", "{\"b\":1", "{\"b\" 1}", "{\"b\":,}", "{\"b\":1 \"a\":2}", "{a:1}"]
        {
            let found = value_at(text.as_bytes(), path.components());
            assert_eq!(found, Err(Failure::NotJson), "{text}");
        }
    }
}
