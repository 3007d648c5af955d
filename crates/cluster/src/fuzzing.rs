//! Entrance for the fuzzers: any bytes, no panic.

use crate::plan::ClusterPlan;

/// Reads `bytes` as the map that nodes are handed over REST, or read from a file. A map that is
/// taken is the same when it is written and read again.
pub fn cluster_plan(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let Ok(plan) = ClusterPlan::parse(&text, "default") else { return };
    let read_back = ClusterPlan::parse(&plan.to_json(), "default");
    assert_eq!(read_back.as_ref(), Ok(&plan), "a map is its text");
}
