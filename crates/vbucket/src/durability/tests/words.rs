//! The words of scripts.

use document::{DurabilityLevel, Key};

use crate::operation::{Now, Refusal};
use crate::persistence::Topology;
use crate::vbucket::receiving::ReceiveError;

/// An encoded key.
pub(super) struct Name(Vec<u8>);

impl Name {
    pub(super) fn as_key(&self) -> Key<'_> {
        Key::from_encoded(&self.0).unwrap()
    }
}

/// `name` is in the default collection, `8:name` in collection 8.
pub(super) fn key(name: &str) -> Name {
    let (collection, name) = name.split_once(':').unwrap_or(("0", name));
    Name([&[collection.parse().unwrap()], name.as_bytes()].concat())
}

pub(super) fn topology(nodes: &str) -> Topology {
    let node = |name: &str| (name != "-").then(|| name.to_owned());
    nodes.split('|').map(|chain| chain.split_whitespace().map(node).collect()).collect()
}

pub(super) fn seconds_until(until: platform::Instant, now: Now) -> u64 {
    until.since(now.monotonic).as_secs()
}

pub(super) fn level(name: &str) -> DurabilityLevel {
    match name {
        "majority" => DurabilityLevel::Majority,
        "active" => DurabilityLevel::MajorityAndPersistOnMaster,
        "persist" => DurabilityLevel::PersistToMajority,
        _ => panic!("no such level: {name}"),
    }
}

pub(super) fn number(word: &str) -> u64 {
    word.trim_start_matches('@').parse().unwrap_or_else(|_| panic!("no number: {word}"))
}

pub(super) fn told(result: Result<(), ReceiveError>) -> String {
    result.map_or_else(|error| format!("{error:?}"), |()| String::new())
}

pub(super) fn refused(refusal: &Refusal) -> String {
    let text = format!("{refusal:?}");
    text.split(['(', ' ']).next().unwrap_or_default().to_owned()
}
