//! The store from outside: what it keeps, what it loses, what it survives.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail their tests")]

mod batches;
mod bounded_start;
mod compaction;
mod compaction_faults;
mod crash;
mod damaged_bodies;
mod durable_writes;
mod faults;
mod file_operations;
mod frozen;
mod garbage;
mod journal;
mod key_view;
mod model;
mod power_cuts;
mod rollback;
mod second_witness;
mod sharing;
mod spared_room;
mod start_up;
mod verify;
