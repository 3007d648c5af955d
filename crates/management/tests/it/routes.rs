//! Every route answers with the status and the fields that clients look for.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use cluster::{StorageFigures, Usage};
use document::Manifest;
use management::{BucketKind, CompactionError, FlushError, Limits};

use crate::fake_node::{COLD, address};
use crate::http_client::HttpClient;
use crate::rest_port::RestPort;

/// Method, target, status, and where in the JSON document something stands.
type Route = (&'static str, &'static str, u16, &'static [&'static str]);

const TERSE: &[&str] = &[
    "/rev",
    "/revEpoch",
    "/name",
    "/uuid",
    "/nodeLocator",
    "/nodes/0/hostname",
    "/nodesExt/0/services/kv",
    "/nodesExt/0/services/mgmt",
    "/vBucketServerMap/vBucketMap/15/0",
    "/bucketCapabilities/0",
    "/clusterCapabilities",
];

/// Any of these missing, and some client throws.
const VERBOSE: &[&str] = &[
    "/name",
    "/uuid",
    "/nodeLocator",
    "/bucketType",
    "/storageBackend",
    "/numVBuckets",
    "/uri",
    "/streamingUri",
    "/bucketCapabilities",
    "/vBucketServerMap/serverList/0",
    "/controllers/flush",
    "/nodes/0/hostname",
    "/nodes/0/status",
    "/nodes/0/version",
    "/nodes/0/services/0",
    "/nodes/0/ports/direct",
    "/nodes/0/clusterMembership",
    "/quota/ram",
    "/quota/rawRAM",
    "/replicaNumber",
    "/replicaIndex",
    "/basicStats/itemCount",
    "/basicStats/opsPerSec",
    "/basicStats/memUsed",
    "/basicStats/vbActiveNumNonResident",
    "/evictionPolicy",
    "/durabilityMinLevel",
    "/conflictResolutionType",
    "/maxTTL",
    "/compressionMode",
];

/// What the original tells of a cluster, and programs read.
const POOL: &[&str] = &[
    "/nodes/0/status",
    "/nodes/0/serverGroup",
    "/nodes/0/addressFamily",
    "/nodes/0/interestingStats/couch_docs_data_size",
    "/nodes/0/interestingStats/cmd_get",
    "/nodes/0/interestingStats/get_hits",
    "/nodes/0/interestingStats/vb_active_num_non_resident",
    "/nodes/0/systemStats/cpu_utilization_rate",
    "/nodes/0/systemStats/swap_total",
    "/nodes/0/systemStats/swap_used",
    "/buckets/uri",
    "/buckets/terseBucketsBase",
    "/bucketNames/0/bucketName",
    "/clusterName",
    "/alerts",
    "/controllers",
    "/counters",
    "/autoCompactionSettings/databaseFragmentationThreshold",
    "/maxScopeCount",
    "/maxCollectionCount",
    "/memoryQuota",
    "/indexMemoryQuota",
    "/checkPermissionsURI",
    "/nodeStatusesUri",
    "/rebalanceProgressUri",
    "/serverGroupsUri",
    "/trustedCAsURI",
    "/storageTotals/ram/quotaUsedPerNode",
    "/storageTotals/hdd/total",
    "/storageTotals/hdd/free",
];
const SELF: &[&str] =
    &["/otpNode", "/nodeUUID", "/thisNode", "/storage/hdd/0/path", "/storageTotals/hdd/used"];
const GLOBAL: &[&str] = &["/rev", "/revEpoch", "/nodesExt/0/services/mgmt", "/clusterUUID"];
const REFUSED: &[&str] = &["/errors/_"];

const ROUTES: &[Route] = &[
    ("GET", "/", 200, &["/pools"]),
    ("GET", "/whoami", 200, &["/id", "/domain", "/roles/0/role"]),
    ("GET", "/pools", 200, &["/pools/0/uri", "/uuid", "/implementationVersion", "/isEnterprise"]),
    ("GET", "/pools/default", 200, POOL),
    ("POST", "/pools/default", 200, &[]),
    ("POST", "/clusterInit", 400, &["/errors/username", "/errors/password"]),
    ("POST", "/nodeInit", 200, &[]),
    ("GET", "/nodes/self", 200, SELF),
    ("POST", "/nodes/self/controller/settings", 200, &[]),
    ("POST", "/node/controller/rename", 400, &["/errors/hostname"]),
    ("POST", "/node/controller/setupServices", 400, &["/errors/services"]),
    ("PUT", "/node/controller/setupAlternateAddresses/external", 400, &["/errors/hostname"]),
    ("DELETE", "/node/controller/setupAlternateAddresses/external", 200, &[]),
    ("GET", "/internalSettings", 200, &["/maxBucketCount"]),
    (
        "GET",
        "/settings/autoCompaction",
        200,
        &["/autoCompactionSettings/databaseFragmentationThreshold/percentage", "/purgeInterval"],
    ),
    ("GET", "/settings/autoFailover", 200, &["/enabled", "/timeout", "/count", "/maxCount"]),
    ("POST", "/settings/autoFailover", 400, &["/errors/enabled"]),
    ("POST", "/settings/indexes", 400, REFUSED),
    ("GET", "/settings/stats", 200, &["/sendStats"]),
    ("POST", "/settings/stats", 400, &["/errors/sendStats"]),
    ("GET", "/settings/web", 200, &["/port", "/username"]),
    ("POST", "/settings/web", 400, &["/errors/username", "/errors/password"]),
    ("GET", "/pools/nodes", 200, &["/nodes/0/otpNode"]),
    ("GET", "/pools/default/nodeServices", 200, GLOBAL),
    (
        "GET",
        "/pools/default/terseClusterInfo",
        200,
        &["/clusterUUID", "/orchestrator", "/isBalanced", "/clusterCompatVersion"],
    ),
    ("GET", "/nodeStatuses", 200, &["/127.0.0.1:12001/status", "/127.0.0.1:12001/otpNode"]),
    ("GET", "/versions", 200, &["/implementationVersion", "/componentsVersion/ns_server"]),
    ("GET", "/pools/default/serverGroups", 200, &["/groups/0/name", "/groups/0/nodes/0/otpNode"]),
    ("GET", "/pools/default/rebalanceProgress", 200, &["/status"]),
    ("GET", "/prometheus_sd_config", 200, &["/0/targets/0"]),
    ("GET", "/prometheus_sd_config?type=xml", 400, &["/errors/type"]),
    ("GET", "/pools/default/buckets/other/stats", 404, &[]),
    ("GET", "/pools/default/buckets/default/nodes", 200, &["/servers/0/stats/uri"]),
    ("GET", "/pools/default/buckets/default/nodes/127.0.0.1%3A1/stats", 404, &[]),
    ("GET", "/settings/rbac/users/external", 200, &[]),
    ("GET", "/settings/rbac/users/external/u", 404, &[]),
    ("PUT", "/settings/rbac/users/external/u", 400, REFUSED),
    ("DELETE", "/settings/rbac/users/external/u", 404, &[]),
    ("GET", "/pools/default/tasks", 200, &["/0/type", "/0/status"]),
    ("GET", "/pools/default/b/default", 200, TERSE),
    ("GET", "/pools/default/b/other", 404, &[]),
    ("GET", "/pools/default/bs/other", 404, &[]),
    ("GET", "/pools/default/buckets", 200, &["/0/name", "/0/quota/rawRAM"]),
    ("GET", "/pools/default/buckets/default", 200, VERBOSE),
    ("GET", "/pools/default/buckets/default?skipMap=true", 200, VERBOSE),
    ("GET", "/pools/default/buckets/other", 404, &[]),
    ("POST", "/pools/default/buckets", 400, &["/errors/name", "/errors/ramQuota"]),
    ("POST", "/pools/default/buckets/default", 200, &[]),
    ("POST", "/pools/default/buckets/other", 404, &[]),
    ("DELETE", "/pools/default/buckets/other", 404, &[]),
    ("POST", "/pools/default/buckets/other/controller/doFlush", 404, &[]),
    (
        "GET",
        "/pools/default/buckets/default/scopes",
        200,
        &["/uid", "/scopes/0/name", "/scopes/0/uid", "/scopes/0/collections/0/maxTTL"],
    ),
    ("GET", "/pools/default/buckets/other/scopes", 404, &[]),
    ("POST", "/pools/default/buckets/default/scopes", 400, &["/errors/name"]),
    ("PUT", "/pools/default/buckets/default/scopes", 400, REFUSED),
    ("DELETE", "/pools/default/buckets/default/scopes/s", 404, REFUSED),
    ("POST", "/pools/default/buckets/default/scopes/s/collections", 400, &["/errors/name"]),
    ("PATCH", "/pools/default/buckets/default/scopes/s/collections/c", 404, REFUSED),
    ("DELETE", "/pools/default/buckets/default/scopes/s/collections/c", 404, REFUSED),
    ("POST", "/pools/default/buckets/other/scopes", 404, &[]),
    ("POST", "/pools/default/buckets/default/scopes/@ensureManifest/0", 200, &[]),
    ("POST", "/pools/default/buckets/other/scopes/@ensureManifest/0", 404, &[]),
    ("GET", "/settings/rbac/users", 200, &["/0/id", "/0/roles/0/role"]),
    ("GET", "/settings/rbac/users/local", 200, &["/0/id"]),
    ("GET", "/settings/rbac/users/local/Administrator", 200, &["/id", "/domain", "/groups"]),
    ("GET", "/settings/rbac/users/local/nobody", 404, &[]),
    ("PUT", "/settings/rbac/users/local/u", 400, &["/errors/password"]),
    ("DELETE", "/settings/rbac/users/local/u", 404, &[]),
    ("GET", "/settings/rbac/roles", 200, &["/0/role", "/0/name", "/0/desc"]),
    ("GET", "/settings/rbac/groups", 200, &[]),
    ("GET", "/settings/rbac/groups/g", 404, &[]),
    ("DELETE", "/settings/rbac/groups/g", 404, &[]),
    ("GET", "/settings/passwordPolicy", 200, &["/minLength", "/enforceDigits"]),
    ("POST", "/controller/changePassword", 400, &["/errors/password"]),
    ("POST", "/pools/default/checkPermissions", 200, &[]),
    ("GET", "/healthz", 200, &["/status", "/warmup/progress"]),
    ("GET", "/logs", 200, &["/list/0/node", "/list/0/type", "/list/0/tstamp", "/list/1/text"]),
    ("GET", "/settings/alerts", 200, &["/enabled", "/emailServer/host", "/recipients"]),
    ("GET", "/settings/audit", 200, &["/auditdEnabled", "/logPath", "/rotateSize"]),
    ("GET", "/settings/audit/descriptors", 200, &["/0/id", "/0/name", "/0/description"]),
    ("GET", "/settings/security", 200, &["/tlsMinVersion", "/supportedCipherSuites/0"]),
    ("POST", "/settings/alerts", 400, &["/errors/enabled"]),
    ("POST", "/settings/alerts/testEmail", 400, &["/error"]),
    ("POST", "/pools/default/buckets/default/controller/compactDatabases", 200, &[]),
    ("POST", "/pools/default/buckets/default/controller/unsafePurgeBucket", 400, REFUSED),
    ("POST", "/pools/default/buckets/other/controller/unsafePurgeBucket", 404, &[]),
    ("GET", "/no/such/thing", 404, &[]),
    ("POST", "/whoami", 405, &[]),
    ("GET", "/pools/default/b/%ff", 400, &[]),
];

#[test]
fn every_route_answers_with_the_status_and_fields_that_clients_need() {
    let port = RestPort::start();
    // One connection for all: answers must also be framed rightly.
    let mut client = port.connect();
    for (method, target, status, pointers) in ROUTES {
        let answer = client.ask(method, target, "");
        assert_eq!(answer.status, *status, "{method} {target}: {answer:?}");
        for pointer in *pointers {
            let json = answer.json();
            assert!(json.pointer(pointer).is_some(), "{method} {target} {pointer}: {json}");
        }
    }
}

#[test]
fn a_slash_at_the_end_of_a_path_means_nothing() {
    let port = RestPort::start();
    let mut client = port.connect();
    for (method, target, status, pointer) in [
        ("GET", "/", 200, "/pools"),
        ("GET", "/pools/", 200, "/uuid"),
        ("GET", "/pools/default/", 200, "/nodes/0/status"),
        // As the Java SDK writes it.
        ("GET", "/pools/default/buckets/", 200, "/0/quota/rawRAM"),
        ("POST", "/pools/default/buckets/", 400, "/errors/name"),
        ("GET", "/pools/default/buckets/default/?skipMap=true", 200, "/quota/rawRAM"),
        ("GET", "/pools/default/buckets/other/", 404, ""),
        ("GET", "/pools/default/buckets/default/scopes//", 200, "/scopes/0/name"),
        ("GET", "/settings/rbac/users/local/Administrator/", 200, "/id"),
        // No name is no request for all.
        ("DELETE", "/settings/rbac/users/local/", 405, ""),
        ("DELETE", "/pools/default/buckets/", 405, ""),
        ("GET", "/pools/default/stats/range/kv_curr_items/?bucket=default", 200, "/data/0/metric"),
        ("GET", "/no/such/thing/", 404, ""),
    ] {
        let answer = client.ask(method, target, "");
        assert_eq!(answer.status, status, "{method} {target}: {answer:?}");
        if !pointer.is_empty() {
            assert!(answer.json().pointer(pointer).is_some(), "{method} {target}: {answer:?}");
        }
    }
    // But where files are beside it.
    assert_eq!(
        (client.ask("GET", "/ui/", "").status, client.ask("GET", "/ui", "").status),
        (200, 303)
    );
}

#[test]
fn what_clients_match_is_said_to_the_letter() {
    let port = RestPort::start();
    let missing = port.ask("GET", "/pools/default/buckets/other");
    assert_eq!(missing.body, "Requested resource not found.\r\n");
    let unknown = port.ask("GET", "/settings/rbac/users/local/nobody");
    assert_eq!(unknown.body, "\"Unknown user.\"");
    let form = "bucketType=membase&name=default&ramQuotaMB=100";
    let again = port.connect().ask("POST", "/pools/default/buckets", form);
    assert_eq!(again.json()["errors"]["name"], "Bucket with given name already exists");
    let whoami = port.ask("GET", "/whoami").json();
    assert_eq!((&whoami["id"], &whoami["domain"]), (&"Administrator".into(), &"admin".into()));
}

#[test]
fn every_node_has_every_field_and_one_name_whoever_is_asked() {
    let port = RestPort::start();
    let identities = |target: &str| {
        let json = port.ask("GET", target).json();
        let nodes = json["nodes"].as_array().unwrap();
        let fields = |node: &serde_json::Value| -> BTreeSet<String> {
            let names = node.as_object().unwrap().keys();
            names.filter(|name| *name != "thisNode").cloned().collect()
        };
        let all = fields(&nodes[0]);
        for field in ["os", "nodeUUID", "otpNode", "cpuCount", "uptime", "memoryTotal"] {
            assert!(all.contains(field), "{field}: {json}");
        }
        assert!(nodes.iter().all(|node| fields(node) == all), "{target}: {json}");
        let identity = |node: &serde_json::Value| {
            ["hostname", "otpNode", "nodeUUID"].map(|name| node[name].as_str().unwrap().to_owned())
        };
        nodes.iter().map(identity).collect::<Vec<_>>()
    };
    let (this, other) = (address(12_000), address(12_002));
    let targets = ["/pools/default", "/pools/nodes", "/pools/default/buckets/default"];
    for target in targets {
        *port.node.nodes.lock().unwrap() = vec![other.clone(), this.clone()];
        *port.node.this_node.lock().unwrap() = Some(1);
        let asked_here = identities(target);
        // Another node has the same map, and another place in it.
        *port.node.this_node.lock().unwrap() = None;
        *port.node.nodes.lock().unwrap() = vec![other.clone()];
        let given_up = identities(target);
        assert_eq!(given_up, asked_here, "{target}: the figures are added, not the names");
        let different: BTreeSet<_> = asked_here.iter().flatten().collect();
        assert_eq!(different.len(), 6, "{target}: {asked_here:?}");
    }
}

#[test]
fn quotas_and_storage_are_those_of_all_nodes_and_of_one() {
    let port = RestPort::start();
    let quotas = |target: &str, pointers: [&str; 4]| {
        let json = port.ask("GET", target).json();
        pointers.map(|pointer| json.pointer(pointer).and_then(serde_json::Value::as_u64).unwrap())
    };
    let bucket = ["/quota/ram", "/quota/rawRAM", "/basicStats/memUsed", "/replicaNumber"];
    let ram = ["quotaTotal", "quotaTotalPerNode", "quotaUsed", "quotaUsedPerNode"];
    let ram = ram.map(|name| format!("/storageTotals/ram/{name}"));
    let ram = [ram[0].as_str(), &ram[1], &ram[2], &ram[3]];
    let disk = ["total", "free", "used", "usedByData"];
    let disk = disk.map(|name| format!("/storageTotals/hdd/{name}"));
    let disk = [disk[0].as_str(), &disk[1], &disk[2], &disk[3]];
    let (gib, mib) = (1 << 30, 1 << 20);
    assert_eq!(quotas("/pools/default/buckets/default", bucket)[..2], [256 * mib, 256 * mib]);
    assert_eq!(quotas("/pools/default", ram), [gib, gib, 256 * mib, 256 * mib]);

    // Another node, which has less and has not said so yet.
    *port.node.nodes.lock().unwrap() = vec![address(12_000), address(12_002)];
    let usage = |total_bytes, used_bytes| Usage { total_bytes, used_bytes };
    port.node.elsewhere.lock().unwrap()[1] = StorageFigures {
        quota: usage(512 * mib, 128 * mib),
        disk: usage(1 << 40, 1 << 38),
        disk_free_bytes: 1 << 37,
        disk_used_by_data_bytes: 1,
        ..StorageFigures::default()
    };
    assert_eq!(quotas("/pools/default/buckets/default", bucket)[..2], [512 * mib, 256 * mib]);
    assert_eq!(quotas("/pools/default", ram), [1536 * mib, gib, 384 * mib, 256 * mib]);
    let all = [1 << 41, (1 << 39) + (1 << 37), (1 << 39) + (1 << 38), 4097];
    assert_eq!(quotas("/pools/default", disk), all);
    assert_eq!(quotas("/nodes/self", ram), [gib, gib, 256 * mib, 256 * mib]);
    assert_eq!(quotas("/nodes/self", disk), [1 << 40, 1 << 39, 1 << 39, 4096]);
    // It was asked a moment ago.
    port.node.elsewhere.lock().unwrap()[1] = StorageFigures::default();
    assert_eq!(quotas("/pools/default", disk), all);
}

/// What a bucket begins with.
const DEFAULT_SCOPE: &str =
    r#"{"scopes":[{"name":"_default","collections":[{"name":"_default"}]}]}"#;

#[test]
fn scopes_and_collections_come_and_go_in_the_words_that_clients_look_for() {
    let port = RestPort::start();
    let mut client = port.connect();
    let scopes = "/pools/default/buckets/default/scopes";
    for (method, rest, form, status, words) in [
        ("POST", "", "name=s", 200, r#"{"uid":"1"}"#),
        ("POST", "", "name=s", 400, r#"Scope with name \"s\" already exists"#),
        ("POST", "", "name=_s", 400, "First character must not be"),
        ("POST", "/s/collections", "name=c&maxTTL=5&history=true", 200, r#"{"uid":"2"}"#),
        ("POST", "/s/collections", "name=c", 400, r#"Collection with name \"c\" in scope"#),
        ("POST", "/s/collections", "name=d&maxTTL=x", 400, "must be an integer"),
        ("POST", "/s/collections", "name=d&maxTTL=-2", 400, "must be an integer"),
        ("POST", "/s/collections", "name=d&what=x", 400, "Unsupported key"),
        ("POST", "/t/collections", "name=c", 404, r#"Scope with name \"t\" is not found"#),
        ("PATCH", "/s/collections/c", "maxTTL=7", 200, r#"{"uid":"3"}"#),
        ("GET", "", "", 200, r#""history":true,"maxTTL":7,"name":"c","uid":"9""#),
        ("PATCH", "/s/collections/c", "maxTTL=0", 200, r#"{"uid":"4"}"#),
        ("GET", "", "", 200, r#""history":true,"maxTTL":0,"name":"c","uid":"9""#),
        ("DELETE", "/s/collections/d", "", 404, "is not found"),
        ("DELETE", "/s/collections/c", "", 200, r#"{"uid":"5"}"#),
        (
            "PUT",
            "?validOnUid=5",
            r#"{"uid":"5","scopes":[{"name":"_default","collections":[{"name":"_default",
                "maxTTL":0}]},{"name":"s","collections":[{"name":"e","maxTTL":-1}]}]}"#,
            200,
            r#"{"uid":"6"}"#,
        ),
        ("GET", "", "", 200, r#""maxTTL":-1,"name":"e""#),
        (
            "PUT",
            "?validOnUid=5",
            DEFAULT_SCOPE,
            400,
            r#"{"errors":{"validOnUid":"The manifest has"#,
        ),
        ("PUT", "?validOnUid=x", DEFAULT_SCOPE, 400, r#"{"errors":{"validOnUid":"The value must"#),
        ("PUT", "?what=x", DEFAULT_SCOPE, 400, "Unsupported key"),
        ("PUT", "", r#"{"scopes":[]}"#, 400, "Deleting _default scope is not allowed"),
        ("PUT", "", "name=s", 400, "Invalid manifest"),
        ("DELETE", "/s/collections/e", "", 200, r#"{"uid":"7"}"#),
        ("DELETE", "/_default/collections/_default", "", 400, "is not supported"),
        ("DELETE", "/_default", "", 400, "is not allowed"),
        ("DELETE", "/s", "", 200, r#"{"uid":"8"}"#),
        ("PUT", "", DEFAULT_SCOPE, 200, r#"{"uid":"8"}"#),
        ("DELETE", "/s", "", 404, r#"Scope with name \"s\" is not found"#),
    ] {
        let answer = client.ask(method, &format!("{scopes}{rest}"), form);
        assert_eq!(answer.status, status, "{method} {rest} {form}: {}", answer.body);
        assert!(answer.body.contains(words), "{method} {rest} {form}: {}", answer.body);
    }
}

#[test]
fn a_setting_is_what_a_form_says_already_or_says_what_to_do() {
    let port = RestPort::start();
    let mut client = port.connect();
    for (path, form, status, words) in [
        ("security", "", 200, ""),
        ("security", "tlsMinVersion=tlsv1.2&uiSessionTimeout=3600&cipherSuites=[]", 200, ""),
        ("security", "clusterEncryptionLevel=control&disableUIOverHttp=false", 200, ""),
        ("security", "tlsMinVersion=tlsv1.3", 400, "1.2 and 1.3 are spoken"),
        ("security", "disableUIOverHttp=true&uiSessionTimeout=60", 400, "after an hour"),
        ("security", "clusterEncryptionLevel=all", 400, "--tls-node-ca"),
        ("security", "what=1", 400, r#"{"errors":{"what":"Unsupported key"}}"#),
        ("alerts", "enabled=false&recipients=a%40b&emailHost=h", 200, ""),
        ("alerts", "enabled=true", 400, "sends no mail"),
        ("alerts", "enabled=maybe", 400, "true, false"),
        ("audit", "auditdEnabled=false&disabled=&rotateSize=20971520", 200, ""),
        ("audit", "auditdEnabled=true", 400, "--audit-log"),
        ("audit", "auditdEnabled=perhaps", 400, "true, false"),
        ("audit", "disabledUsers=bob%2Flocal", 400, "Every event is noted"),
        ("audit", "logPath=%2Fvar", 400, "`audit.log` of the data directory"),
        ("audit", "rotateInterval=900&auditdEnabled=false", 400, "by its size alone"),
    ] {
        let answer = client.ask("POST", &format!("/settings/{path}"), form);
        assert_eq!(answer.status, status, "{path} {form}: {}", answer.body);
        assert!(answer.body.contains(words), "{path} {form}: {}", answer.body);
    }
}

#[test]
fn a_manifest_is_there_or_waited_for() {
    let short = Duration::from_millis(50);
    let port = RestPort::start_with(Limits { manifest_wait_max: short, ..Limits::default() });
    let path = |uid: &str| format!("/pools/default/buckets/default/scopes/@ensureManifest/{uid}");
    port.bucket.manifest.lock().unwrap().clone_from(&Arc::new(manifest(0x1a)));
    for (uid, status, words) in [
        ("0", 200, "{}"),
        ("1a", 200, "{}"),
        ("1A", 200, "{}"),
        ("1b", 504, r#"{"errors":{"_":"Timed out waiting for manifest 1b; this node has 1a"}}"#),
        ("ffffffffffffffff", 504, "this node has 1a"),
        ("10000000000000000", 400, r#"{"errors":{"uid":"#),
        ("+1", 400, "hexadecimal"),
        ("x", 400, "hexadecimal"),
    ] {
        let answer = port.ask("POST", &path(uid));
        assert_eq!(answer.status, status, "{uid}: {}", answer.body);
        assert!(answer.body.contains(words), "{uid}: {}", answer.body);
    }

    let port = RestPort::start();
    std::thread::scope(|threads| {
        let waits = threads.spawn(|| port.ask("POST", &path("1b")).status);
        *port.bucket.manifest.lock().unwrap() = Arc::new(manifest(0x1b));
        while !waits.is_finished() {
            assert_eq!(port.ask_with("PUT", "/settee/clusterMap", "{}").status, 200);
        }
        assert_eq!(waits.join().unwrap(), 200);
    });
}

fn manifest(uid: u64) -> Manifest {
    Manifest { uid, ..Manifest::default() }
}

#[test]
fn a_flush_is_done_or_refused_or_fails() {
    let port = RestPort::start();
    let bucket = "/pools/default/buckets/default";
    let flush = format!("{bucket}/controller/doFlush");
    assert_eq!(port.ask("POST", &flush).status, 200);
    assert_eq!(*port.bucket.flushes.lock().unwrap(), 1);

    *port.bucket.flush.lock().unwrap() = Err(FlushError::Failed("disk".to_owned()));
    let failed = port.ask("POST", &flush);
    assert_eq!((failed.status, &failed.json()["_"]), (503, &"disk".into()));

    *port.bucket.flush.lock().unwrap() = Err(FlushError::Disabled);
    let refused = port.ask("POST", &flush);
    assert_eq!(refused.status, 400);
    assert_eq!(refused.body, r#"{"_":"Flush is disabled for the bucket"}"#);
    assert!(port.ask("GET", bucket).json().pointer("/controllers/flush").is_none());
}

#[test]
fn a_compaction_is_begun_or_cancelled_or_refused() {
    let port = RestPort::start();
    let bucket = "/pools/default/buckets/default";
    let route = port.ask("GET", bucket).json()["controllers"]["compactAll"].clone();
    let compact = route.as_str().unwrap();
    assert_eq!(port.ask("POST", compact).status, 200);
    assert_eq!(*port.bucket.compactions.lock().unwrap(), 1);
    let cancel = format!("{bucket}/controller/cancelBucketCompaction");
    assert_eq!(port.ask("POST", &cancel).status, 200);
    assert_eq!(*port.bucket.compactions.lock().unwrap(), 0);
    for what in ["compactBucket", "cancelBucketCompaction"] {
        let other = format!("/pools/default/buckets/other/controller/{what}");
        assert_eq!(port.ask("POST", &other).status, 404);
    }
    let here = "/settee/buckets/default/compaction";
    let silent = CompactionError::Failed("n2 is silent".to_owned());
    *port.bucket.compaction.lock().unwrap() = Err(silent);
    for (method, target, expected) in [
        ("POST", compact, Err("n2 is silent")),
        ("POST", here, Ok(2)),
        ("POST", &cancel, Err("n2 is silent")),
        ("POST", here, Ok(1)),
        ("DELETE", here, Ok(0)),
    ] {
        let answer = port.ask(method, target);
        match expected {
            Ok(count) => {
                assert_eq!(answer.status, 200, "{method} {target}: nobody else is asked");
                assert_eq!(*port.bucket.compactions.lock().unwrap(), count, "{method} {target}");
            }
            Err(why) => {
                assert_eq!((answer.status, &answer.json()["_"]), (503, &why.into()), "{target}");
            }
        }
    }
    *port.bucket.kind.lock().unwrap() = BucketKind::EphemeralAutoDelete;
    for target in [compact, here] {
        let refused = port.ask("POST", target);
        assert_eq!((refused.status, &refused.json()["_"]), (400, &"no files".into()));
    }
}

#[test]
fn several_figures_are_told_whatever_the_request_says_of_its_form() {
    let port = RestPort::start();
    let query = r#"[{"metric":[{"label":"name","value":"kv_curr_items"}],"start":-60}]"#;
    let told = port.ask_with("POST", "/pools/default/stats/range", query);
    assert_eq!(told.status, 200, "{}", told.body);
    assert_eq!(port.ask_with("POST", "/pools/default/stats/range", "[").status, 400);
}

#[test]
fn copies_are_no_documents() {
    let port = RestPort::start();
    let bucket = port.ask("GET", "/pools/default/buckets/default").json();
    assert_eq!(bucket["basicStats"]["itemCount"], 40);
    let pool = port.ask("GET", "/pools/default").json();
    let told = &pool["nodes"][0]["interestingStats"];
    for (name, items) in [("curr_items", 40), ("vb_replica_curr_items", 30), ("curr_items_tot", 71)]
    {
        assert_eq!(told[name], items, "{name}");
    }
}

#[test]
fn a_bucket_tells_its_kind_in_the_words_that_clients_read() {
    let port = RestPort::start();
    for (kind, bucket_type, eviction) in [
        (BucketKind::Couchbase, "membase", "valueOnly"),
        (BucketKind::EphemeralAutoDelete, "ephemeral", "nruEviction"),
        (BucketKind::EphemeralFailNewData, "ephemeral", "noEviction"),
    ] {
        *port.bucket.kind.lock().unwrap() = kind;
        let json = port.ask("GET", "/pools/default/buckets/default").json();
        assert_eq!(
            (&json["bucketType"], &json["evictionPolicy"]),
            (&bucket_type.into(), &eviction.into())
        );
        assert_eq!(json["durabilityMinLevel"], "majority", "the bucket's own");
    }
}

#[test]
fn a_request_that_means_an_earlier_bucket_of_that_name_finds_nothing() {
    let port = RestPort::start();
    let uri = port.ask("GET", "/pools/default/buckets/default").json()["uri"].clone();
    let uri = uri.as_str().unwrap();
    assert_eq!(port.ask("GET", uri).status, 200);
    let last = if uri.ends_with('0') { "1" } else { "0" };
    let stale = format!("{}{last}", &uri[..uri.len() - 1]);
    assert_eq!(port.ask("GET", &stale).status, 404);
}

#[test]
fn a_node_that_warms_up_says_so_everywhere() {
    let port = RestPort::start();
    *port.bucket.warmup.lock().unwrap() = COLD;
    let health = port.ask("GET", "/healthz");
    assert_eq!(health.status, 503);
    assert_eq!(health.json()["warmup"]["progress"], 0.25);
    let bucket = port.ask("GET", "/pools/default/buckets/default");
    assert_eq!(bucket.json()["nodes"][0]["status"], "warmup");
    let tasks = port.ask("GET", "/pools/default/tasks").json();
    let task = tasks.as_array().unwrap().iter().find(|task| task["type"] == "warming_up").unwrap();
    assert_eq!((&task["bucket"], task["progress"].as_f64()), (&"default".into(), Some(25.0)));
}

#[test]
fn metrics_are_the_nodes_and_the_ports_own() {
    let port = RestPort::start();
    let answer = port.ask("GET", "/metrics");
    assert_eq!(answer.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    assert!(port.ask("GET", "/_prometheusMetrics").body.contains("kv_curr_items{"));
    let high = port.ask("GET", "/_prometheusMetricsHigh").body;
    assert!(high.contains("kv_collection_item_count{collection=\"_default\"} 40\n"), "{high}");
    assert!(!high.contains("kv_curr_items") && !answer.body.contains("kv_collection_item_count"));
    for line in [
        "# TYPE kv_curr_items gauge",
        "kv_curr_items{bucket=\"default\"} 40",
        "# HELP kv_curr_items Live documents",
        "# TYPE kv_ops untyped",
        "# TYPE settee_groups_total counter",
        "cm_http_connections 1",
        "cm_http_connections_max 512",
    ] {
        assert!(answer.body.lines().any(|found| found == line), "{line}: {}", answer.body);
    }
}

#[test]
fn who_waits_for_a_query_service_goes_on_and_has_statements_refused() {
    let port = RestPort::start();
    let mut client = HttpClient::connect(port.query_stub);
    assert_eq!(client.ask("GET", "/admin/ping", "").status, 200);
    for (method, target) in [("POST", "/query/service"), ("GET", "/pools"), ("GET", "/healthz")] {
        let answer = client.ask(method, target, "statement=SELECT+1");
        assert_eq!(answer.status, 503, "{target}");
        assert_eq!(answer.json()["status"], "fatal", "{target}");
        assert!(answer.json()["errors"][0]["msg"].as_str().unwrap().contains("no query service"));
    }
    assert_eq!(port.ask("GET", "/admin/ping").status, 404, "at the REST port there is none");
}
