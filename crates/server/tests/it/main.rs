//! A data port on the loopback interface, and clients that behave badly.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail their tests")]

mod bad_input;
mod bootstrap;
mod buckets;
mod budget;
mod cluster_map;
mod commands;
mod dcp;
mod documents;
mod durable_writes;
mod ephemeral;
mod eviction;
mod idle;
mod opcodes;
mod pipelining;
mod privileges;
mod relays;
mod scans;
mod statistics;
mod support;
mod text;
mod text_flow;
mod tls;
mod user_limits;
mod vbuckets;
mod wire;
