//! Looking into a document. Source: docs/specification/protocol.md, sections 12.4 and 12.5.

use std::io::Write;

use crate::attribute_key::AttributeKey;
use crate::attributes::{path_below_key, value_of};
use crate::binary;
use crate::command::Command;
use crate::failure::Failure;
use crate::find::{count_at, value_at};
use crate::flags::DocumentFlags;
use crate::path::{Component, Path};
use crate::request::{ClientRights, RequestHead, Spec, Specs, check};
use crate::stored::{ClockFacts, StoredDocument};
use crate::virtual_attributes;

/// A request that was found to be well-formed.
#[derive(Clone, Copy, Debug)]
pub struct LookupRequest<'a> {
    head: RequestHead,
    specs: &'a [Spec<'a>],
    rights: ClientRights,
}

/// What there is at the paths of a request, in their order. Each path is followed when its result
/// is asked for.
#[derive(Clone, Debug)]
pub struct LookupResults<'r, 'd> {
    stored: &'r StoredDocument<'d>,
    specs: &'r [Spec<'r>],
    rights: ClientRights,
    clock: ClockFacts,
}

/// What there is at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fragment<'d> {
    /// Something: the client only wants to know whether.
    Nothing,
    /// A piece of the document.
    Text(&'d [u8]),
    /// How many entries there are.
    Count(Decimal),
    /// What is not in the document in this form.
    Made(Vec<u8>),
}

/// A number in decimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decimal {
    digits: [u8; 20],
    size: usize,
}

impl<'a> LookupRequest<'a> {
    /// Checks a request.
    pub fn new(
        head: RequestHead,
        specs: &'a Specs<'a>,
        rights: ClientRights,
    ) -> Result<Self, Failure> {
        let specs = specs.as_slice();
        check(false, &head, specs, rights)?;
        Ok(Self { head, specs, rights })
    }

    /// The results for a document, which is the storage's answer for the key, tombstones included.
    pub fn look_up<'r, 'd>(
        &'r self,
        stored: Option<&'r StoredDocument<'d>>,
        clock: ClockFacts,
    ) -> Result<LookupResults<'r, 'd>, Failure> {
        let stored = visible(stored, self.head.flags).ok_or(Failure::DocumentNotFound)?;
        check_version(stored, &self.head)?;
        Ok(LookupResults { stored, specs: self.specs, rights: self.rights, clock })
    }
}

/// The document, unless it is a tombstone that the request does not want to see.
pub(crate) fn visible<'r, 'd>(
    stored: Option<&'r StoredDocument<'d>>,
    flags: DocumentFlags,
) -> Option<&'r StoredDocument<'d>> {
    let sees_deleted = flags.contains(DocumentFlags::ACCESS_DELETED);
    stored.filter(|stored| sees_deleted || !stored.facts.is_deleted)
}

/// Whether it is the version that the request names, if it names one.
pub(crate) fn check_version(
    stored: &StoredDocument<'_>,
    head: &RequestHead,
) -> Result<(), Failure> {
    let is_it = head.cas == document::Cas::ANY || head.cas == stored.facts.cas;
    if is_it { Ok(()) } else { Err(Failure::DocumentExists) }
}

impl LookupResults<'_, '_> {
    /// Whether the document is a tombstone.
    pub fn is_deleted(&self) -> bool {
        self.stored.facts.is_deleted
    }
}

impl<'d> Iterator for LookupResults<'_, 'd> {
    type Item = Result<Fragment<'d>, Failure>;

    fn next(&mut self) -> Option<Self::Item> {
        let (spec, rest) = self.specs.split_first()?;
        self.specs = rest;
        Some(self.result(spec))
    }
}

impl<'d> LookupResults<'_, 'd> {
    fn result(&self, spec: &Spec<'_>) -> Result<Fragment<'d>, Failure> {
        if spec.is_of_attribute() {
            return self.in_attributes(spec);
        }
        let (_, body) = self.stored.parts();
        if spec.command == Command::GetBody {
            let is_there = !body.is_empty();
            return is_there.then_some(Fragment::Text(body)).ok_or(Failure::PathNotFound);
        }
        if !self.stored.is_json() {
            return Err(Failure::NotJson);
        }
        fragment(spec.command, body, Path::parse(spec.path)?.components())
    }

    fn in_attributes(&self, spec: &Spec<'_>) -> Result<Fragment<'d>, Failure> {
        let (key, rest) = AttributeKey::split(spec.path)?;
        let path = path_below_key(rest)?;
        let path = path.components().get(1..).unwrap_or_default();
        if key.is_of_system() && !self.rights.reads_system_attributes {
            return Err(Failure::AccessDenied);
        }
        if key.is_virtual() {
            let shows_system = self.rights.reads_system_attributes;
            let text = virtual_attributes::text(key, rest, self.stored, self.clock, shows_system)?;
            return fragment(spec.command, &text, path)?.decoded(spec).map(Fragment::into_made);
        }
        let (attributes, _) = self.stored.parts();
        let value = value_of(attributes, key.bytes()).ok_or(Failure::PathNotFound)?;
        fragment(spec.command, value, path)?.decoded(spec)
    }
}

fn fragment<'t>(
    command: Command,
    text: &'t [u8],
    path: &[Component<'_>],
) -> Result<Fragment<'t>, Failure> {
    match command {
        Command::Get => value_at(text, path).map(Fragment::Text),
        Command::Exists => value_at(text, path).map(|_| Fragment::Nothing),
        Command::GetCount => count_at(text, path).map(|count| Fragment::Count(Decimal::of(count))),
        other => unreachable!("{other:?} is no lookup of a path"),
    }
}

impl<'d> Fragment<'d> {
    /// What the client gets.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Nothing => &[],
            Self::Text(text) => text,
            Self::Count(number) => number.digits(),
            Self::Made(text) => text,
        }
    }

    /// What the client gets when the path's flags say that the value is bytes.
    fn decoded(self, spec: &Spec<'_>) -> Result<Self, Failure> {
        if spec.is_binary() { binary::decode(self.bytes()).map(Self::Made) } else { Ok(self) }
    }

    /// The same, apart from the text that it is a piece of.
    fn into_made<'o>(self) -> Fragment<'o> {
        match self {
            Self::Nothing => Fragment::Nothing,
            Self::Count(number) => Fragment::Count(number),
            Self::Text(text) => Fragment::Made(text.to_vec()),
            Self::Made(text) => Fragment::Made(text),
        }
    }
}

impl Decimal {
    fn of(number: usize) -> Self {
        let mut digits = [0; 20];
        let mut rest = &mut digits[..];
        write!(rest, "{number}").expect("a number has at most 20 digits");
        let size = 20 - rest.len();
        Self { digits, size }
    }

    fn digits(&self) -> &[u8] {
        self.digits.get(..self.size).expect("a number counts its digits")
    }
}

#[cfg(test)]
mod tests;
