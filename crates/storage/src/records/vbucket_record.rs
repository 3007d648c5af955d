//! The state of a vBucket as its file keeps it: `_local/vbstate`, a JSON object.
//!
//! Numbers are strings, as the original's server writes them, except in the failover table and
//! `version`. Keys that we do not know are ignored. High seqno and purge seqno are not there: the
//! file's header has them.

use std::fmt::Display;
use std::str::FromStr;
use std::sync::Arc;

use document::{Cas, FailoverEntry, Seqno, VbUuid, VbucketState};
use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};

/// The name of the local document.
pub const VBSTATE: &[u8] = b"_local/vbstate";

/// The version of the object that we write.
const VERSION: u8 = 4;

/// What the last persisted items were a part of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum CheckpointType {
    /// A snapshot that another node sent from its disk.
    Disk,
    /// The first such snapshot, into an empty vBucket.
    InitialDisk,
    /// Mutations as they happened.
    #[default]
    Memory,
}

/// What a file keeps about its vBucket beside the documents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VbucketRecord {
    /// The role on this node.
    pub state: VbucketState,
    /// Branches of history, newest first.
    pub failover_table: Arc<[FailoverEntry]>,
    /// Who must hold durable writes: chains of node names, the active first. `None` in a chain
    /// stands for a replica that is not placed.
    pub replication_topology: Arc<Vec<Vec<Option<String>>>>,
    /// The highest revision of a deleted document.
    pub max_deleted_revision: u64,
    /// The first seqno of the snapshot that the file is in.
    pub snapshot_start: Seqno,
    /// The last one.
    pub snapshot_end: Seqno,
    /// The highest CAS ever given or seen.
    pub max_cas: Cas,
    /// The seqno from which on CAS values are hybrid logical clock values; -1 for unknown.
    pub hlc_epoch: i64,
    /// Whether any document ever had xattrs.
    pub might_contain_xattrs: bool,
    /// The highest seqno of a prepare that is completed.
    pub completed_seqno: Seqno,
    /// The highest seqno of a prepare.
    pub prepared_seqno: Seqno,
    /// The highest seqno up to which all prepares are held.
    pub high_prepared_seqno: Seqno,
    /// The highest seqno that readers may see.
    pub max_visible_seqno: Seqno,
    /// Tombstones up to here may be missing in what the file is given. Its header keeps the highest
    /// one that it was ever told, so that what is read from a file says 0 here.
    pub purge_seqno: Seqno,
    /// A copy that began empty, or was none before, lacks, or may lack, what others hold until it
    /// is consistent up to here: the highest number for a place that is not known yet, 0 where
    /// nothing is lacking.
    pub whole_from_seqno: Seqno,
    /// What memory took the number of live documents for, for who is told what the file counts. In
    /// no file.
    pub document_count: Option<i64>,
    /// Prepares in the file.
    pub on_disk_prepares: u64,
    /// Their bytes.
    pub on_disk_prepare_bytes: u64,
    /// What the last persisted items were a part of.
    pub checkpoint_type: CheckpointType,
    /// What of the bucket's journal the file holds; `None` in a file that no journal stands before.
    pub journal: Option<JournalPosition>,
}

/// How much of a journal a file holds: the effect of every record of its vBucket up to a group, and
/// nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalPosition {
    /// Which journal.
    pub id: u64,
    /// The number of the group.
    pub lsn: u64,
}

/// The JSON object. Keys stand in alphabetical order.
#[derive(Serialize, Deserialize)]
struct Json {
    #[serde(default)]
    build: String,
    #[serde(default)]
    checkpoint_type: CheckpointType,
    #[serde(default)]
    completed_seqno: Text<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    failover_table: Vec<JsonFailoverEntry>,
    #[serde(default)]
    high_prepared_seqno: Text<u64>,
    #[serde(default)]
    hlc_epoch: Text<i64>,
    /// Ours alone: the original's server ignores keys that it does not know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    journal: Option<JsonJournalPosition>,
    max_cas: Text<u64>,
    max_deleted_seqno: Text<u64>,
    max_visible_seqno: Option<Text<u64>>,
    #[serde(default)]
    might_contain_xattrs: bool,
    #[serde(default)]
    namespaces_supported: bool,
    #[serde(default)]
    on_disk_prepare_bytes: Text<u64>,
    #[serde(default)]
    on_disk_prepares: Text<u64>,
    #[serde(default)]
    prepared_seqno: Text<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    replication_topology: Vec<Vec<Option<String>>>,
    snap_end: Text<u64>,
    snap_start: Text<u64>,
    state: String,
    #[serde(default)]
    version: u8,
    /// Ours alone.
    #[serde(default, skip_serializing_if = "Text::is_zero")]
    whole_from_seqno: Text<u64>,
}

#[derive(Serialize, Deserialize)]
struct JsonFailoverEntry {
    id: u64,
    seq: u64,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
struct JsonJournalPosition {
    id: Text<u64>,
    lsn: Text<u64>,
}

/// A number that is written as text and read as either.
#[derive(Clone, Copy, Default)]
pub(crate) struct Text<N>(pub(crate) N);

impl VbucketRecord {
    /// A vBucket without history.
    pub fn new(state: VbucketState) -> Self {
        Self {
            state,
            failover_table: Arc::default(),
            replication_topology: Arc::default(),
            max_deleted_revision: 0,
            snapshot_start: Seqno(0),
            snapshot_end: Seqno(0),
            max_cas: Cas(0),
            hlc_epoch: -1,
            might_contain_xattrs: false,
            completed_seqno: Seqno(0),
            prepared_seqno: Seqno(0),
            high_prepared_seqno: Seqno(0),
            max_visible_seqno: Seqno(0),
            purge_seqno: Seqno(0),
            whole_from_seqno: Seqno(0),
            document_count: None,
            on_disk_prepares: 0,
            on_disk_prepare_bytes: 0,
            checkpoint_type: CheckpointType::Memory,
            journal: None,
        }
    }

    /// The JSON text.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let entries = self.failover_table.iter();
        let json = Json {
            build: concat!("settee ", env!("CARGO_PKG_VERSION")).to_owned(),
            checkpoint_type: self.checkpoint_type,
            completed_seqno: Text(self.completed_seqno.0),
            failover_table: entries
                .map(|entry| JsonFailoverEntry { id: entry.uuid.0, seq: entry.seqno.0 })
                .collect(),
            high_prepared_seqno: Text(self.high_prepared_seqno.0),
            hlc_epoch: Text(self.hlc_epoch),
            journal: self.journal.map(|position| JsonJournalPosition {
                id: Text(position.id),
                lsn: Text(position.lsn),
            }),
            max_cas: Text(self.max_cas.0),
            max_deleted_seqno: Text(self.max_deleted_revision),
            max_visible_seqno: Some(Text(self.max_visible_seqno.0)),
            might_contain_xattrs: self.might_contain_xattrs,
            namespaces_supported: true,
            on_disk_prepare_bytes: Text(self.on_disk_prepare_bytes),
            on_disk_prepares: Text(self.on_disk_prepares),
            prepared_seqno: Text(self.prepared_seqno.0),
            replication_topology: self.replication_topology.to_vec(),
            snap_end: Text(self.snapshot_end.0),
            snap_start: Text(self.snapshot_start.0),
            state: self.state.name().to_owned(),
            version: VERSION,
            whole_from_seqno: Text(self.whole_from_seqno.0),
        };
        serde_json::to_vec(&json).expect("strings, numbers and lists are always JSON")
    }

    /// Reads the JSON text. `high_seqno` is the file's, for what old versions left out.
    pub fn decode(text: &[u8], high_seqno: Seqno) -> Option<Self> {
        let json: Json = serde_json::from_slice(text).ok()?;
        let entry = |json: &JsonFailoverEntry| FailoverEntry {
            uuid: VbUuid(json.id),
            seqno: Seqno(json.seq),
        };
        // An old version wrote this when it knew of no CAS.
        let max_cas = if json.max_cas.0 == u64::MAX { 0 } else { json.max_cas.0 };
        Some(Self {
            state: VbucketState::from_name(&json.state)?,
            failover_table: json.failover_table.iter().map(entry).collect(),
            replication_topology: Arc::new(json.replication_topology),
            max_deleted_revision: json.max_deleted_seqno.0,
            snapshot_start: Seqno(json.snap_start.0),
            snapshot_end: Seqno(json.snap_end.0),
            max_cas: Cas(max_cas),
            hlc_epoch: json.hlc_epoch.0,
            might_contain_xattrs: json.might_contain_xattrs,
            completed_seqno: Seqno(json.completed_seqno.0),
            prepared_seqno: Seqno(json.prepared_seqno.0),
            high_prepared_seqno: Seqno(json.high_prepared_seqno.0),
            max_visible_seqno: json.max_visible_seqno.map_or(high_seqno, |seqno| Seqno(seqno.0)),
            purge_seqno: Seqno(0),
            whole_from_seqno: Seqno(json.whole_from_seqno.0),
            document_count: None,
            on_disk_prepares: json.on_disk_prepares.0,
            on_disk_prepare_bytes: json.on_disk_prepare_bytes.0,
            checkpoint_type: json.checkpoint_type,
            journal: json
                .journal
                .map(|position| JournalPosition { id: position.id.0, lsn: position.lsn.0 }),
        })
    }
}

impl Text<u64> {
    fn is_zero(&self) -> bool {
        self.0 == 0
    }
}

impl<N: Display> Serialize for Text<N> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de, N: FromStr + TryFrom<i64> + TryFrom<u64>> Deserialize<'de> for Text<N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor<N>(std::marker::PhantomData<N>);

        impl<N: FromStr + TryFrom<i64> + TryFrom<u64>> Visitor<'_> for TextVisitor<N> {
            type Value = N;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("a number, or text that is one")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<N, E> {
                text.parse().map_err(|_| E::custom("text that is no number"))
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<N, E> {
                N::try_from(number).map_err(|_| E::custom("a number out of range"))
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<N, E> {
                N::try_from(number).map_err(|_| E::custom("a number out of range"))
            }
        }

        deserializer.deserialize_any(TextVisitor(std::marker::PhantomData)).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_reads_back_as_it_was_written() {
        let mut record = VbucketRecord::new(VbucketState::Replica);
        assert_eq!(VbucketRecord::decode(&record.encode(), Seqno(9)), Some(record.clone()));
        record.failover_table = [FailoverEntry { uuid: VbUuid(7), seqno: Seqno(5) }].into();
        record.replication_topology = Arc::new(vec![vec![Some("a".to_owned()), None]]);
        record.max_cas = Cas(u64::MAX - 1);
        record.hlc_epoch = 3;
        record.whole_from_seqno = Seqno(u64::MAX);
        record.checkpoint_type = CheckpointType::InitialDisk;
        record.journal = Some(JournalPosition { id: u64::MAX, lsn: 12 });
        assert_eq!(VbucketRecord::decode(&record.encode(), Seqno(9)), Some(record));
    }

    #[test]
    fn numbers_are_text_and_empty_lists_are_left_out() {
        let mut record = VbucketRecord::new(VbucketState::Active);
        record.failover_table = [FailoverEntry { uuid: VbUuid(7), seqno: Seqno(5) }].into();
        let json: serde_json::Value = serde_json::from_slice(&record.encode()).unwrap();
        assert_eq!(json["hlc_epoch"], "-1");
        assert_eq!(json["snap_start"], "0");
        assert_eq!(json["version"], 4);
        assert_eq!(json["namespaces_supported"], true);
        assert_eq!(json["checkpoint_type"], "Memory");
        assert_eq!(json["failover_table"][0]["id"], 7);
        assert_eq!(json["failover_table"][0]["seq"], 5);
        assert!(json.get("replication_topology").is_none());
        assert!(json.get("high_seqno").is_none() && json.get("whole_from_seqno").is_none());
    }

    #[test]
    fn old_and_foreign_records_are_read() {
        let text = br#"{"max_deleted_seqno":"1","snap_start":"2","snap_end":3,"future":[],
            "max_cas":"18446744073709551615","state":"pending"}"#;
        let record = VbucketRecord::decode(text, Seqno(9)).unwrap();
        assert_eq!(record.state, VbucketState::Pending);
        assert_eq!(record.snapshot_end, Seqno(3));
        assert_eq!(record.max_cas, Cas(0));
        assert_eq!(record.max_visible_seqno, Seqno(9));
        for damaged in ["", "{}", "[]", r#"{"state":"active"}"#] {
            assert_eq!(VbucketRecord::decode(damaged.as_bytes(), Seqno(0)), None, "{damaged}");
        }
    }
}
