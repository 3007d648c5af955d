//! What stores go through.

/// One thing that happens to a store.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// One commit for each of these vBuckets, in one call.
    Flush(&'static [u16]),
    /// The file of a vBucket follows the journal.
    Apply(u16),
    /// All files do.
    ApplyAll,
    /// A spare segment is made.
    Prepare,
    /// A vBucket's file is written anew while it is committed to.
    Compact(u16),
    /// A vBucket is deleted.
    Delete(u16),
    /// All are.
    DeleteAll,
    /// A vBucket goes back by so many commits.
    Rollback(u16, usize),
    /// A vBucket's file is replaced by an empty one.
    Reset(u16),
    /// The process stops and starts again, with a journal or without.
    Reopen(bool),
    /// The same as before.
    Restart,
    /// The node stops in good order and starts again.
    Close,
    /// The node stops, a file is damaged, and the node starts.
    Damage(u16),
    /// What only the journal has of a damaged file is written again.
    CarryForward,
    /// The node stops, the file that was damaged is put back, and the node starts.
    Restore,
}

use Step::{
    Apply, ApplyAll, CarryForward, Close, Compact, Damage, Delete, DeleteAll, Flush, Prepare,
    Reopen, Reset, Restart, Restore, Rollback,
};

pub(super) struct Scenario {
    pub(super) name: &'static str,
    pub(super) needs_journal: bool,
    pub(super) steps: &'static [Step],
}

const ANY: Scenario = Scenario { name: "", needs_journal: false, steps: &[] };

pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "flushes and applies",
        steps: &[Flush(&[1, 2, 3]), Flush(&[2]), Apply(2), Flush(&[2, 3]), ApplyAll, Flush(&[1])],
        ..ANY
    },
    Scenario {
        name: "segments change and are released",
        steps: &[
            Flush(&[1, 2]),
            Prepare,
            Flush(&[1, 2]),
            Flush(&[1, 2]),
            Flush(&[1, 2]),
            Flush(&[1, 2, 3]),
            Apply(1),
            Flush(&[1, 3]),
            ApplyAll,
            Flush(&[1, 2, 3]),
            Flush(&[1, 2, 3]),
            ApplyAll,
            Flush(&[3]),
        ],
        ..ANY
    },
    Scenario {
        name: "compaction beside commits",
        steps: &[Flush(&[1, 2]), Flush(&[1]), ApplyAll, Compact(1), Flush(&[1]), Restart, Apply(1)],
        ..ANY
    },
    Scenario {
        name: "deleted and made again",
        steps: &[
            Flush(&[1, 2]),
            Apply(1),
            Flush(&[1]),
            Delete(1),
            Flush(&[1, 2]),
            Delete(2),
            Apply(1),
            Flush(&[1]),
            Delete(1),
            Restart,
            Flush(&[1]),
        ],
        ..ANY
    },
    Scenario {
        name: "all deleted",
        steps: &[Flush(&[1, 2, 3]), Apply(2), Flush(&[2]), DeleteAll, Flush(&[2]), Restart],
        ..ANY
    },
    Scenario {
        name: "rolled back",
        steps: &[
            Flush(&[1, 2]),
            Apply(1),
            Flush(&[1]),
            Apply(1),
            Flush(&[1]),
            Apply(1),
            Flush(&[1]),
            Rollback(1, 2),
            Flush(&[1]),
            Rollback(1, 1),
            Restart,
            Flush(&[1]),
        ],
        ..ANY
    },
    Scenario {
        name: "reset",
        steps: &[
            Flush(&[1, 2]),
            Apply(1),
            Flush(&[1]),
            Reset(1),
            Flush(&[2]),
            Restart,
            Flush(&[1]),
            Delete(1),
            Reset(1),
            Restart,
            Flush(&[1]),
        ],
        ..ANY
    },
    Scenario {
        name: "from one mode to the other",
        steps: &[
            Flush(&[1, 2]),
            Flush(&[2]),
            Apply(1),
            Reopen(false),
            Flush(&[1, 3]),
            Reopen(true),
            Flush(&[1, 2]),
            Close,
            Flush(&[1]),
        ],
        ..ANY
    },
    Scenario {
        name: "a damaged file",
        needs_journal: true,
        steps: &[
            Flush(&[1, 2]),
            ApplyAll,
            Flush(&[1, 2]),
            Flush(&[1]),
            Damage(1),
            Flush(&[2]),
            Flush(&[2, 3]),
            CarryForward,
            Flush(&[2]),
            Apply(2),
            Restart,
            Flush(&[3]),
            CarryForward,
            Restore,
            Flush(&[1]),
        ],
    },
    Scenario {
        name: "a damaged file without a journal for a while",
        needs_journal: true,
        steps: &[
            Flush(&[1, 2]),
            ApplyAll,
            Flush(&[1, 2]),
            Damage(1),
            Reopen(false),
            Flush(&[2, 3]),
            Reopen(true),
            Flush(&[2]),
            Restore,
            Flush(&[1]),
        ],
    },
];
