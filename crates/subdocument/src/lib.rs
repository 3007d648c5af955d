//! Reading and changing parts of a document: paths into its JSON body and its extended attributes.
//!
//! Pure functions: no server, no storage, no clock. A request is collected into [`Specs`], checked
//! once, and carried out on a [`StoredDocument`], which is what the storage has for the key. The
//! text is scanned as it is: a lookup allocates nothing and answers with pieces of the document, a
//! change leaves every other byte as it was. Statuses have their numbers in [`Failure`].
//!
//! The caller inflates the value, knows whether the document is locked, and decides about flags and
//! expiry; it stores a [`Mutated`] as its [`Storing`] says, and begins anew when another write came
//! between. Who gives the document CAS and seqno writes them into its placeholders.
//!
//! ```
//! use document::{Cas, Datatype};
//! use subdocument::*;
//!
//! let stored = StoredDocument {
//!     value: br#"{"name":"Ann","scores":[3,5]}"#,
//!     datatype: Datatype::JSON,
//!     facts: DocumentFacts::default(),
//! };
//! let flags = DocumentFlags::default();
//! let head = RequestHead { form: RequestForm::Multi, flags, cas: Cas::ANY };
//! let rights = ClientRights::default();
//!
//! let get = RawSpec { opcode: 0xc5, path_flags: 0, path: b"scores[-1]", value: b"" };
//! let mut specs = Specs::new();
//! specs.push(get)?;
//! specs.push(RawSpec { path: b"age", ..get })?;
//! let request = LookupRequest::new(head, &specs, rights)?;
//! let mut results = request.look_up(Some(&stored), ClockFacts::default())?;
//! assert_eq!(results.next(), Some(Ok(Fragment::Text(b"5"))));
//! assert_eq!(results.next(), Some(Err(Failure::PathNotFound)));
//!
//! let count = RawSpec { opcode: 0xcf, path_flags: 0, path: b"scores[0]", value: b"4" };
//! let mut specs = Specs::new();
//! specs.push(count)?;
//! specs.push(RawSpec { opcode: 0xc7, path: b"age", value: b"30", ..count })?;
//! let request = MutationRequest::new(head, &specs, rights)?;
//! let changed = request.mutate(Some(&stored)).expect("both paths fit");
//! assert_eq!(changed.value, br#"{"name":"Ann","scores":[7,5],"age":30}"#);
//! assert_eq!(changed.numbers, [(0, 7)]);
//! # Ok::<(), Failure>(())
//! ```
#![warn(clippy::indexing_slicing)]

mod attribute_key;
mod attributes;
mod binary;
mod command;
mod edit;
mod entries;
mod failure;
mod find;
mod flags;
pub mod fuzzing;
mod json;
mod lookup;
mod macros;
mod mutation;
mod path;
mod request;
mod scan;
mod stored;
#[cfg(test)]
mod testing;
mod virtual_attributes;

pub use command::Command;
pub use failure::Failure;
pub use flags::{DocumentFlags, PathFlags};
pub use lookup::{Decimal, Fragment, LookupRequest, LookupResults};
pub use mutation::{Mutated, MutationFailure, MutationRequest, Storing};
pub use path::{COMPONENTS_MAX, PATH_SIZE_MAX};
pub use request::{ClientRights, RawSpec, RequestForm, RequestHead, SPECS_MAX, Spec, Specs};
pub use stored::{ClockFacts, DocumentFacts, StoredDocument};
