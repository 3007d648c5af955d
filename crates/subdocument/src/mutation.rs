//! Changing a document: all paths of a request or none. Source: docs/specification/protocol.md,
//! sections 12.4 and 12.5.

use std::borrow::Cow;

use document::limits::{SYSTEM_XATTR_SIZE_MAX, VALUE_SIZE_MAX};
use document::{Cas, Datatype, Placeholders};

use crate::attribute_key::AttributeKey;
use crate::attributes::{Attributes, path_below_key};
use crate::binary;
use crate::command::Command;
use crate::edit::{Edit, edit};
use crate::failure::Failure;
use crate::find::value_at;
use crate::flags::{DocumentFlags, PathFlags};
use crate::lookup::{check_version, visible};
use crate::macros::{Macro, resolve_marks};
use crate::path::Path;
use crate::request::{ClientRights, RequestHead, Spec, Specs, check};
use crate::stored::{DocumentFacts, StoredDocument};

/// A request that was found to be well-formed.
#[derive(Clone, Copy, Debug)]
pub struct MutationRequest<'a> {
    head: RequestHead,
    specs: &'a [Spec<'a>],
    rights: ClientRights,
}

/// What a document becomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mutated {
    /// How it is to be stored.
    pub storing: Storing,
    /// Its value.
    pub value: Vec<u8>,
    /// What the value is.
    pub datatype: Datatype,
    /// Whether it is a tombstone.
    pub is_deleted: bool,
    /// Whether the client hears SUBDOC_SUCCESS_DELETED: what was found or made, and not revived,
    /// is a tombstone.
    pub is_about_deleted: bool,
    /// Where CAS and seqno are to be written into the value when the document gets them. Until
    /// then the value must not be compressed.
    pub placeholders: Placeholders,
    /// The new numbers of counters, each with the number of its path, counted from 0.
    pub numbers: Vec<(u8, i64)>,
}

/// How a changed document is to be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storing {
    /// As a new one: there must be no live document.
    Add,
    /// In place of the one that was changed, of this version.
    Replace(Cas),
    /// As a live one in place of a tombstone: there must be no live document.
    Revive,
}

/// Why nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MutationFailure {
    /// The first path that failed, counted from 0; `None` if the whole request did.
    pub index: Option<u8>,
    /// Why.
    pub failure: Failure,
}

impl From<Failure> for MutationFailure {
    fn from(failure: Failure) -> Self {
        Self { index: None, failure }
    }
}

impl<'a> MutationRequest<'a> {
    /// Checks a request.
    pub fn new(
        head: RequestHead,
        specs: &'a Specs<'a>,
        rights: ClientRights,
    ) -> Result<Self, Failure> {
        let specs = specs.as_slice();
        check(true, &head, specs, rights)?;
        Ok(Self { head, specs, rights })
    }

    /// The flags of the document.
    pub fn document_flags(&self) -> DocumentFlags {
        self.head.flags
    }

    /// Changes a document, which is the storage's answer for the key, tombstones included. That it
    /// is not locked is the caller's to check, and what happens to flags and expiry.
    pub fn mutate(&self, stored: Option<&StoredDocument<'_>>) -> Result<Mutated, MutationFailure> {
        let stored = visible(stored, self.head.flags);
        let storing = self.storing(stored)?;
        let mut change = match stored {
            Some(stored) => Change::of(stored),
            None => Change::of_nothing(self.new_body()),
        };
        for (number, spec) in (0..).zip(self.specs) {
            let changed = self.change(&mut change, spec);
            let changed =
                changed.map_err(|failure| MutationFailure { index: Some(number), failure })?;
            change.numbers.extend(changed.map(|counted| (number, counted)));
        }
        let was_deleted = match stored {
            Some(stored) => stored.facts.is_deleted,
            None => self.has(DocumentFlags::CREATE_AS_DELETED),
        };
        let is_about_deleted = was_deleted && storing != Storing::Revive;
        change.finish(storing, is_about_deleted).map_err(MutationFailure::from)
    }

    fn has(&self, flag: DocumentFlags) -> bool {
        self.head.flags.contains(flag)
    }

    fn deletes(&self) -> bool {
        self.specs.iter().any(|spec| spec.command == Command::DeleteBody)
    }

    fn storing(&self, stored: Option<&StoredDocument<'_>>) -> Result<Storing, Failure> {
        let Some(stored) = stored else {
            let may_create = self.head.flags.creates() && self.head.cas == Cas::ANY;
            return may_create.then_some(Storing::Add).ok_or(Failure::DocumentNotFound);
        };
        if self.has(DocumentFlags::ADD) {
            return Err(Failure::DocumentExists);
        }
        check_version(stored, &self.head)?;
        match (self.has(DocumentFlags::REVIVE), stored.facts.is_deleted) {
            (false, _) => Ok(Storing::Replace(stored.facts.cas)),
            (true, false) => Err(Failure::DocumentIsAlive),
            (true, true) if self.deletes() => Ok(Storing::Replace(stored.facts.cas)),
            (true, true) => Ok(Storing::Revive),
        }
    }

    /// The body that the paths of a new document begin with: the first of them decides.
    fn new_body(&self) -> &'static [u8] {
        if self.has(DocumentFlags::CREATE_AS_DELETED) {
            return b"";
        }
        let first = self.specs.iter().find(|spec| !spec.command.is_of_body());
        let is_array = first.is_some_and(|spec| {
            let is_root = spec.path.is_empty() && spec.command.is_of_array();
            !spec.is_of_attribute() && (is_root || spec.path.starts_with(b"["))
        });
        if is_array { b"[]" } else { b"{}" }
    }

    fn change(&self, change: &mut Change<'_>, spec: &Spec<'_>) -> Result<Option<i64>, Failure> {
        let creates_parents = spec.flags.contains(PathFlags::MKDIR_P) || self.head.flags.creates();
        if !spec.is_of_attribute() {
            return change.change_body(spec, creates_parents);
        }
        let (key, _) = AttributeKey::split(spec.path)?;
        if key.is_of_system() && !self.rights.writes_system_attributes {
            return Err(Failure::AccessDenied);
        }
        if spec.command == Command::ReplaceBodyWithXattr {
            return change.replace_body(spec).map(|()| None);
        }
        change.change_attribute(spec, creates_parents)
    }
}

/// A document under change.
struct Change<'d> {
    before: StoredDocument<'d>,
    attributes: Attributes,
    body: Cow<'d, [u8]>,
    is_json: bool,
    /// Whether the whole document is deleted.
    deletes: bool,
    /// Whether marks of macros stand in the attributes.
    has_marks: bool,
    numbers: Vec<(u8, i64)>,
}

impl<'d> Change<'d> {
    fn of(before: &StoredDocument<'d>) -> Self {
        let (attributes, body) = before.parts();
        Self {
            before: *before,
            attributes: Attributes::of(attributes),
            body: Cow::Borrowed(body),
            is_json: before.is_json(),
            deletes: false,
            has_marks: false,
            numbers: Vec::new(),
        }
    }

    fn of_nothing(body: &'d [u8]) -> Self {
        let facts = DocumentFacts::default();
        let nothing = StoredDocument { value: b"", datatype: Datatype::RAW, facts };
        Self { body: Cow::Borrowed(body), is_json: !body.is_empty(), ..Self::of(&nothing) }
    }

    fn change_body(&mut self, spec: &Spec<'_>, creates: bool) -> Result<Option<i64>, Failure> {
        match spec.command {
            Command::SetBody => {
                self.body = Cow::Owned(spec.value.to_vec());
                self.is_json = document::datatype::is_json(spec.value);
                Ok(None)
            }
            Command::DeleteBody => {
                self.attributes.keep_those_of_system();
                (self.is_json, self.deletes) = (false, true);
                self.body = Cow::Borrowed(&[]);
                Ok(None)
            }
            command if self.is_json => {
                let path = Path::parse(spec.path)?;
                let change = Edit {
                    command,
                    path: &path,
                    value: spec.value,
                    is_mark: false,
                    creates_parents: creates,
                };
                edit(self.body.to_mut(), &change)
            }
            _ => Err(Failure::NotJson),
        }
    }

    fn change_attribute(&mut self, spec: &Spec<'_>, creates: bool) -> Result<Option<i64>, Failure> {
        let (key, rest) = AttributeKey::split(spec.path)?;
        let path = path_below_key(rest)?;
        let macro_of_value = spec.macro_of_value()?;
        let is_mark = matches!(macro_of_value, Some(Macro::Mutation(_)));
        let value = match macro_of_value {
            Some(found) => Cow::Owned(found.expand(&self.before)?),
            None if spec.is_binary() => Cow::Owned(binary::encode(spec.value)),
            None => Cow::Borrowed(spec.value),
        };
        let command = spec.command;
        let change =
            Edit { command, path: &path, value: &value, is_mark, creates_parents: creates };
        let number = self.attributes.edit(key.bytes(), &change)?;
        self.has_marks |= is_mark;
        Ok(number)
    }

    fn replace_body(&mut self, spec: &Spec<'_>) -> Result<(), Failure> {
        let (key, rest) = AttributeKey::split(spec.path)?;
        let path = path_below_key(rest)?;
        let value = self.attributes.get(key.bytes()).ok_or(Failure::PathNotFound)?;
        let value = value_at(value, path.components().get(1..).unwrap_or_default())?;
        let mut body = if spec.is_binary() { binary::decode(value)? } else { value.to_vec() };
        if self.has_marks {
            // In a body nobody would fill them in.
            resolve_marks(&mut body, b"");
        }
        self.is_json = document::datatype::is_json(&body);
        self.body = Cow::Owned(body);
        Ok(())
    }

    fn finish(mut self, storing: Storing, is_about_deleted: bool) -> Result<Mutated, Failure> {
        let is_deleted = self.deletes || is_about_deleted;
        if is_deleted && !self.body.is_empty() {
            return Err(Failure::DeletedHasBody);
        }
        let (user_size, system_size) = self.attributes.sizes();
        if self.body.len() + user_size > VALUE_SIZE_MAX || system_size > SYSTEM_XATTR_SIZE_MAX {
            return Err(Failure::TooBig);
        }
        let placeholders = if self.has_marks {
            self.attributes.resolve_marks(&self.body)
        } else {
            Placeholders::default()
        };
        let has_attributes = !self.attributes.bytes().is_empty();
        let mut datatype = if self.is_json { Datatype::JSON } else { Datatype::RAW };
        if has_attributes {
            datatype = datatype.with(Datatype::XATTR);
        }
        let value = if has_attributes {
            self.attributes.with_body(&self.body)
        } else {
            self.body.into_owned()
        };
        let numbers = self.numbers;
        Ok(Mutated {
            storing,
            value,
            datatype,
            is_deleted,
            is_about_deleted,
            placeholders,
            numbers,
        })
    }
}

#[cfg(test)]
mod tests;
