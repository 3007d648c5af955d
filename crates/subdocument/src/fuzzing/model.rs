//! What commands on paths mean, on a tree: slow, plain, and not by scanning.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::Made;
use crate::command::Command;
use crate::failure::Failure;
use crate::path::Component;
use crate::scan::DEPTH_MAX;

/// A JSON text whose white space is forgotten. Scalars and keys are as they were written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Tree {
    Scalar(String),
    Array(Vec<Self>),
    Object(Vec<(String, Self)>),
}

impl Default for Tree {
    fn default() -> Self {
        Self::Scalar(String::new())
    }
}

/// The entries of an object, duplicates included.
struct Entries<'a>(Vec<(&'a RawValue, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Entries<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EntriesVisitor)
    }
}

struct EntriesVisitor;

impl<'de> Visitor<'de> for EntriesVisitor {
    type Value = Entries<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Entries(entries))
    }
}

impl Tree {
    /// Of a text that is JSON.
    pub(super) fn parse(text: &[u8]) -> Self {
        let text = std::str::from_utf8(text).expect("JSON is UTF-8").trim_ascii();
        match text.as_bytes().first() {
            Some(b'{') => {
                let entries: Entries<'_> = serde_json::from_str(text).expect("an object");
                let entry = |(key, value): (&RawValue, &RawValue)| {
                    (unquoted(key.get()), Self::parse(value.get().as_bytes()))
                };
                Self::Object(entries.0.into_iter().map(entry).collect())
            }
            Some(b'[') => {
                let elements: Vec<&RawValue> = serde_json::from_str(text).expect("an array");
                let element = |element: &RawValue| Self::parse(element.get().as_bytes());
                Self::Array(elements.into_iter().map(element).collect())
            }
            _ => Self::Scalar(text.to_owned()),
        }
    }

    /// Containers around each other.
    pub(super) fn depth(&self) -> usize {
        match self {
            Self::Scalar(_) => 0,
            Self::Array(elements) => 1 + elements.iter().map(Self::depth).max().unwrap_or(0),
            Self::Object(entries) => {
                1 + entries.iter().map(|(_, value)| value.depth()).max().unwrap_or(0)
            }
        }
    }

    fn size(&self) -> Option<usize> {
        match self {
            Self::Scalar(_) => None,
            Self::Array(elements) => Some(elements.len()),
            Self::Object(entries) => Some(entries.len()),
        }
    }

    /// The place of a component among the entries; `None` if it is not there.
    fn place(&self, component: &Component<'_>) -> Result<Option<usize>, Failure> {
        match (self, component) {
            (Self::Object(entries), Component::Name(name)) => {
                Ok(entries.iter().position(|(key, _)| name.is(key.as_bytes())))
            }
            (Self::Array(elements), Component::Index(index)) => {
                Ok((*index < elements.len()).then_some(*index))
            }
            (Self::Array(elements), Component::Last) => Ok(elements.len().checked_sub(1)),
            _ => Err(Failure::PathMismatch),
        }
    }

    fn entry(&mut self, place: usize) -> &mut Self {
        let entry = match self {
            Self::Scalar(_) => None,
            Self::Array(elements) => elements.get_mut(place),
            Self::Object(entries) => entries.get_mut(place).map(|(_, value)| value),
        };
        entry.expect("the place was found")
    }

    fn remove(&mut self, place: usize) {
        match self {
            Self::Scalar(_) => unreachable!("a scalar has no entries"),
            Self::Array(elements) => drop(elements.remove(place)),
            Self::Object(entries) => drop(entries.remove(place)),
        }
    }
}

/// A command on a path.
pub(super) struct Model<'a> {
    pub(super) command: Command,
    pub(super) creates_parents: bool,
    pub(super) path: &'a [Component<'a>],
    pub(super) value: &'a [u8],
}

impl Model<'_> {
    /// What the command makes of a document.
    pub(super) fn carry_out(&self, mut root: Tree) -> Result<Made, Failure> {
        match self.command {
            Command::Get | Command::Exists => {
                self.reach(&mut root)?.map(|found| Made::Found(found.clone()))
            }
            Command::GetCount => self
                .reach(&mut root)?
                .and_then(|found| found.size().map(Made::Number).ok_or(Failure::PathMismatch)),
            _ => self.change(&mut root).map(|()| Made::Text(root)),
        }
    }

    fn change(&self, root: &mut Tree) -> Result<(), Failure> {
        match self.command {
            Command::DictAdd | Command::DictUpsert => self.put(root),
            Command::Delete => self.delete(root),
            Command::Replace => {
                let value = self.one_value()?;
                let found = self.reach(root)??;
                self.fits(value.depth())?;
                *found = value;
                Ok(())
            }
            Command::ArrayPushLast | Command::ArrayPushFirst => self.push(root),
            Command::ArrayInsert => self.insert(root),
            Command::ArrayAddUnique => self.add_unique(root),
            Command::Counter => self.count(root),
            other => unreachable!("{other:?} changes nothing"),
        }
    }

    fn put(&self, root: &mut Tree) -> Result<(), Failure> {
        let Some(Component::Name(_)) = self.path.last() else { return Err(Failure::PathInvalid) };
        let value = self.one_value()?;
        if let Ok(found) = self.reach(root)? {
            if self.command == Command::DictAdd {
                return Err(Failure::PathExists);
            }
            self.fits(value.depth())?;
            *found = value;
            return Ok(());
        }
        self.create(root, value)
    }

    fn delete(&self, root: &mut Tree) -> Result<(), Failure> {
        let _found = self.reach(root)??;
        let (last, parents) = self.path.split_last().ok_or(Failure::CannotInsert)?;
        let parent = reach(root, parents)??;
        let place = parent.place(last)?.ok_or(Failure::PathNotFound)?;
        parent.remove(place);
        Ok(())
    }

    fn push(&self, root: &mut Tree) -> Result<(), Failure> {
        let values = self.values()?;
        let depth = depth_of(&values);
        let Ok(found) = self.reach(root)? else { return self.create_array(root, values) };
        let Tree::Array(elements) = found else { return Err(Failure::PathMismatch) };
        self.fits(depth + 1)?;
        let at = if self.command == Command::ArrayPushFirst { 0 } else { elements.len() };
        elements.splice(at..at, values);
        Ok(())
    }

    fn insert(&self, root: &mut Tree) -> Result<(), Failure> {
        let Some((Component::Index(index), parents)) = self.path.split_last() else {
            return Err(Failure::PathInvalid);
        };
        let values = self.values()?;
        let depth = depth_of(&values);
        let parent = reach(root, parents)??;
        let Tree::Array(elements) = parent else { return Err(Failure::PathMismatch) };
        if *index > elements.len() {
            return Err(Failure::PathNotFound);
        }
        self.fits(depth)?;
        elements.splice(*index..*index, values);
        Ok(())
    }

    fn add_unique(&self, root: &mut Tree) -> Result<(), Failure> {
        let value = self.one_value()?;
        if value.depth() > 0 {
            return Err(Failure::CannotInsert);
        }
        let Ok(found) = self.reach(root)? else { return self.create_array(root, vec![value]) };
        let Tree::Array(elements) = found else { return Err(Failure::PathMismatch) };
        for element in elements.iter() {
            if element.depth() > 0 {
                return Err(Failure::PathMismatch);
            }
            if *element == value {
                return Err(Failure::PathExists);
            }
        }
        self.fits(1)?;
        elements.push(value);
        Ok(())
    }

    fn count(&self, root: &mut Tree) -> Result<(), Failure> {
        let text = std::str::from_utf8(self.value).map_err(|_| Failure::DeltaInvalid)?;
        let delta: i64 = text.parse().map_err(|_| Failure::DeltaInvalid)?;
        if delta == 0 || delta.to_string() != text {
            return Err(Failure::DeltaInvalid);
        }
        let Ok(found) = self.reach(root)? else {
            return self.create(root, Tree::Scalar(delta.to_string()));
        };
        let Tree::Scalar(old) = found else { return Err(Failure::PathMismatch) };
        let is_number = old.starts_with(|first: char| first == '-' || first.is_ascii_digit());
        if !is_number || old.contains(['.', 'e', 'E']) {
            return Err(Failure::PathMismatch);
        }
        let number: i64 = old.parse().map_err(|_| Failure::NumberOutOfRange)?;
        let sum = i128::from(number) + i128::from(delta);
        *old = i64::try_from(sum).map_err(|_| Failure::CannotInsert)?.to_string();
        Ok(())
    }

    fn create_array(&self, root: &mut Tree, values: Vec<Tree>) -> Result<(), Failure> {
        if !self.creates_parents {
            return Err(Failure::PathNotFound);
        }
        self.create(root, Tree::Array(values))
    }

    /// Puts the value where nothing is, with objects around it if need be.
    fn create(&self, root: &mut Tree, value: Tree) -> Result<(), Failure> {
        let (mut tree, mut rest) = (root, self.path);
        loop {
            let (component, behind) = rest.split_first().ok_or(Failure::PathNotFound)?;
            let Some(place) = tree.place(component)? else { break };
            (tree, rest) = (tree.entry(place), behind);
        }
        if rest.len() > 1 && !self.creates_parents {
            return Err(Failure::PathNotFound);
        }
        let mut names = Vec::new();
        for component in rest {
            let Component::Name(name) = component else { return Err(Failure::PathNotFound) };
            let mut key = Vec::new();
            name.write_key(&mut key);
            names.push(unquoted(std::str::from_utf8(&key).expect("paths are UTF-8")));
        }
        self.fits(value.depth())?;
        let first = names.remove(0);
        let around = |inside, name| Tree::Object(vec![(name, inside)]);
        let value = names.into_iter().rev().fold(value, around);
        let Tree::Object(entries) = tree else { return Err(Failure::PathNotFound) };
        entries.push((first, value));
        Ok(())
    }

    fn fits(&self, depth: usize) -> Result<(), Failure> {
        let is_within = self.path.len() + depth <= DEPTH_MAX;
        if is_within { Ok(()) } else { Err(Failure::ValueTooDeep) }
    }

    fn one_value(&self) -> Result<Tree, Failure> {
        let mut values = self.values()?;
        if values.len() == 1 { Ok(values.remove(0)) } else { Err(Failure::CannotInsert) }
    }

    fn values(&self) -> Result<Vec<Tree>, Failure> {
        let list = [b"[", self.value, b"]"].concat();
        if !document::datatype::is_json(&list) {
            return Err(Failure::CannotInsert);
        }
        match Tree::parse(&list) {
            Tree::Array(values) if !values.is_empty() => {
                if depth_of(&values) > DEPTH_MAX {
                    Err(Failure::ValueTooDeep)
                } else {
                    Ok(values)
                }
            }
            _ => Err(Failure::CannotInsert),
        }
    }

    fn reach<'t>(&self, root: &'t mut Tree) -> Result<Result<&'t mut Tree, Failure>, Failure> {
        reach(root, self.path)
    }
}

/// What is at a path; inside, that there is nothing; outside, that there cannot be anything.
fn reach<'t>(
    root: &'t mut Tree,
    path: &[Component<'_>],
) -> Result<Result<&'t mut Tree, Failure>, Failure> {
    let mut tree = root;
    for component in path {
        let Some(place) = tree.place(component)? else {
            return Ok(Err(Failure::PathNotFound));
        };
        tree = tree.entry(place);
    }
    Ok(Ok(tree))
}

fn depth_of(values: &[Tree]) -> usize {
    values.iter().map(Tree::depth).max().unwrap_or(0)
}

/// A key without its quotes.
fn unquoted(key: &str) -> String {
    let inside = key.strip_prefix('"').and_then(|key| key.strip_suffix('"'));
    inside.expect("a key stands in quotes").to_owned()
}
