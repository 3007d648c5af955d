//! Streams of buckets on simulated disks, clocks and threads.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail their tests")]

mod busy_file;
mod consumer;
mod durability;
mod failovers;
mod memory;
mod messages;
mod model;
mod out_of_order;
mod progress;
mod purge;
mod read_ahead;
mod replicator;
mod requests;
mod support;
mod takeover;
