//! What clients may take of a node.

use server::ServerLimits;

use crate::config::NodeConfig;

/// The part of the descriptors that the buckets' files may take.
const FILES_SHARE: u64 = 4;
/// Descriptors that neither connections nor the buckets' files take: logs, the journal, REST,
/// replication, backups.
const FILES_RESERVED: u64 = 160;
/// Files of a bucket that are kept open however few descriptors there are.
const FILES_MIN: usize = 16;
/// Connections that are let in however few descriptors there are.
const CONNECTIONS_MIN: usize = 16;
/// The part of the quota that clients may have the node hold beside documents, and the least.
const CLIENT_MEMORY_SHARE: u64 = 4;
const CLIENT_MEMORY_MIN_BYTES: usize = 64 << 20;

/// How many files of one of so many buckets are kept open.
pub(crate) fn open_files_max(open_files_limit: u64, bucket_count: usize) -> usize {
    let all = usize::try_from(open_files_limit / FILES_SHARE).unwrap_or(1024);
    (all / bucket_count.max(1)).max(FILES_MIN)
}

/// Connections take the descriptors that files leave; what they hold takes a part of the quota.
pub(crate) fn server_limits(config: &NodeConfig, open_files_limit: u64) -> ServerLimits {
    let defaults = ServerLimits::default();
    let files = open_files_limit / FILES_SHARE + FILES_RESERVED;
    let left = usize::try_from(open_files_limit.saturating_sub(files)).unwrap_or(usize::MAX);
    let memory = usize::try_from(config.buckets_bytes_max / CLIENT_MEMORY_SHARE);
    assert!(defaults.connections_max >= CONNECTIONS_MIN, "some connections are always let in");
    ServerLimits {
        connections_max: left.clamp(CONNECTIONS_MIN, defaults.connections_max),
        client_bytes_max: memory.unwrap_or(usize::MAX).max(CLIENT_MEMORY_MIN_BYTES),
        strangers_of_address_max: config.strangers_of_address_max,
        ..defaults
    }
}
