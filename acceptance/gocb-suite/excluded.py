"""What the Go SDK's own tests are not asked for here, and why."""

# Services that are not there: query, search, analytics, views, eventing.
SERVICES = (
    "view", "query", "clusterQuery", "queryindex", "collectionsquery", "queryimprovederrors",
    "enhancedpreparedstatements", "transactionsquery", "transactionssinglequeryexists", "search",
    "searchindex", "searchanalyze", "scopesearch", "scopesearchindex", "vectorsearch", "analytics",
    "analyticsindex", "analyticspending", "analyticsindexlinks", "analyticsindexscopeslinks",
    "collectionsanalytics", "pinganalytics", "eventingmanagement", "scopeeventingmanagement",
)

# Buckets, users, groups and roles are not made over REST.
MANAGEMENT = (
    "bucketmgr", "bucketmgrdura", "storagebackend", "customconflictresolution", "flushbucket",
    "memcachedbucket", "historyretention", "usermanager", "usergroup", "usermanagerchangepassword",
)

# Limits of tenants and groups of nodes are not there.
OTHERS = ("ratelimits", "collectionsmgrmaxcollections", "zoneawarereplicareads")

FEATURES = SERVICES + MANAGEMENT + OTHERS

# Tests that no feature names, and why.
TESTS = (
    "TestClusterPingAll",  # wants more than one service
    # Wants a context that is cancelled before to win against an answer; a fast answer may win.
    "TestBasicCrudContext",
    # Want an address of another network that does not answer.
    "TestBucketWaitUntilReadyFastFailConnStr", "TestClusterWaitUntilReadyFastFailConnStr",
)

# What their preparation does and this node refuses, by file: a cluster is not given another name.
# Everything that is measured has the name which it has.
REPLACED = {"testsuite_test.go": ("\tsuite.setClusterName()\n}", "}")}
