//! `settee` with real processes.
#![expect(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

mod support;

mod cluster_run;
mod logins;
mod logs;
mod older_versions;
mod starts;
mod tools;
