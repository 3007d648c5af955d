//! The map by which clients learn statuses that are newer than they are. Source:
//! docs/specification/protocol.md, section 5.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use crate::status::Status;

/// The revision of the version 2 map; rises whenever a row of the table of statuses changes.
const REVISION: u32 = 9;
/// How far the revision of version 1 is ahead of it, as clients know it from other servers.
const REVISION_OFFSET_OF_VERSION_1: u32 = 4;

macro_rules! attributes {
    ($($variant:ident $name:literal;)+) => {
        /// What a status means for a client.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Attribute {
            $(#[doc = concat!("`", $name, "`")] $variant,)+
        }

        impl Attribute {
            /// The name in the map.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }
    };
}

attributes! {
    Auth "auth";
    ConnStateInvalidated "conn-state-invalidated";
    Dcp "dcp";
    FetchConfig "fetch-config";
    Internal "internal";
    InvalidInput "invalid-input";
    ItemDeleted "item-deleted";
    ItemLocked "item-locked";
    ItemOnly "item-only";
    NoRetry "no-retry";
    RateLimit "rate-limit";
    RetryLater "retry-later";
    RetryNow "retry-now";
    SpecialHandling "special-handling";
    Subdoc "subdoc";
    Success "success";
    Support "support";
    SystemConstraint "system-constraint";
    Temp "temp";
}

impl Attribute {
    fn is_in_version(self, version: u16) -> bool {
        version >= 2 || !matches!(self, Self::RateLimit | Self::SystemConstraint | Self::NoRetry)
    }
}

/// The JSON text for a client that understands maps up to `version`; `None` for version 0. Some
/// clients close the connection on a version above the one they asked for.
pub fn json(version: u16) -> Option<&'static str> {
    static VERSION_1: LazyLock<String> = LazyLock::new(|| build(1));
    static VERSION_2: LazyLock<String> = LazyLock::new(|| build(2));
    match version {
        0 => None,
        1 => Some(&VERSION_1),
        _ => Some(&VERSION_2),
    }
}

fn build(version: u16) -> String {
    let offset = if version == 1 { REVISION_OFFSET_OF_VERSION_1 } else { 0 };
    let errors: Map<String, Value> = Status::ALL
        .iter()
        .map(|status| (format!("{:x}", status.code()), entry(*status, version)))
        .collect();
    let revision = REVISION.saturating_add(offset);
    json!({ "version": version, "revision": revision, "errors": errors }).to_string()
}

fn entry(status: Status, version: u16) -> Value {
    let attributes: Vec<&str> = status
        .attributes()
        .iter()
        .filter(|attribute| attribute.is_in_version(version))
        .map(|attribute| attribute.name())
        .collect();
    json!({ "name": status.name(), "desc": status.description(), "attrs": attributes })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(version: u16) -> Value {
        serde_json::from_str(json(version).unwrap()).unwrap()
    }

    #[test]
    fn every_status_is_in_every_version() {
        for version in [1, 2] {
            let map = parsed(version);
            let errors = map["errors"].as_object().unwrap();
            assert_eq!(errors.len(), Status::ALL.len());
            for status in Status::ALL {
                let entry = &errors[&format!("{:x}", status.code())];
                assert_eq!(entry["name"], status.name());
                assert!(!entry["desc"].as_str().unwrap().is_empty());
            }
        }
    }

    #[test]
    fn the_version_asked_for_is_echoed_up_to_two() {
        assert_eq!(json(0), None);
        assert_eq!(parsed(1)["version"], 1);
        assert_eq!(parsed(2)["version"], 2);
        assert_eq!(parsed(700)["version"], 2);
        assert_eq!(parsed(1)["revision"], 13);
        assert_eq!(parsed(2)["revision"], 9);
    }

    #[test]
    fn version_one_lacks_what_it_did_not_know() {
        for attribute in ["rate-limit", "system-constraint", "no-retry"] {
            assert!(!json(1).unwrap().contains(attribute));
            assert!(json(2).unwrap().contains(attribute));
        }
        assert_eq!(parsed(2)["errors"]["c"]["attrs"], json!(["temp", "retry-later", "rate-limit"]));
        assert_eq!(parsed(1)["errors"]["c"]["attrs"], json!(["temp", "retry-later"]));
    }
}
