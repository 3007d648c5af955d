//! Durable writes of vBuckets. Source: docs/specification/engine.md, section 5.9.

use document::{Vbid, VbucketState};
use vbucket::{ChainNode, DurabilityStatus, Vbucket};

use super::emitter::{Emitter, NoGroup};
use super::vbucket_groups::for_vbuckets;
use crate::buckets::BucketPart;

/// What chains are called, in order.
const CHAINS: [&str; 2] = ["First", "Second"];

/// Group "durability-monitor": what is tracked, and how far each node has come.
pub(super) fn monitors(
    emitter: &mut Emitter<'_, '_>,
    part: &BucketPart,
    argument: &str,
) -> Result<(), NoGroup> {
    for_vbuckets(emitter, part, argument, Vbucket::durability_status, |vbucket, status| {
        let mut statistics = named(vbucket, common(&status));
        match status.state {
            VbucketState::Active => {
                statistics.extend(named(vbucket, of_active(&status)));
                statistics.extend(named(vbucket, chains(&status)));
            }
            VbucketState::Replica | VbucketState::Pending => {
                let completed = status.high_completed_seqno.0.to_string();
                let completed = ("high_completed_seqno".to_owned(), completed);
                let waiting = status.waiting_snapshot_count.to_string();
                let waiting = ("snapshots_waiting".to_owned(), waiting);
                statistics.extend(named(vbucket, vec![completed, waiting]));
            }
            VbucketState::Dead => {
                let last = status.last_tracked_seqno.0.to_string();
                statistics.extend(named(vbucket, vec![("last_tracked_seqno".to_owned(), last)]));
            }
        }
        statistics
    })
}

/// Group "vbucket-durability-state": who must hold durable writes, and how far they are held.
pub(super) fn states(
    emitter: &mut Emitter<'_, '_>,
    part: &BucketPart,
    argument: &str,
) -> Result<(), NoGroup> {
    let look = |vbucket: &Vbucket| {
        let seqnos = (vbucket.high_prepared_seqno(), vbucket.high_completed_seqno());
        (vbucket.state(), vbucket.topology().clone(), seqnos)
    };
    for_vbuckets(
        emitter,
        part,
        argument,
        look,
        |vbucket, (state, topology, (prepared, completed))| {
            let topology = serde_json::to_string(&topology).unwrap_or_default();
            let numbers = vec![
                ("topology".to_owned(), topology),
                ("high_prepared_seqno".to_owned(), prepared.0.to_string()),
                ("high_completed_seqno".to_owned(), completed.0.to_string()),
            ];
            let state = (format!("vb_{vbucket}"), state.name().to_owned());
            std::iter::once(state).chain(named(vbucket, numbers)).collect()
        },
    )
}

type Statistics = Vec<(String, String)>;

fn named(vbucket: Vbid, statistics: Statistics) -> Statistics {
    let name = |(name, value)| (format!("vb_{vbucket}:{name}"), value);
    statistics.into_iter().map(name).collect()
}

fn common(status: &DurabilityStatus) -> Statistics {
    let bytes = status.tracked_bytes + status.prepares_bytes;
    [
        ("state", status.state.name().to_owned()),
        ("num_tracked", status.tracked_count.to_string()),
        ("dm_mem_used", bytes.to_string()),
        ("high_prepared_seqno", status.high_prepared_seqno.0.to_string()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .to_vec()
}

fn of_active(status: &DurabilityStatus) -> Statistics {
    [
        ("last_tracked_seqno", status.last_tracked_seqno),
        ("last_committed_seqno", status.last_committed_seqno),
        ("last_aborted_seqno", status.last_aborted_seqno),
    ]
    .map(|(name, seqno)| (name.to_owned(), seqno.0.to_string()))
    .to_vec()
}

fn chains(status: &DurabilityStatus) -> Statistics {
    let mut statistics = Statistics::new();
    for (chain, name) in status.chains.iter().zip(CHAINS) {
        let name = format!("replication_chain_{name}");
        statistics.push((format!("{name}:size"), chain.len().to_string()));
        for node in chain {
            let ChainNode { name: node_name, last_write_seqno, last_ack_seqno } = node;
            let node = node_name.as_deref().unwrap_or("undefined");
            let write = last_write_seqno.0.to_string();
            statistics.push((format!("{name}:{node}:last_write_seqno"), write));
            let acknowledged = last_ack_seqno.0.to_string();
            statistics.push((format!("{name}:{node}:last_ack_seqno"), acknowledged));
        }
    }
    statistics
}
