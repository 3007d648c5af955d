//! The fields of SET_VBUCKET and DEL_VBUCKET. Source: docs/specification/protocol.md, section 18.1.

use document::VbucketState;
use serde::Deserialize;

/// Chains of a topology, at most.
const CHAINS_MAX: usize = 2;
/// Nodes of a chain, at most: the active one and three replicas.
const CHAIN_NODES_MAX: usize = 4;

/// What SET_VBUCKET asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VbucketChange {
    /// The role.
    pub state: VbucketState,
    /// Who must hold durable writes: chains of node names, the active first. `None` in a chain
    /// stands for a replica that is not placed.
    pub topology: Option<Vec<Vec<Option<String>>>>,
    /// Whether it is to be made of files that were fetched from elsewhere.
    pub uses_snapshot: bool,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Json {
    topology: Option<Vec<Vec<Option<String>>>>,
    use_snapshot: Option<SnapshotKind>,
    /// A hint that helps the original to save work.
    #[expect(dead_code, reason = "read for its form alone")]
    expected_next_state: Option<StateName>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum SnapshotKind {
    Fbr,
    Fusion,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum StateName {
    Active,
    Replica,
    Pending,
    Dead,
}

impl VbucketChange {
    /// Reads extras and value; `None` is answered with EINVAL.
    pub fn parse(extras: &[u8], value: &[u8]) -> Option<Self> {
        let &[number] = extras else { return None };
        let state = VbucketState::from_number(number)?;
        let json: Json =
            if value.is_empty() { Json::default() } else { serde_json::from_slice(value).ok()? };
        let Json { topology, use_snapshot, .. } = json;
        let is_topology_in_place = match &topology {
            None => true,
            Some(chains) => state == VbucketState::Active && is_topology(chains),
        };
        let uses_snapshot = use_snapshot.is_some();
        is_topology_in_place.then_some(Self { state, topology, uses_snapshot })
    }
}

fn is_topology(chains: &[Vec<Option<String>>]) -> bool {
    let is_chain = |chain: &Vec<Option<String>>| {
        let starts_with_active = chain.first().is_some_and(Option::is_some);
        starts_with_active && chain.len() <= CHAIN_NODES_MAX
    };
    (1..=CHAINS_MAX).contains(&chains.len()) && chains.iter().all(is_chain)
}

/// Whether the value of DEL_VBUCKET is one that there is: nothing, or whether to wait for the
/// removal of the file.
pub fn is_deletion(value: &[u8]) -> bool {
    matches!(value, b"" | b"async=0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_is_a_byte_and_more_is_json() {
        for (number, state) in [
            (1, VbucketState::Active),
            (2, VbucketState::Replica),
            (3, VbucketState::Pending),
            (4, VbucketState::Dead),
        ] {
            let change = VbucketChange { state, topology: None, uses_snapshot: false };
            assert_eq!(VbucketChange::parse(&[number], b""), Some(change.clone()));
            assert_eq!(VbucketChange::parse(&[number], b"{}"), Some(change));
        }
        let value = br#"{"topology":[["a",null,"b"],["c"]],"expected_next_state":"dead"}"#;
        let change = VbucketChange::parse(&[1], value).unwrap();
        let name = |name: &str| Some(name.to_owned());
        let expected = vec![vec![name("a"), None, name("b")], vec![name("c")]];
        assert_eq!(change.topology, Some(expected));
        assert!(VbucketChange::parse(&[2], br#"{"use_snapshot":"fbr"}"#).unwrap().uses_snapshot);
    }

    #[test]
    fn what_is_no_change_of_a_role_is_refused() {
        for extras in [&[][..], &[0], &[5], &[1, 1]] {
            assert_eq!(VbucketChange::parse(extras, b""), None);
        }
        for value in [
            "x",
            "[]",
            r#"{"next_expected_state":"active"}"#,
            r#"{"expected_next_state":"alive"}"#,
            r#"{"use_snapshot":"other"}"#,
            r#"{"topology":[]}"#,
            r#"{"topology":[[]]}"#,
            r#"{"topology":[[null,"a"]]}"#,
            r#"{"topology":[["a","b","c","d","e"]]}"#,
            r#"{"topology":[["a"],["b"],["c"]]}"#,
        ] {
            assert_eq!(VbucketChange::parse(&[1], value.as_bytes()), None, "{value}");
        }
        assert_eq!(VbucketChange::parse(&[2], br#"{"topology":[["a"]]}"#), None);
        assert!(is_deletion(b"") && is_deletion(b"async=0"));
        assert!(!is_deletion(b"async=1"));
    }
}
