//! Golden scripts: what a stream reads, and what it hands over.

use document::{Cas, Deletion};
use document::{DurabilityLevel, ItemBuilder, ItemMeta, KeyBuf, RevSeqno};
use vbucket::checkpoint::{CheckpointKind, Snapshot};

use super::*;

fn item(seqno: u64, operation: Operation, deletion: Option<Deletion>) -> Item {
    let key = KeyBuf::in_default_collection(format!("k{seqno}").as_bytes()).unwrap();
    let meta = ItemMeta { deletion, ..ItemMeta::default() };
    let builder = ItemBuilder::new(key.as_key(), meta, b"v").with_operation(operation);
    builder.finish(Cas(1), Seqno(seqno), RevSeqno(1))
}

/// Items written as `3` mutation, `3d` deletion, `3p` prepare, `3c` commit, `3a` abort.
fn items(script: &str) -> Vec<Item> {
    let one = |word: &str| {
        let digits = word.trim_end_matches(char::is_alphabetic);
        let prepare = Seqno(1);
        let (operation, deletion) = match &word[digits.len()..] {
            "" => (Operation::Mutation, None),
            "d" => (Operation::Mutation, Some(Deletion::Explicit)),
            "p" => (Operation::Prepare(DurabilityLevel::Majority), None),
            "c" => (Operation::Commit { prepare }, None),
            "a" => (Operation::Abort { prepare }, Some(Deletion::Explicit)),
            other => panic!("{other}"),
        };
        item(digits.parse().unwrap(), operation, deletion)
    };
    script.split_whitespace().map(one).collect()
}

fn section(id: u64, start: u64, end: u64, script: &str) -> LogSection {
    let items = items(script);
    let mut visible = items.iter().filter(|item| !item.operation().is_prepared());
    let visible_end = visible.next_back().map_or(Seqno(start - 1), Item::seqno);
    let snapshot =
        Snapshot { end: Seqno(end), visible_end, ..Snapshot::beginning_at(Seqno(start)) };
    LogSection { checkpoint_id: id, kind: CheckpointKind::Memory, snapshot, items }
}

fn disk_section(id: u64, start: u64, end: u64, script: &str) -> LogSection {
    let mut section = section(id, start, end, script);
    section.kind = CheckpointKind::Disk;
    section.snapshot.high_completed = Some(Seqno(0));
    section.snapshot.purge_seqno = Some(Seqno(0));
    section
}

/// `[start..end flags]` for a marker (m memory, d disk, c checkpoint, a ack; v, h, p, P for what
/// versions 2 add), seqnos of items, `*` behind those from disk, `>n` for seqno advanced, `end`.
fn written(out: &VecDeque<Outgoing>) -> String {
    let words: Vec<String> = out.iter().map(word).collect();
    words.join(" ")
}

fn word(outgoing: &Outgoing) -> String {
    match outgoing {
        Outgoing::Marker(marker) => {
            let mut flags = String::new();
            for (bit, letter) in [(1, 'm'), (2, 'd'), (4, 'c'), (8, 'a')] {
                if marker.flags.0 & bit != 0 {
                    flags.push(letter);
                }
            }
            for (seqno, letter) in [
                (marker.max_visible, 'v'),
                (marker.high_completed, 'h'),
                (marker.purge, 'p'),
                (marker.high_prepared, 'P'),
            ] {
                if let Some(seqno) = seqno {
                    flags.push_str(&format!(" {letter}{}", seqno.0));
                }
            }
            format!("[{}..{} {flags}]", marker.start.0, marker.end.0)
        }
        Outgoing::Item(item) => item.seqno().0.to_string(),
        Outgoing::DiskItem(item) => format!("{}*", item.seqno().0),
        Outgoing::SeqnoAdvanced(seqno) => format!(">{}", seqno.0),
        Outgoing::VbucketState(state) => format!("role {}", state.name()),
        Outgoing::OsoSnapshot { is_start } => format!("oso {is_start}"),
        Outgoing::End(reason) => format!("end {reason:?}"),
    }
}

const PLAIN: Policy = Policy {
    has_sync_writes: false,
    is_sync_replication: false,
    has_collections: false,
    has_marker_2_2: false,
    wants_acks: false,
    skips_deletes: false,
};
const COLLECTIONS: Policy = Policy { has_collections: true, ..PLAIN };
const REPLICA: Policy = Policy {
    has_sync_writes: true,
    is_sync_replication: true,
    has_marker_2_2: true,
    ..COLLECTIONS
};

enum Read {
    /// A section of the log, and up to where the log was read.
    Log(LogSection, u64),
    /// A file, and its items.
    Disk(BackfillFacts, &'static str),
}

fn run(policy: Policy, start: u64, end: u64, reads: Vec<Read>) -> String {
    let (start, end) = (Seqno(start), Seqno(end));
    handed_over(Snapshots::new(policy, start, start..=start, end), reads)
}

fn handed_over(mut snapshots: Snapshots, reads: Vec<Read>) -> String {
    let mut out = VecDeque::new();
    for read in reads {
        match read {
            Read::Log(section, through) => {
                snapshots.add_section(section, Seqno(through), &mut out);
            }
            Read::Disk(disk, script) => {
                snapshots.begin_disk(disk, &mut out);
                for item in items(script) {
                    snapshots.add_disk_items(vec![item], &mut out);
                }
                snapshots.end_disk(&mut out);
            }
        }
    }
    written(&out)
}

fn disk(high: u64, max_visible: u64) -> BackfillFacts {
    let (high, max_visible) = (Seqno(high), Seqno(max_visible));
    let default_high = high;
    BackfillFacts { high, snapshot_end: high, max_visible, default_high, ..Default::default() }
}

#[test]
fn memory_comes_a_checkpoint_at_a_time() {
    let reads = || {
        vec![
            Read::Log(section(1, 1, 3, "1 3"), 3),
            Read::Log(section(1, 1, 5, "1 3 5"), 5),
            Read::Log(section(1, 1, 6, "6"), 8),
            Read::Log(section(2, 7, 8, "7 8"), 8),
        ]
    };
    let all = "[0..3 mc] 1 3 [4..5 m] 5 [6..6 m] 6 [7..8 mc] 7 8";
    assert_eq!(run(PLAIN, 0, u64::MAX, reads()), all);
    assert_eq!(run(COLLECTIONS, 0, u64::MAX, reads()), all);
    assert_eq!(run(PLAIN, 4, u64::MAX, reads()), "[4..5 mc] 5 [6..6 m] 6 [7..8 mc] 7 8");
    assert_eq!(run(PLAIN, 0, 7, reads()), "[0..3 mc] 1 3 [4..5 m] 5 [6..6 m] 6 [7..8 mc] 7 end Ok");
    assert_eq!(run(PLAIN, 0, 4, reads()), "[0..3 mc] 1 3 [4..5 m] end Ok");
}

#[test]
fn who_knows_no_durable_writes_sees_what_is_visible() {
    let reads = || {
        vec![
            Read::Log(section(1, 1, 2, "1 2p"), 2),
            Read::Log(section(2, 3, 3, "3c"), 3),
            Read::Log(section(3, 4, 4, "4p"), 4),
            Read::Log(section(4, 5, 6, "5a 6"), 6),
        ]
    };
    assert_eq!(run(PLAIN, 0, u64::MAX, reads()), "[0..1 mc] 1 [3..3 mc] 3 [5..6 mc] 6");
    let told = "[0..2 mc] 1 >2 [3..3 mc] 3 [4..4 mc] >4 [5..6 mc] 6";
    assert_eq!(run(COLLECTIONS, 0, u64::MAX, reads()), told);
    let all = "[0..2 mc v1] 1 2 [3..3 mc v3] 3 [4..4 mc v3] 4 [5..6 mc v6] 5 6";
    assert_eq!(run(REPLICA, 0, u64::MAX, reads()), all);
}

#[test]
fn who_knows_no_collections_has_snapshots_whole_that_end_with_others() {
    let with_others = |mut section: LogSection, visible_end| {
        section.snapshot.visible_end = Seqno(visible_end);
        section
    };
    let reads = || {
        vec![
            Read::Disk(BackfillFacts { default_high: Seqno(2), ..disk(4, 4) }, "1 2"),
            // Of a snapshot that is read in parts nobody knows what the next one has.
            Read::Log(with_others(section(1, 5, 8, "5"), 8), 6),
            Read::Log(with_others(section(1, 5, 8, "7"), 8), 8),
            Read::Log(with_others(section(2, 9, 12, "10"), 12), 12),
            Read::Log(with_others(section(2, 9, 13, "13"), 13), 13),
        ]
    };
    let all = "[0..2 dc] 1* 2* [5..8 mc] 5 7 [9..10 mc] 10 [13..13 m] 13";
    assert_eq!(run(PLAIN, 0, u64::MAX, reads()), all);
    let nothing = vec![Read::Disk(BackfillFacts { default_high: Seqno(0), ..disk(4, 4) }, "")];
    assert_eq!(run(PLAIN, 0, u64::MAX, nothing), "");
}

#[test]
fn a_file_is_one_snapshot_and_memory_goes_on_behind_it() {
    let log = || Read::Log(section(7, 3, 6, "4 6"), 6);
    let facts = || BackfillFacts {
        high_completed: Seqno(2),
        high_prepared: Seqno(4),
        purge: Seqno(1),
        ..disk(4, 3)
    };
    let reads = || vec![Read::Disk(facts(), "1 2p 3d 4p"), log()];
    assert_eq!(run(PLAIN, 0, u64::MAX, reads()), "[0..3 dc] 1* 3* [5..6 mc] 6");
    assert_eq!(run(COLLECTIONS, 0, u64::MAX, reads()), "[0..4 dc] 1* 3* >4 [5..6 mc] 6");
    let replica = "[0..4 dc v3 h2 p1 P4] 1* 3* 4* [5..6 mc v6] 6";
    assert_eq!(run(REPLICA, 0, u64::MAX, reads()), replica);
    let skips = Policy { skips_deletes: true, ..COLLECTIONS };
    assert_eq!(run(skips, 0, u64::MAX, reads()), "[0..4 dc] 1* >4 [5..6 mc] 6");
    assert_eq!(run(COLLECTIONS, 0, 2, reads()), "[0..4 dc] 1* end Ok");
    let nothing_visible = vec![Read::Disk(disk(4, 0), "4p"), log()];
    assert_eq!(run(PLAIN, 0, u64::MAX, nothing_visible), "[0..6 mc] 6");
}

#[test]
fn a_stream_of_files_alone_ends_where_the_file_does_that_is_read() {
    let read = |end: u64| {
        let snapshots = Snapshots::new(COLLECTIONS, Seqno(0), Seqno(0)..=Seqno(0), Seqno(end));
        let reads = vec![Read::Disk(disk(4, 4), "1 4"), Read::Log(section(7, 5, 6, "5 6"), 6)];
        handed_over(snapshots.ending_with_file(), reads)
    };
    // The document that had seqno 2 when the stream was asked for has seqno 4 now.
    assert_eq!(read(2), "[0..4 dc] 1* 4* end Ok");
    assert_eq!(read(4), "[0..4 dc] 1* 4* end Ok");
    assert_eq!(read(5), "[0..4 dc] 1* 4* [5..6 mc] 5 end Ok");
}

#[test]
fn deletions_are_left_out_of_what_comes_first_alone() {
    let skips = Policy { skips_deletes: true, ..COLLECTIONS };
    let log = vec![
        Read::Log(section(1, 1, 3, "1 3"), 3),
        Read::Disk(disk(6, 6), "5d 6"),
        Read::Log(section(2, 7, 8, "7d 8"), 8),
    ];
    let all = "[0..3 mc] 1 3 [4..6 dc] 5* 6* [7..8 mc] 7 8";
    assert_eq!(run(skips, 0, u64::MAX, log), all);
    let file_twice = vec![Read::Disk(disk(3, 3), "1d 3"), Read::Disk(disk(6, 6), "5d 6")];
    assert_eq!(run(skips, 0, u64::MAX, file_twice), "[0..3 dc] 3* [4..6 dc] 5* 6*");
}

#[test]
fn a_replicas_unfinished_snapshot_goes_on_in_the_log() {
    let facts = BackfillFacts { snapshot_end: Seqno(9), ..disk(4, 4) };
    let reads = vec![
        Read::Disk(facts, "2 4"),
        Read::Log(disk_section(1, 1, 9, "4 6"), 6),
        Read::Log(disk_section(1, 1, 9, "9"), 9),
        Read::Log(section(2, 10, 12, "11"), 11),
        Read::Log(section(2, 10, 12, "12"), 12),
    ];
    let all = "[0..9 dc v4 h0 p0 P0] 2* 4* 6* 9* [10..12 mc v11] 11 12";
    assert_eq!(run(REPLICA, 0, u64::MAX, reads), all);
}

#[test]
fn what_a_snapshot_lacks_that_came_from_a_file_is_said_where_it_is_sent_from_memory() {
    let mut section = disk_section(1, 1, 4, "2 4");
    section.snapshot.purge_seqno = Some(Seqno(3));
    let reads = vec![Read::Log(section, 4)];
    assert_eq!(run(REPLICA, 0, u64::MAX, reads), "[0..4 dc v4 h0 p3] 2* 4*");
}

/// The file ends, within its snapshot, with a seqno whose item is gone.
#[test]
fn a_snapshot_for_a_replica_begins_behind_the_last_item_that_was_sent() {
    let facts = BackfillFacts { snapshot_end: Seqno(6), ..disk(4, 3) };
    let reads = vec![Read::Disk(facts, "1 3"), Read::Log(section(1, 5, 8, "8"), 8)];
    assert_eq!(run(REPLICA, 0, u64::MAX, reads), "[0..6 dc v3 h0 p0 P0] 1* 3* [4..8 mc v8] 8");
}

#[test]
fn a_takeover_has_its_markers_answered() {
    let policy = Policy { wants_acks: true, ..COLLECTIONS };
    let reads = vec![Read::Log(section(1, 1, 1, "1"), 1)];
    assert_eq!(run(policy, 0, u64::MAX, reads), "[0..1 mca] 1");
}

#[test]
fn a_part_of_a_snapshot_is_made_whole_before_another_begins() {
    let mut snapshots = Snapshots::new(COLLECTIONS, Seqno(4), Seqno(1)..=Seqno(9), Seqno(u64::MAX));
    let mut out = VecDeque::new();
    snapshots.add_section(section(1, 1, 6, "5 6"), Seqno(10), &mut out);
    snapshots.add_section(section(2, 7, 8, "7"), Seqno(10), &mut out);
    snapshots.add_section(section(3, 9, 10, "9 10"), Seqno(10), &mut out);
    assert_eq!(written(&out), "[1..9 mc] 5 6 7 [9..10 mc] 9 10");
}
