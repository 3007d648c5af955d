//! What is asked of the nodes.

use crate::dialect::{Dialect, Operation};
use crate::load::Cell;

/// vBuckets of the node's bucket.
const VBUCKETS: u16 = 1024;
const VALUE_SIZES: [usize; 2] = [100, 4096];
const PIPELINES: [usize; 2] = [1, 16];
const OPERATIONS: [Operation; 2] = [Operation::Get, Operation::Set];

/// Where and how a node is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// In a report.
    pub name: &'static str,
    /// Whether it is the port that SDKs speak to, with a login, or the memcached port, without.
    pub is_data_port: bool,
    /// How.
    pub dialect: Dialect,
    /// Whether there are nodes that do not know it.
    pub is_optional: bool,
}

/// As SDKs speak.
pub const COUCHBASE: Way =
    Way::new("couchbase", true, Dialect::Couchbase { vbuckets: VBUCKETS }, false);
/// As memcached's clients speak.
pub const MEMCACHED: Way = Way::new("memcached", false, Dialect::Memcached, false);
/// As SDKs write what must not be lost.
pub const DURABLE: Way =
    Way::new("durable", true, Dialect::CouchbaseDurable { vbuckets: VBUCKETS }, false);
/// As SDKs look into documents.
pub const SUB_DOCUMENT: Way =
    Way::new("sub-document", true, Dialect::SubDocument { vbuckets: VBUCKETS }, true);
/// As people speak, and memcached's older clients.
pub const TEXT: Way = Way::new("text", false, Dialect::Text, true);

/// One kind of request.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// Where and how it is sent.
    pub way: Way,
    /// What it is.
    pub cell: Cell,
    /// How many make a turn.
    pub requests: usize,
}

impl Way {
    const fn new(
        name: &'static str,
        is_data_port: bool,
        dialect: Dialect,
        is_optional: bool,
    ) -> Self {
        Self { name, is_data_port, dialect, is_optional }
    }
}

impl Step {
    fn new(way: Way, operation: Operation, value_bytes: usize, pipeline: usize) -> Self {
        // Of large documents half as many are written: the disk is not to be the measure.
        let is_large_write = operation != Operation::Get && value_bytes > VALUE_SIZES[0];
        let requests = match (way.dialect, pipeline) {
            (Dialect::CouchbaseDurable { .. }, _) => 2_000,
            (_, 1) if is_large_write => 8_000,
            (_, 1) => 16_000,
            _ if is_large_write => 32_000,
            _ => 64_000,
        };
        Self { way, cell: Cell { operation, pipeline, value_bytes }, requests }
    }

    /// In a report.
    pub fn name(&self) -> String {
        let Cell { operation, pipeline, value_bytes } = self.cell;
        let (way, operation) = (self.way.name, operation.name());
        format!("{way} {operation} {value_bytes} B, pipeline {pipeline}")
    }
}

/// All steps. Those of a group take turns with each other, and only then the next group begins:
/// what writes leave to be done afterwards is not to fall upon reads.
pub fn groups() -> Vec<Vec<Step>> {
    // The first of all: its documents are JSON, and made of nothing.
    let mut groups = vec![of_each_operation(SUB_DOCUMENT)];
    for value_bytes in VALUE_SIZES {
        for operation in OPERATIONS {
            let step =
                |way| PIPELINES.map(|pipeline| Step::new(way, operation, value_bytes, pipeline));
            groups.push([COUCHBASE, MEMCACHED].into_iter().flat_map(step).collect());
        }
    }
    groups.push(of_each_operation(TEXT));
    groups.push(vec![Step::new(DURABLE, Operation::Set, VALUE_SIZES[0], PIPELINES[0])]);
    groups
}

fn of_each_operation(way: Way) -> Vec<Step> {
    OPERATIONS.map(|operation| Step::new(way, operation, VALUE_SIZES[0], PIPELINES[1])).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_have_names_of_their_own() {
        let mut names: Vec<String> = groups().iter().flatten().map(Step::name).collect();
        let count = names.len();
        assert!(names.contains(&"couchbase get 4096 B, pipeline 16".to_owned()), "{names:?}");
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn documents_of_paths_are_made_of_nothing() {
        assert_eq!(groups()[0][0].way, SUB_DOCUMENT);
    }
}
