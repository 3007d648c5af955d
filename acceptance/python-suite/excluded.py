"""What the Python SDK's own tests are not asked for here, and why."""

# Tests, by how their names begin.
TESTS = (
    # Ask the service query.
    "test_diagnostics_after_query", "test_query", "test_bad_query",
    # Make a bucket of Magma's, and one whose views have indexes of replicas.
    "test_bucket_backend_magma", "test_bucket_create_replica_index_true",
    # Make users whose passwords another server knows.
    "test_external_",
    # Want what the library and the server of their time said; those of later packages want what
    # is said here: of a document that is not locked, of another CAS, of paths that are not there
    # in a projection, and of a transaction's options.
    "test_get_after_lock", "test_get_and_lock_replace_with_cas", "test_unlock_wrong_cas",
    "test_project_too_many_projections", "test_expiration_time", "test_kv_timeout",
)
