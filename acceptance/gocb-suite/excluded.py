"""What the Go SDK's own tests are not asked for here, and why."""

# Services that are not there: query, search, analytics, views, eventing.
SERVICES = (
    "view", "query", "clusterQuery", "queryindex", "collectionsquery", "queryimprovederrors",
    "enhancedpreparedstatements", "transactionsquery", "transactionssinglequeryexists", "search",
    "searchindex", "searchanalyze", "scopesearch", "scopesearchindex", "vectorsearch", "analytics",
    "analyticsindex", "analyticspending", "analyticsindexlinks", "analyticsindexscopeslinks",
    "collectionsanalytics", "pinganalytics", "eventingmanagement", "scopeeventingmanagement",
)

# Limits of tenants, groups of nodes, buckets without persistence or replicas and rules of conflict
# that users write are not there.
OTHERS = ("ratelimits", "collectionsmgrmaxcollections", "zoneawarereplicareads", "memcachedbucket",
          "customconflictresolution")

FEATURES = SERVICES + OTHERS

# Tests that no feature names, and why.
TESTS = (
    "TestClusterPingAll",  # wants more than one service
    # Want Magma: there is one storage engine, and no history of documents' versions.
    "TestBucketMgrHistoryRetention", "TestBucketMgrStorageBackendMagma",
    "TestCollectionHistoryRetentionTest", "TestCollectionHistoryRetentionTestV2",
    # Wants a context that is cancelled before to win against an answer; a fast answer may win.
    "TestBasicCrudContext",
    # Want an address of another network that does not answer.
    "TestBucketWaitUntilReadyFastFailConnStr", "TestClusterWaitUntilReadyFastFailConnStr",
)
