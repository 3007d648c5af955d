//! All requests that the port answers: what each needs, and what it is for. Who may do what, and
//! `/openapi.json`, are made from these rows.

use auth::Privilege;

/// Where a privilege is needed. Names are those of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NeededAt {
    /// In the cluster.
    Node,
    /// In the bucket of the path.
    Bucket,
    /// In the bucket of the path, or a part of it.
    BucketOrPart,
    /// In the scope of the path.
    Scope,
}

/// A request that the port answers.
#[derive(Clone, Copy, Debug)]
pub struct RestRoute {
    /// In capitals.
    pub method: &'static str,
    /// With names in braces where others stand.
    pub path: &'static str,
    /// What it needs; nothing where everybody who has logged in may.
    pub need: Option<(NeededAt, Privilege)>,
    /// What it is for.
    pub summary: &'static str,
}

type Need = Option<(NeededAt, Privilege)>;

const fn route(
    method: &'static str,
    path: &'static str,
    need: Need,
    summary: &'static str,
) -> RestRoute {
    RestRoute { method, path, need, summary }
}

const fn on_node(privilege: Privilege) -> Need {
    Some((NeededAt::Node, privilege))
}

const fn in_bucket(privilege: Privilege) -> Need {
    Some((NeededAt::Bucket, privilege))
}

const fn in_part(privilege: Privilege) -> Need {
    Some((NeededAt::BucketOrPart, privilege))
}

const fn in_scope(privilege: Privilege) -> Need {
    Some((NeededAt::Scope, privilege))
}

pub(crate) const BUCKET: &str = "/pools/default/buckets/{bucket}";
pub(crate) const SCOPES: &str = "/pools/default/buckets/{bucket}/scopes";
const SCOPE: &str = "/pools/default/buckets/{bucket}/scopes/{scope}";
pub(crate) const COLLECTIONS: &str = "/pools/default/buckets/{bucket}/scopes/{scope}/collections";
const COLLECTION: &str = "/pools/default/buckets/{bucket}/scopes/{scope}/collections/{collection}";
const DOCUMENTS: &str =
    "/pools/default/buckets/{bucket}/scopes/{scope}/collections/{collection}/docs";
const DOCUMENT: &str =
    "/pools/default/buckets/{bucket}/scopes/{scope}/collections/{collection}/docs/{document}";
const EXTERNAL_ADDRESS: &str = "/node/controller/setupAlternateAddresses/external";

/// All requests. What is not here is for full administrators.
pub const REST_ROUTES: &[RestRoute] = &[
    route("GET", "/", None, "Where the pools are"),
    route("GET", "/whoami", None, "Who asks, with that user's roles"),
    route("POST", "/controller/changePassword", None, "Give oneself another password"),
    route(
        "POST",
        "/pools/default/checkPermissions",
        None,
        "Which of these permissions the user has",
    ),
    route("GET", "/pools", None, "What kind of server this is"),
    route(
        "GET",
        "/pools/default",
        on_node(Privilege::SystemSettings),
        "The cluster: nodes, quotas, where the rest is",
    ),
    route(
        "POST",
        "/pools/default",
        on_node(Privilege::SettingsWrite),
        "Name the cluster; confirm the memory quota",
    ),
    route("GET", "/pools/nodes", on_node(Privilege::SystemSettings), "The nodes of the cluster"),
    route(
        "GET",
        "/pools/default/nodeServices",
        on_node(Privilege::SystemSettings),
        "The ports of all nodes",
    ),
    route(
        "GET",
        "/pools/default/nodeServicesStreaming",
        on_node(Privilege::SystemSettings),
        "The ports of all nodes, and again whenever they change",
    ),
    route(
        "GET",
        "/pools/default/terseClusterInfo",
        on_node(Privilege::SystemSettings),
        "The cluster in a few words",
    ),
    route("GET", "/pools/default/tasks", on_node(Privilege::TasksRead), "What is under way"),
    route("GET", "/metrics", on_node(Privilege::SimpleStats), "Samples for Prometheus"),
    route("GET", "/_prometheusMetrics", on_node(Privilege::SimpleStats), "The same"),
    route(
        "GET",
        "/_prometheusMetricsHigh",
        on_node(Privilege::SimpleStats),
        "Samples for Prometheus by commands and collections",
    ),
    route(
        "GET",
        "/settee/clusterMap",
        on_node(Privilege::SettingsRead),
        "The map that the node carries out",
    ),
    route(
        "PUT",
        "/settee/clusterMap",
        on_node(Privilege::NodesWrite),
        "Have the node carry out a map",
    ),
    route(
        "POST",
        "/settee/users",
        on_node(Privilege::NodesWrite),
        "How nodes give each other their users",
    ),
    route("GET", "/settee/logLevel", on_node(Privilege::SettingsRead), "Which lines the node logs"),
    route(
        "POST",
        "/settee/logLevel",
        on_node(Privilege::SettingsWrite),
        "Have the node log other lines, until it stops",
    ),
    route(
        "GET",
        "/settee/vbuckets/damaged",
        on_node(Privilege::SettingsRead),
        "The vBuckets whose files are damaged",
    ),
    route(
        "POST",
        "/settee/vbuckets/{vbid}/reset",
        on_node(Privilege::NodesWrite),
        "Have a damaged vBucket begin anew",
    ),
    route(
        "GET",
        "/pools/default/b/{bucket}",
        in_bucket(Privilege::BucketRead),
        "A bucket's configuration, as SDKs read it",
    ),
    route(
        "GET",
        "/pools/default/bs/{bucket}",
        in_bucket(Privilege::BucketRead),
        "A bucket's configuration, and again whenever it changes",
    ),
    route(
        "GET",
        "/pools/default/bucketsStreaming/{bucket}",
        in_bucket(Privilege::BucketRead),
        "A bucket's configuration, and again whenever it changes",
    ),
    route("GET", "/pools/default/buckets", None, "All buckets that the user may see"),
    route("POST", "/pools/default/buckets", on_node(Privilege::BucketCreate), "Create a bucket"),
    route(
        "GET",
        BUCKET,
        in_bucket(Privilege::BucketRead),
        "A bucket with its settings and figures",
    ),
    route("POST", BUCKET, in_bucket(Privilege::BucketWrite), "Edit a bucket"),
    route(
        "DELETE",
        BUCKET,
        in_bucket(Privilege::BucketDelete),
        "Delete a bucket with everything in it",
    ),
    route(
        "POST",
        "/pools/default/buckets/{bucket}/controller/doFlush",
        in_bucket(Privilege::BucketFlush),
        "Delete all documents of a bucket",
    ),
    route(
        "POST",
        "/pools/default/buckets/{bucket}/controller/compactBucket",
        in_bucket(Privilege::BucketCompact),
        "Compact a bucket's files",
    ),
    route(
        "POST",
        "/pools/default/buckets/{bucket}/controller/compactDatabases",
        in_bucket(Privilege::BucketCompact),
        "The same",
    ),
    route(
        "POST",
        "/pools/default/buckets/{bucket}/controller/unsafePurgeBucket",
        in_bucket(Privilege::BucketCompact),
        "Refused: deletions are forgotten by their age",
    ),
    route(
        "POST",
        "/pools/default/buckets/{bucket}/controller/cancelBucketCompaction",
        in_bucket(Privilege::BucketCompact),
        "Stop compacting a bucket's files",
    ),
    route(
        "POST",
        "/settee/buckets/{bucket}/compaction",
        in_bucket(Privilege::BucketCompact),
        "Compact the files that this node alone has of a bucket",
    ),
    route(
        "DELETE",
        "/settee/buckets/{bucket}/compaction",
        in_bucket(Privilege::BucketCompact),
        "Stop compacting those",
    ),
    route(
        "GET",
        "/pools/default/buckets/{bucket}/backup",
        in_bucket(Privilege::Backup),
        "Begin a backup: what is in it",
    ),
    route(
        "GET",
        "/pools/default/buckets/{bucket}/backup/{backup}/{vbid}",
        in_bucket(Privilege::Backup),
        "The file of one vBucket of a backup",
    ),
    route(
        "GET",
        SCOPES,
        in_part(Privilege::CollectionRead),
        "The scopes and collections of a bucket",
    ),
    route("POST", SCOPES, in_bucket(Privilege::CollectionWrite), "Create a scope"),
    route(
        "PUT",
        SCOPES,
        in_bucket(Privilege::CollectionWrite),
        "Have these scopes and collections, and no others",
    ),
    route(
        "POST",
        "/pools/default/buckets/{bucket}/scopes/@ensureManifest/{uid}",
        in_part(Privilege::CollectionRead),
        "Wait until the node has this manifest or a newer one",
    ),
    route(
        "DELETE",
        SCOPE,
        in_bucket(Privilege::CollectionWrite),
        "Drop a scope with its collections",
    ),
    route("POST", COLLECTIONS, in_scope(Privilege::CollectionWrite), "Create a collection"),
    route("PATCH", COLLECTION, in_scope(Privilege::CollectionWrite), "Edit a collection"),
    route("DELETE", COLLECTION, in_scope(Privilege::CollectionWrite), "Drop a collection"),
    route(
        "GET",
        DOCUMENTS,
        in_part(Privilege::RangeScan),
        "Keys of a collection's documents on this node, a page at a time",
    ),
    route("GET", DOCUMENT, in_part(Privilege::Read), "A document of this node"),
    route("POST", DOCUMENT, in_part(Privilege::Upsert), "Store a document"),
    route("DELETE", DOCUMENT, in_part(Privilege::Delete), "Delete a document"),
    route("GET", "/settings/rbac/users", on_node(Privilege::SecurityRead), "All users"),
    route("GET", "/settings/rbac/users/local", on_node(Privilege::SecurityRead), "All users"),
    route("GET", "/settings/rbac/users/local/{user}", on_node(Privilege::SecurityRead), "A user"),
    route(
        "PUT",
        "/settings/rbac/users/local/{user}",
        on_node(Privilege::SecurityWrite),
        "Create a user, or edit one",
    ),
    route(
        "DELETE",
        "/settings/rbac/users/local/{user}",
        on_node(Privilege::SecurityWrite),
        "Delete a user",
    ),
    route(
        "GET",
        "/settings/rbac/roles",
        on_node(Privilege::SecurityRead),
        "The roles that there are",
    ),
    route("GET", "/settings/rbac/groups", on_node(Privilege::SecurityRead), "All groups"),
    route("GET", "/settings/rbac/groups/{group}", on_node(Privilege::SecurityRead), "A group"),
    route(
        "PUT",
        "/settings/rbac/groups/{group}",
        on_node(Privilege::SecurityWrite),
        "Create a group, or edit one",
    ),
    route(
        "DELETE",
        "/settings/rbac/groups/{group}",
        on_node(Privilege::SecurityWrite),
        "Delete a group",
    ),
    route(
        "GET",
        "/pools/default/certificate",
        None,
        "The certificate of the authority that clients trust",
    ),
    route(
        "GET",
        "/pools/default/certificates",
        on_node(Privilege::SecurityRead),
        "The certificates that the node shows",
    ),
    route(
        "GET",
        "/pools/default/trustedCAs",
        on_node(Privilege::SecurityRead),
        "The authorities whose clients the node trusts",
    ),
    route(
        "GET",
        "/settings/clientCertAuth",
        on_node(Privilege::SecurityRead),
        "What is asked of clients' certificates",
    ),
    route(
        "POST",
        "/settings/clientCertAuth",
        on_node(Privilege::SecurityWrite),
        "Ask something else of clients' certificates",
    ),
    route(
        "POST",
        "/node/controller/reloadCertificate",
        on_node(Privilege::NodesWrite),
        "Read the node's certificate again",
    ),
    route(
        "POST",
        "/node/controller/loadTrustedCAs",
        on_node(Privilege::NodesWrite),
        "Read the trusted authorities again",
    ),
    route(
        "GET",
        "/settings/passwordPolicy",
        on_node(Privilege::SecurityRead),
        "What new passwords have to have",
    ),
    route(
        "POST",
        "/settings/passwordPolicy",
        on_node(Privilege::SecurityWrite),
        "Ask something else of new passwords",
    ),
    route("POST", "/clusterInit", on_node(Privilege::NodesWrite), "Set the node up at once"),
    route(
        "POST",
        "/nodeInit",
        on_node(Privilege::NodesWrite),
        "Set up the node's name and directories",
    ),
    route("GET", "/nodes/self", on_node(Privilege::SystemSettings), "The node that is asked"),
    route(
        "POST",
        "/nodes/self/controller/settings",
        on_node(Privilege::NodesWrite),
        "Confirm the node's directories",
    ),
    route(
        "POST",
        "/node/controller/rename",
        on_node(Privilege::NodesWrite),
        "Give the node another host name",
    ),
    route(
        "POST",
        "/node/controller/setupServices",
        on_node(Privilege::NodesWrite),
        "Confirm the node's services",
    ),
    route(
        "PUT",
        EXTERNAL_ADDRESS,
        on_node(Privilege::NodesWrite),
        "Say where the node is reached from elsewhere",
    ),
    route(
        "DELETE",
        EXTERNAL_ADDRESS,
        on_node(Privilege::NodesWrite),
        "Forget where the node is reached from elsewhere",
    ),
    route("GET", "/internalSettings", on_node(Privilege::SettingsRead), "Limits of the node"),
    route(
        "GET",
        "/settings/autoCompaction",
        on_node(Privilege::SettingsRead),
        "When files are compacted",
    ),
    route(
        "GET",
        "/settings/autoFailover",
        on_node(Privilege::SettingsRead),
        "Whether nodes fail over by themselves",
    ),
    route(
        "POST",
        "/settings/autoFailover",
        on_node(Privilege::SettingsWrite),
        "Confirm that nodes do not fail over by themselves",
    ),
    route(
        "POST",
        "/settings/indexes",
        on_node(Privilege::SettingsWrite),
        "Refused: there is no index service",
    ),
    route(
        "GET",
        "/settings/alerts",
        on_node(Privilege::SettingsRead),
        "Who is sent a mail: nobody",
    ),
    route(
        "POST",
        "/settings/alerts",
        on_node(Privilege::SettingsWrite),
        "Confirm that nobody is sent a mail",
    ),
    route(
        "POST",
        "/settings/alerts/testEmail",
        on_node(Privilege::SettingsWrite),
        "Refused: nobody is sent a mail",
    ),
    route(
        "GET",
        "/settings/audit",
        on_node(Privilege::SecurityRead),
        "Whether changes are noted in the audit log",
    ),
    route(
        "POST",
        "/settings/audit",
        on_node(Privilege::SecurityWrite),
        "Switch the audit log on or off",
    ),
    route(
        "GET",
        "/settings/audit/descriptors",
        on_node(Privilege::SecurityRead),
        "The events of the audit log",
    ),
    route(
        "GET",
        "/settings/security",
        on_node(Privilege::SecurityRead),
        "What holds for connections and sessions",
    ),
    route(
        "POST",
        "/settings/security",
        on_node(Privilege::SecurityWrite),
        "Confirm what holds for connections and sessions",
    ),
    route(
        "GET",
        "/settings/stats",
        on_node(Privilege::SettingsRead),
        "Whether figures are sent to anybody",
    ),
    route(
        "POST",
        "/settings/stats",
        on_node(Privilege::SettingsWrite),
        "Accepted: nothing is sent to anybody",
    ),
    route(
        "GET",
        "/settings/web",
        on_node(Privilege::SettingsRead),
        "The administrator who asks, and the port",
    ),
    route(
        "POST",
        "/settings/web",
        on_node(Privilege::SettingsWrite),
        "Give the administrator a password",
    ),
    route("GET", "/openapi.json", None, "This description"),
    route("GET", "/nodeStatuses", on_node(Privilege::SystemSettings), "The status of every node"),
    route("GET", "/versions", None, "The version of the server"),
    route(
        "GET",
        "/pools/default/serverGroups",
        on_node(Privilege::SystemSettings),
        "The groups of nodes: all nodes are in one",
    ),
    route(
        "GET",
        "/pools/default/rebalanceProgress",
        on_node(Privilege::TasksRead),
        "Whether data is moved: no",
    ),
    route(
        "GET",
        "/poolsStreaming/default",
        on_node(Privilege::SystemSettings),
        "The cluster, and again whenever its map changes",
    ),
    route(
        "GET",
        "/prometheus_sd_config",
        on_node(Privilege::SimpleStats),
        "Where Prometheus finds all nodes",
    ),
    route(
        "GET",
        "/prometheus_sd_config.yaml",
        on_node(Privilege::SimpleStats),
        "Where Prometheus finds all nodes, as YAML",
    ),
    route(
        "POST",
        "/pools/default/stats/range",
        on_node(Privilege::SimpleStats),
        "Figures over time, several queries in JSON",
    ),
    route(
        "GET",
        "/pools/default/stats/range/{metric}",
        on_node(Privilege::SimpleStats),
        "A figure over time",
    ),
    route(
        "GET",
        "/pools/default/stats/range/{metric}/{function}",
        on_node(Privilege::SimpleStats),
        "What a function makes of a figure over time",
    ),
    route(
        "GET",
        "/pools/default/buckets/{bucket}/stats",
        in_bucket(Privilege::SimpleStats),
        "A bucket's figures over the last minute, by their old names",
    ),
    route(
        "GET",
        "/pools/default/buckets/{bucket}/nodes",
        in_bucket(Privilege::BucketRead),
        "The nodes of a bucket",
    ),
    route(
        "GET",
        "/pools/default/buckets/{bucket}/nodes/{node}/stats",
        in_bucket(Privilege::SimpleStats),
        "The same of the node that is asked",
    ),
    route(
        "GET",
        "/settings/rbac/users/external",
        on_node(Privilege::SecurityRead),
        "Users of other places: none",
    ),
    route(
        "GET",
        "/settings/rbac/users/external/{user}",
        on_node(Privilege::SecurityRead),
        "Not found: there are no users of other places",
    ),
    route(
        "PUT",
        "/settings/rbac/users/external/{user}",
        on_node(Privilege::SecurityWrite),
        "Refused: there are no users of other places",
    ),
    route(
        "DELETE",
        "/settings/rbac/users/external/{user}",
        on_node(Privilege::SecurityWrite),
        "Not found: there are no users of other places",
    ),
    route("GET", "/settee/log", on_node(Privilege::SecurityRead), "The last lines of the log"),
    route(
        "GET",
        "/logs",
        on_node(Privilege::SecurityRead),
        "The last lines of the log, as the original lists events",
    ),
    route(
        "GET",
        "/settee/figuresStreaming",
        on_node(Privilege::SimpleStats),
        "The figures of each second, as server-sent events",
    ),
    route(
        "GET",
        "/settee/buckets/{bucket}/vbuckets",
        in_bucket(Privilege::BucketRead),
        "A bucket's vBuckets: where each is, and how this node has it",
    ),
    route(
        "GET",
        "/settee/buckets/{bucket}/collections",
        in_part(Privilege::CollectionRead),
        "How many documents each collection has on this node",
    ),
    route(
        "GET",
        "/settee/buckets/{bucket}/timings",
        in_bucket(Privilege::SimpleStats),
        "How long a bucket's commands and its background work take, as histograms",
    ),
    route(
        "GET",
        "/settee/buckets/{bucket}/slowOperations",
        on_node(Privilege::Stats),
        "What was slow, and where the time went",
    ),
    route(
        "GET",
        "/settee/slowThresholds",
        on_node(Privilege::Stats),
        "From how many milliseconds on commands are slow",
    ),
    route(
        "POST",
        "/settee/slowThresholds",
        on_node(Privilege::Administrator),
        "Have commands be slow from another duration on, until the node stops",
    ),
    route(
        "GET",
        "/settee/buckets/{bucket}/hotKeys",
        on_node(Privilege::Stats),
        "Which documents were asked for most in the last sampling",
    ),
    route(
        "POST",
        "/settee/hotKeys",
        on_node(Privilege::Administrator),
        "Sample which documents are asked for most, for some seconds",
    ),
];
