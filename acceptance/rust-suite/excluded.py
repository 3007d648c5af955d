"""What the Rust SDK's own tests are not asked for here, and why."""

# Programs, as `crate::program`.
PROGRAMS = (
    # Services that are not there: query and search.
    "couchbase::query", "couchbase::search", "couchbase-core::query",
    "couchbase-core::search_indexes",
    "couchbase::mod",  # has no tests
    # Has none without a feature with which it counts what the SDK takes from its allocator.
    "couchbase-core::allocations",
)

# Tests, as `crate::program::test`.
TESTS = (
    # Want the services query and search in the answers to a ping.
    "couchbase::diagnostics::test_bucket_ping", "couchbase::diagnostics::test_cluster_ping",
    "couchbase-core::diagnostics::test_ping",
    # Ask the service query.
    "couchbase-core::agent_manager::test_get_cluster_agent",
    "couchbase-core::http::test_row_streamer",
    # Make a bucket of Magma's, which keeps older versions of documents.
    "couchbase-core::bucket_management::test_create_bucket_with_history_retention",
    "couchbase-core::mgmt::test_collections_history_retention",
)

# What is replaced in their files: a port that a node has only if nobody else is there.
REPLACED = {"couchbase-core/tests/http.rs": (
    '"http://{host}:8091/pools/default/terseClusterInfo")',
    '"http://{host}:{}/pools/default/terseClusterInfo", std::env::var("MANAGEMENT_PORT").unwrap())',
)}
