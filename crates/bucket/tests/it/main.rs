//! Buckets on simulated disks, clocks and threads, with everything going wrong that can.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail their tests")]

mod backup;
mod collections;
mod compaction;
mod compaction_damage;
mod compression;
mod crash_model;
mod damage;
mod damage_classes;
mod disk_failures;
mod ephemeral;
mod evicted_documents;
mod eviction;
mod eviction_policy;
mod flush_all;
mod flush_pace;
mod foreign;
mod full_journal;
mod heard_log;
mod journal;
mod locks;
mod lookups;
mod memory_quota;
mod paths;
mod prepares;
mod races;
mod range_scans;
mod received;
mod reset;
mod soak;
mod starts;
mod support;
mod vbucket_life;
mod warmup;
