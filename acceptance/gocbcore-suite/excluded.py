"""What the tests of the Go SDK's core are not asked for here, and why."""

# Services that are not there, buckets without persistence or replicas, and figures of tenants.
FEATURES = ("views", "n1ql", "n1qlreasons", "cbas", "fts", "memd", "computeunits")

# Tests that no feature names, and why.
TESTS = (
    "TestGetHttpEps",  # wants the query service
    # Want durable writes to be cancelled, and figures to be late, before their answers are there;
    # a fast answer may win.
    "TestZombieLoggerComponentCancelledOps", "TestTelemetryOrphanedResponses", "TestStatsTimeout",
    # Ask the client alone, which has to be within 10 ms of its plan.
    "TestLazyCircuitBreakerSuccessfulCanary", "TestLazyCircuitBreakerFailedCanary",
    "TestLazyCircuitBreakerReset",
)
