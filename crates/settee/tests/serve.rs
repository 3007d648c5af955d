//! `settee serve` with real processes.
#![expect(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use platform::files::RealFiles;
use platform::{Clock, Files};

const PATIENCE: Duration = Duration::from_secs(60);

/// A node with one worker, no data yet, and any free ports.
fn serve(work: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_settee"));
    command.args(["serve", "--port", "0", "--management-port", "0"]).env("SETTEE_THREADS", "1");
    command.arg("--ready-file").arg(work.join("ready")).env("SETTEE_MEMORY_QUOTA", "64MiB");
    command.env_remove("SETTEE_PASSWORD").env("TMPDIR", work);
    command.stdout(Stdio::null());
    command
}

/// The same with a directory that stays.
fn serve_directory(work: &Path, flags: &[&str]) -> Command {
    let mut command = serve(work);
    command.arg("--data-dir").arg(work.join("data")).args(flags);
    command
}

struct Node {
    child: Child,
}

impl Node {
    fn start(mut command: Command, work: &Path) -> Self {
        let log = log_file(&work.join("log"));
        // Of an earlier start.
        drop(RealFiles.remove(&work.join("ready")));
        let mut child = command.stderr(log).spawn().unwrap();
        let clock = Clock::real();
        let deadline = clock.now().after(PATIENCE);
        while !std::fs::exists(work.join("ready")).unwrap() {
            assert!(child.try_wait().unwrap().is_none(), "{}", log_of(work));
            assert!(clock.now() < deadline, "{}", log_of(work));
            platform::threads::pause(Duration::from_millis(10));
        }
        Self { child }
    }

    fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("sh").args(["-c", &format!("kill -{name} {id}")]).status();
        assert!(sent.unwrap().success());
    }

    fn stop(mut self) {
        self.signal("TERM");
        assert!(self.child.wait().unwrap().success());
    }
}

fn log_file(path: &Path) -> Stdio {
    let mut options = std::fs::OpenOptions::new();
    Stdio::from(options.create(true).append(true).open(path).unwrap())
}

fn log_of(work: &Path) -> String {
    platform::files::read_text(&work.join("log")).unwrap()
}

/// What a node that must not start says.
fn refused(mut command: Command) -> String {
    let Output { status, stderr, .. } = command.stderr(Stdio::piped()).output().unwrap();
    let text = String::from_utf8(stderr).unwrap();
    assert!(!status.success(), "{text}");
    text
}

fn left_in(work: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(work).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with("settee-dev")).collect()
}

#[test]
fn the_binary_tells_its_own_version_not_the_one_that_clients_are_told() {
    let output = Command::new(env!("CARGO_BIN_EXE_settee")).arg("--version").output().unwrap();
    let version = String::from_utf8(output.stdout).unwrap();
    assert_eq!(version, concat!("settee ", env!("CARGO_PKG_VERSION"), "\n"));
}

/// A port of the node that was started last.
fn port_of(work: &Path, name: &str) -> u64 {
    let ready = platform::files::read_text(&work.join("ready")).unwrap();
    let ready: serde_json::Value = serde_json::from_str(&ready).unwrap();
    ready[name].as_u64().unwrap()
}

/// A request with a form, and the status and the body that answer it.
fn ask(work: &Path, password: Option<&str>, method: &str, path: &str, form: &str) -> (u16, String) {
    let config = ureq::Agent::config_builder().http_status_as_error(false).proxy(None).build();
    let url = format!("http://127.0.0.1:{}{path}", port_of(work, "management_port"));
    let mut request = ureq::http::Request::builder()
        .method(method)
        .uri(url)
        .header("Content-Type", "application/x-www-form-urlencoded");
    if let Some(password) = password {
        let login = STANDARD.encode(format!("Administrator:{password}"));
        request = request.header("Authorization", format!("Basic {login}"));
    }
    let request = request.body(form.to_owned()).unwrap();
    let mut answer = ureq::Agent::from(config).run(request).unwrap();
    (answer.status().as_u16(), answer.body_mut().read_to_string().unwrap())
}

/// What a tool prints that talks to the node and does what it is to do.
fn tool(work: &Path, arguments: &[&str]) -> String {
    let url = format!("http://127.0.0.1:{}", port_of(work, "management_port"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_settee"));
    command.args(arguments);
    let output = command.args(["--management", &url, "--password", "password"]).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_node_is_set_up_over_rest_and_stays_as_it_was_told_to_be() {
    let root = tempfile::tempdir().unwrap();
    let work = root.path();
    let start = |flags: &[&str]| {
        let mut command = serve_directory(work, flags);
        command.args(["--vbuckets", "16"]).env("SETTEE_MEMORY_QUOTA", "512MiB");
        Node::start(command, work)
    };
    let node = start(&["--setup", "loopback"]);
    let external = "/node/controller/setupAlternateAddresses/external";
    for (password, method, path, form, status) in [
        (None, "GET", "/pools", "", 200),
        (Some("password"), "GET", "/pools/default/nodeServices", "", 200),
        (None, "POST", "/node/controller/rename", "hostname=10.1.2.3", 200),
        (None, "POST", "/node/controller/setupServices", "services=kv", 200),
        (None, "POST", "/pools/default", "memoryQuota=256&clusterName=mine", 200),
        (None, "POST", "/settings/web", "username=Administrator&password=password&port=SAME", 200),
        (None, "PUT", external, "hostname=outside&kv=31210&mgmt=31091", 401),
        (Some("password"), "PUT", external, "hostname=outside&kv=31210&mgmt=31091", 200),
        (Some("password"), "POST", "/pools/default/buckets", "name=mine&ramQuotaMB=100", 202),
    ] {
        let (found, body) = ask(work, password, method, path, form);
        assert_eq!(found, status, "{method} {path} {form}: {body}");
    }
    node.stop();
    // The password is there: nobody is let in without it.
    let node = start(&["--setup"]);
    assert_eq!(ask(work, None, "GET", "/pools", "").0, 401);
    let (_, config) = ask(work, Some("password"), "GET", "/pools/default/b/mine", "");
    let config: serde_json::Value = serde_json::from_str(&config).unwrap();
    assert_eq!(config["nodesExt"][0]["hostname"], "10.1.2.3");
    let told = &config["nodesExt"][0]["alternateAddresses"]["external"];
    assert_eq!((&told["hostname"], &told["ports"]["kv"]), (&"outside".into(), &31210.into()));
    assert_eq!(config["clusterName"], "mine");
    assert!(!work.join("data/buckets/default").exists(), "nobody has asked for it");
    node.stop();
}

#[test]
fn buckets_and_collections_are_managed_with_tools() {
    let root = tempfile::tempdir().unwrap();
    let work = root.path();
    let mut command = serve_directory(work, &["--password", "password", "--vbuckets", "16"]);
    command.env("SETTEE_MEMORY_QUOTA", "512MiB").env("SETTEE_BUCKETS", "mine:128MiB,other");
    let node = Node::start(command, work);
    let listed = tool(work, &["bucket", "list"]);
    let rows: Vec<Vec<&str>> =
        listed.lines().map(|line| line.split_whitespace().take(3).collect()).collect();
    let heading = ["NAME", "TYPE", "QUOTA-MIB"];
    assert_eq!(rows, [heading, ["mine", "couchbase", "128"], ["other", "couchbase", "384"]]);
    tool(work, &["bucket", "create", "third", "--quota-mib", "100", "--enable-flush", "true"]);
    tool(work, &["bucket", "edit", "third", "--quota-mib", "101", "--compression", "active"]);
    let refused = complaint(work, &["bucket", "flush", "third"]);
    assert!(refused.contains("0 documents of the bucket third would be gone"), "{refused}");
    tool(work, &["bucket", "flush", "third", "--confirm"]);
    let listed: serde_json::Value =
        serde_json::from_str(&tool(work, &["bucket", "list", "-o", "json"])).unwrap();
    let third = listed.as_array().unwrap().iter().find(|it| it["name"] == "third").unwrap();
    assert_eq!(third["quota"]["rawRAM"], 101 << 20);
    assert_eq!(third["compressionMode"], "active");
    assert_eq!(tool(work, &["bucket", "delete", "third", "--confirm"]), "", "people hear nothing");
    let collection =
        |action: &[&str]| tool(work, &[&["collection", "--bucket", "mine"], action].concat());
    assert_eq!(collection(&["create-scope", "shop", "-o", "json"]), "{\"uid\":\"1\"}\n");
    collection(&["create", "shop.orders", "--max-ttl", "60"]);
    let listed = collection(&["list"]);
    let last: Vec<&str> = listed.lines().last().unwrap().split_whitespace().collect();
    assert_eq!(last, ["shop.orders", "9", "60"]);
    for lost in [
        &["collection", "--bucket", "mine", "drop", "shop.orders"][..],
        &["collection", "--bucket", "mine", "drop-scope", "shop"],
        &["bucket", "delete", "mine"],
    ] {
        let refused = complaint(work, lost);
        assert!(refused.contains("nothing was changed: "), "{refused}");
        assert!(refused.contains("--confirm does it"), "{refused}");
    }
    for there_is_none in ["delete", "flush", "edit"] {
        let refused = complaint(work, &["bucket", there_is_none, "nope"]);
        assert!(refused.contains("has no bucket nope; see settee bucket list"), "{refused}");
    }
    collection(&["drop", "shop.orders", "--confirm"]);
    assert!(collection(&["list"]).lines().last().unwrap().starts_with("shop. "));
    collection(&["drop-scope", "shop", "--confirm"]);
    assert!(!collection(&["list", "-o", "json"]).contains("shop"));
    tool(work, &["user", "set", "bob", "--new-password", "hunter22", "--roles", "ro_admin"]);
    tool(work, &["user", "set", "bob", "--limits", r#"{"kv": {"num_connections": 3}}"#]);
    tool(work, &["user", "set", "bob", "--new-password", "hunter33", "--full-name", "Bob"]);
    assert!(tool(work, &["user", "list"]).contains("bob            ro_admin\n"));
    let users = tool(work, &["user", "list", "-o", "json"]);
    let users: serde_json::Value = serde_json::from_str(&users).unwrap();
    let bob = users.as_array().unwrap().iter().find(|it| it["id"] == "bob").unwrap();
    assert_eq!((&bob["name"], &bob["limits"]["kv"]["num_connections"]), (&"Bob".into(), &3.into()));
    tool(work, &["user", "set", "Administrator", "--full-name", "Root"]);
    assert_eq!(tool(work, &["user", "delete", "bob", "-o", "json"]), "{}\n");
    node.stop();
}

/// What a tool answers that talks to the node's data port.
fn document_tool(work: &Path, arguments: &[&str]) -> Output {
    tool_command(work, arguments).output().unwrap()
}

fn tool_command(work: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_settee"));
    command.args(arguments).stdin(Stdio::null());
    let port = port_of(work, "port").to_string();
    command.args(["--password", "password", "--port", &port]);
    command
}

/// What it prints if it does what it is to do.
fn printed(work: &Path, arguments: &[&str]) -> String {
    let output = document_tool(work, arguments);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// What it says on standard error if it does not.
fn complaint(work: &Path, arguments: &[&str]) -> String {
    let output = document_tool(work, arguments);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {output:?}");
    assert!(output.stdout.is_empty(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn what_a_start_prints_can_be_typed_back_where_the_host_has_colons() {
    // Where there is no IPv6 there is nothing to be printed.
    if platform::network::listen_standard((std::net::Ipv6Addr::LOCALHOST, 0).into()).is_err() {
        return;
    }
    let root = tempfile::tempdir().unwrap();
    let work = root.path();
    let mut command = serve_directory(work, &["--host", "::1", "--vbuckets", "16"]);
    command.stdout(log_file(&work.join("printed")));
    let node = Node::start(command, work);
    node.stop();
    let printed = platform::files::read_text(&work.join("printed")).unwrap();
    assert!(printed.contains("  connect with     couchbase://[::1]:"), "{printed}");
    assert!(printed.contains("  data port        [::1]:"), "{printed}");
}

#[test]
fn documents_are_read_and_written_with_tools() {
    for threads in ["1", "4"] {
        let root = tempfile::tempdir().unwrap();
        let work = root.path();
        let flags = ["--password", "password", "--vbuckets", "16", "--threads", threads];
        let mut command = serve_directory(work, &flags);
        command.args(["--flush-interval-ms", "0"]);
        let node = Node::start(command, work);
        assert_eq!(complaint(work, &["get", "a"]), "settee: there is no document \"a\"\n");
        assert_eq!(printed(work, &["set", "a", "{\"b\": 1}"]), "");
        assert_eq!(printed(work, &["get", "a"]), "{\"b\": 1}");
        assert!(complaint(work, &["set", "a", "c", "--add"]).contains("there is a document"));
        let read: serde_json::Value =
            serde_json::from_str(&printed(work, &["get", "a", "-o", "json"])).unwrap();
        assert_eq!((&read["value"], &read["flags"]), (&"{\"b\": 1}".into(), &0x0200_0000.into()));
        let cas = read["cas"].as_str().unwrap();
        printed(work, &["set", "a", "c", "--cas", cas, "--durability", "persist_to_majority"]);
        assert!(complaint(work, &["set", "a", "d", "--cas", cas]).contains("another version"));
        assert_eq!(printed(work, &["incr", "n", "--initial", "5"]), "5\n");
        assert_eq!(printed(work, &["incr", "n", "-2"]), "3\n");
        assert!(complaint(work, &["incr", "a"]).contains("is no counter"));
        printed(work, &["touch", "n", "1000"]);
        printed(work, &["set", "n", "3", "--durability", "persist_to_majority"]);
        assert!(complaint(work, &["touch", "x", "1"]).contains("there is no document"));
        let all = printed(work, &["scan"]);
        let mut keys: Vec<&str> = all.lines().collect();
        keys.sort_unstable();
        assert_eq!(keys, ["a", "n"]);
        assert_eq!(printed(work, &["scan", "n", "--with-values"]), "n\t3\n");
        assert_eq!(printed(work, &["scan", "--limit", "1"]).lines().count(), 1);
        assert_eq!(printed(work, &["scan", "z"]), "");
        printed(work, &["delete", "a", "n"]);
        assert!(complaint(work, &["delete", "a"]).contains("there is no document"));
        let unknown = complaint(work, &["get", "a", "--collection", "shop.orders"]);
        assert!(unknown.contains("has no collection shop.orders"), "{unknown}");
        node.stop();
    }
}

#[test]
fn a_parameter_is_set_with_a_tool_until_the_node_stops() {
    let root = tempfile::tempdir().unwrap();
    let work = root.path();
    let node = Node::start(serve_directory(work, &["--password", "password"]), work);
    assert_eq!(printed(work, &["set-param", "mem_high_wat_percent", "0.9"]), "");
    let config = printed(work, &["stats", "config"]);
    assert!(config.contains("ep_mem_high_wat_percent 0.9"), "{config}");
    let unknown = complaint(work, &["set-param", "no_such", "1"]);
    assert!(unknown.contains("there are: num_reader_threads"), "{unknown}");
    let wrong = complaint(work, &["set-param", "mem_high_wat_percent", "nine"]);
    assert!(wrong.contains("is not set to \"nine\""), "{wrong}");
    node.stop();
}

#[test]
fn what_a_node_tells_is_collected_without_secrets() {
    let root = tempfile::tempdir().unwrap();
    let work = root.path();
    let node = Node::start(serve_directory(work, &["--password", "password"]), work);
    let (log, data) = (work.join("log"), work.join("data"));
    tool(work, &["user", "set", "bob", "--new-password", "hunter22", "--roles", "ro_admin"]);
    wait_for(work, "the change is in the audit log", || {
        std::fs::exists(data.join("audit.log")).unwrap()
    });
    let target = work.join("all.tar.gz");
    let [log, data, archive] = [&log, &data, &target].map(|path| path.to_str().unwrap());
    let arguments = ["collect", "--target", archive, "--data-dir", data, "--log", log, "--redact"];
    assert_eq!(printed(work, &arguments), format!("{archive}\n"));
    let listed = Command::new("tar").args(["-tzf", archive]).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    for name in [
        "/node/cluster.json",
        "/node/metrics.txt",
        "/buckets/default/general.txt",
        "/buckets/default/vbucket-details.txt",
        "/files.txt",
        "/data/audit.log",
        "/logs/log",
    ] {
        assert!(listed.lines().any(|line| line.ends_with(name)), "{name}: {listed}");
    }
    let all = Command::new("tar").args(["-xzOf", archive]).output().unwrap();
    let all = String::from_utf8(all.stdout).unwrap();
    for secret in ["hunter22", "stored_key", "server_key", "PRIVATE KEY"] {
        assert!(!all.contains(secret), "{secret}");
    }
    node.stop();
}

#[test]
fn slow_operations_and_hot_documents_are_told_with_tools() {
    for threads in ["1", "4"] {
        let root = tempfile::tempdir().unwrap();
        let work = root.path();
        let flags = ["--password", "password", "--vbuckets", "16", "--threads", threads];
        let node = Node::start(serve_directory(work, &flags), work);
        assert!(printed(work, &["why-slow"]).starts_with("nothing was slow"));
        // From now on everything is.
        printed(work, &["why-slow", "--set", "get=0", "--set", "SET=0"]);
        printed(work, &["set", "a", "1"]);
        printed(work, &["get", "a"]);
        printed(work, &["set", "b", "1", "--durability", "persist_to_majority"]);
        let told = printed(work, &["why-slow", "-o", "json"]);
        let told: Vec<serde_json::Value> =
            told.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let seen: Vec<_> = told.iter().map(|it| [&it["command"], &it["key"]]).collect();
        assert_eq!(seen, [["SET", ""], ["GET", "a"], ["SET", "a"]], "the newest first");
        let (durable, get) = (&told[0], &told[1]);
        assert!(durable["replication_us"].as_u64().unwrap() > 0, "{durable}");
        assert!(durable["took_us"].as_u64() >= durable["replication_us"].as_u64(), "{durable}");
        for span in ["fetch_us", "journal_us", "replication_us", "task_us"] {
            assert_eq!(get[span], 0, "{span}: {get}");
        }
        let table = printed(work, &["why-slow", "--limit", "1"]);
        assert!(table.contains("of the time of these went for replication"), "{table}");
        assert!(log_of(work).contains("an operation was slow"));
        let unknown = complaint(work, &["why-slow", "--set", "NO_SUCH=5"]);
        assert!(unknown.contains("the name of a command"), "{unknown}");
        let silence = document_tool(work, &["hot-keys", "--for", "1"]);
        assert!(silence.status.success(), "{silence:?}");
        assert!(String::from_utf8(silence.stderr).unwrap().contains("no request"));
        let load = ["load", "--num-items", "1", "--key-prefix", "hot", "--duration", "60"];
        let mut load = tool_command(work, &load).stdout(Stdio::null()).spawn().unwrap();
        let hot = printed(work, &["hot-keys", "--for", "3", "--limit", "1"]);
        load.kill().unwrap();
        load.wait().unwrap();
        assert!(hot.contains("100.0%") && hot.contains("hot"), "{hot}");
        node.stop();
    }
}

#[test]
fn a_node_logs_to_a_file_what_it_is_told_to_log() {
    let root = tempfile::tempdir().unwrap();
    let work = root.path();
    let file = work.join("settee.log");
    let mut command = serve_directory(work, &["--password", "password", "--log-level", "warn"]);
    command.arg("--log-file").arg(&file);
    let node = Node::start(command, work);
    let lines = || platform::files::read_text(&file).unwrap();
    assert!(!lines().contains("serving"), "{}", lines());
    assert_eq!(tool(work, &["set-log-level"]), "FILTER\nwarn\n");
    assert_eq!(tool(work, &["set-log-level", "management=trace,info"]), "");
    let shown = tool(work, &["set-log-level", "-o", "json"]);
    assert_eq!(shown, "{\"filter\":\"management=trace,info\"}\n");
    assert!(lines().contains("another filter"), "{}", lines());
    let (status, body) =
        ask(work, Some("password"), "POST", "/settee/logLevel", "filter=bucket%3Dloud");
    assert_eq!(status, 400, "{body}");
    assert!(body.contains("try info"), "{body}");
    node.stop();
    assert!(lines().contains("stopped"), "{}", lines());
    assert!(!log_of(work).contains("stopped"), "standard error has none");
    let mut command = serve_directory(work, &["--password", "password"]);
    command.arg("--log-file").arg(work.join("none/settee.log"));
    assert!(refused(command).contains("--log-file"));
}

#[test]
fn a_shell_carries_out_lines_and_a_page_tells_what_a_node_does() {
    let root = tempfile::tempdir().unwrap();
    let work = root.path();
    let flags = ["--password", "password", "--vbuckets", "16"];
    let node = Node::start(serve_directory(work, &flags), work);
    let shell = |lines: &str| {
        let mut command = tool_command(work, &["shell"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        input.write_all(lines.as_bytes()).unwrap();
        drop(input);
        let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (status.code().unwrap(), text(stdout), text(stderr))
    };
    let lines = "set a 'b c'\nget a\nincr n --initial 7\n\nuse _default._default\nexit\nget x\n";
    assert_eq!(shell(lines), (0, "b c\n7\n".to_owned(), String::new()));
    let (code, out, error) =
        shell("get x\nnonsense\nset a\nset d 1 --durability majority\nget d\n");
    assert_eq!((code, out.as_str()), (1, "1\n"));
    for part in ["no document \"x\"", "nonsense", "say the body behind the key"] {
        assert!(error.contains(part), "{part}: {error}");
    }
    let (_, out, error) = shell("stats uuid\nlatency\nbigkeys\nslowlog\nhotkeys 1\n");
    for part in ["uuid ", "get_cmd (", "documents were looked at", "nothing was slow", "SHARE"] {
        assert!(out.contains(part), "{part}: {out} {error}");
    }
    let page = printed(work, &["top", "--once", "--interval", "0.2"]);
    for part in ["operations", "memory", "front-end threads"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    node.stop();
}

const INIT_FILE: &str = r#"{
  "buckets": [
    {"name": "mine", "ramQuotaMB": 100, "scopes": [
      {"name": "shop", "collections": [{"name": "orders", "maxTTL": 60}]}]},
    {"name": "session", "ramQuotaMB": 100, "bucketType": "ephemeral"}],
  "groups": [{"name": "readers", "roles": "data_reader[mine]"}],
  "users": [{"name": "bob", "password": "hunter22", "roles": "ro_admin", "groups": ["readers"]}]
}"#;

#[test]
fn a_node_has_what_files_say_from_its_first_start_on() {
    let root = tempfile::tempdir().unwrap();
    let work = root.path();
    let init = work.join("init");
    std::fs::create_dir(&init).unwrap();
    RealFiles.replace_all(&init.join("10.json"), INIT_FILE.as_bytes()).unwrap();
    let command = |flags: &[&str]| {
        let mut command = serve_directory(work, flags);
        command.args(["--password", "password", "--vbuckets", "16"]).arg("--init-dir").arg(&init);
        command.env("SETTEE_MEMORY_QUOTA", "512MiB");
        command
    };
    let names = |listed: &str| -> Vec<String> {
        listed.lines().skip(1).map(|it| it.split(' ').next().unwrap().to_owned()).collect()
    };
    let node = Node::start(command(&[]), work);
    assert_eq!(names(&tool(work, &["bucket", "list"])), ["mine", "session"], "and no default one");
    let collections = tool(work, &["collection", "list", "--bucket", "mine"]);
    assert!(collections.contains("shop.orders"), "{collections}");
    assert_eq!(names(&tool(work, &["user", "list"])), ["Administrator", "bob"]);
    tool(work, &["bucket", "delete", "session", "--confirm"]);
    tool(work, &["user", "delete", "bob"]);
    node.stop();

    let more = r#"{"buckets": [
        {"name": "mine", "ramQuotaMB": 300, "scopes": [{"name": "shop", "collections": [
            {"name": "orders"}, {"name": "returns"}]}]}]}"#;
    RealFiles.replace_all(&init.join("20.json"), more.as_bytes()).unwrap();
    let node = Node::start(command(&[]), work);
    let listed = tool(work, &["bucket", "list"]);
    assert_eq!(names(&listed), ["mine"], "what was applied once is not applied again");
    assert!(listed.contains("  100  "), "a bucket that is there stays as it is: {listed}");
    let collections = tool(work, &["collection", "list", "--bucket", "mine"]);
    let rows = names(&collections);
    assert_eq!(rows, ["_default._default", "shop.orders", "shop.returns"], "{collections}");
    node.stop();

    for (text, place, why) in [
        ("{\n\"user\": []}", "30.json:2: ", "unknown field"),
        ("{\"buckets\": [\n{\"name\": \"a\", \"ramQuotaMB\": 999}]}", "30.json:2: ", "too large"),
        (
            "{\"users\": [{\"name\": \"b\", \"password\": \"hunter22\",\n\
              \"roles\": \"data_reader[none]\"}]}",
            "30.json:1: ",
            "there is no bucket none",
        ),
    ] {
        RealFiles.replace_all(&init.join("30.json"), text.as_bytes()).unwrap();
        let output = command(&[]).stderr(Stdio::piped()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success(), "{text}");
        let last = said.lines().last().unwrap();
        assert!(last.contains(place) && last.contains(why), "{said}");
        assert!(!work.join("ready").exists(), "{text}");
    }
}

#[test]
fn every_command_has_a_manual_page() {
    let root = tempfile::tempdir().unwrap();
    let settee = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_settee")).args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(settee(&["man", root.path().to_str().unwrap()]), "");
    let help = settee(&["--help"]);
    let (_, commands) = help.split_once("Commands:\n").unwrap();
    let (commands, _) = commands.split_once("\n\n").unwrap();
    let names = commands.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let names: Vec<&str> = names.filter(|name| !["", "help"].contains(name)).collect();
    assert!(names.len() > 25, "{names:?}");
    for name in names {
        let page = root.path().join(format!("settee-{name}.1"));
        let page = platform::files::read_text(&page).unwrap();
        assert!(page.contains("SYNOPSIS"), "{name}: {page}");
    }
    let page = platform::files::read_text(&root.path().join("settee-bucket-create.1")).unwrap();
    assert!(page.contains("quota"), "{page}");
}

#[test]
fn every_shell_completes_the_commands() {
    for shell in ["bash", "zsh", "fish"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_settee"));
        let output = command.args(["completions", shell]).output().unwrap();
        let script = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{shell}");
        for word in ["create-scope", "--memory-quota", "verify-file"] {
            let word = if shell == "fish" { word.trim_start_matches("--") } else { word };
            assert!(script.contains(word), "{shell} {word}");
        }
    }
}

#[test]
fn what_a_directory_has_is_not_changed_by_the_way() {
    let root = tempfile::tempdir().unwrap();
    let work = root.path();
    let first = ["--password", "first", "--vbuckets", "16", "--bucket", "orders"];
    Node::start(serve_directory(work, &first), work).stop();
    // A file that somebody has left there is no bucket.
    RealFiles.replace_all(&work.join("data/buckets/stray"), b"").unwrap();
    for (flags, names) in [
        (&["--bucket", "orders", "--password", "second"][..], "--set-password"),
        (&["--bucket", "orders", "--user", "bob"], "`Administrator`"),
        (&["--bucket", "orders", "--vbuckets", "64"], "16 vBuckets"),
        (&["--bucket", "order"], "`orders`"),
    ] {
        let said = refused(serve_directory(work, flags));
        assert!(said.contains(names), "{flags:?}: {said}");
    }
    let mut from_environment = serve_directory(work, &["--bucket", "orders"]);
    from_environment.env("SETTEE_PASSWORD", "second");
    assert!(refused(from_environment).contains("SETTEE_PASSWORD"));
    Node::start(serve_directory(work, &["--bucket", "orders", "--vbuckets", "16"]), work).stop();
    // Who names none gets those that there are.
    Node::start(serve_directory(work, &[]), work).stop();
    assert!(
        work.join("data/buckets/orders").is_dir() && !work.join("data/buckets/default").exists()
    );
    let on_purpose = ["--bucket", "orders", "--password", "second", "--set-password"];
    Node::start(serve_directory(work, &on_purpose), work).stop();
    assert!(refused(serve_directory(work, &first)).contains("--set-password"));
}

#[test]
fn a_first_start_that_fails_keeps_no_password_that_nobody_has_seen() {
    let root = tempfile::tempdir().unwrap();
    let work = root.path();
    let any = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
    let taken = platform::network::listen_standard(any).unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    for (flags, names) in [
        (&["--port", &port][..], "cannot listen"),
        (&["--memcached-port", &port], "cannot listen"),
        (&["--tls-client-ca", "/no/such"], "/no/such"),
        (&["--tls-certificate", "/no/such", "--tls-key", "/no/such"], "/no/such"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_settee"));
        command.args(["serve", "--management-port", "0"]).env_remove("SETTEE_PASSWORD");
        command.arg("--data-dir").arg(work.join("data"));
        if flags[0] != "--port" {
            command.args(["--port", "0"]);
        }
        command.args(flags).stdout(Stdio::null());
        let said = refused(command);
        assert!(said.contains(names), "{flags:?}: {said}");
    }
    let mut command = serve_directory(work, &["--vbuckets", "16"]);
    command.stdout(log_file(&work.join("greeting")));
    let node = Node::start(command, work);
    let greeting = platform::files::read_text(&work.join("greeting")).unwrap();
    assert!(greeting.contains("(generated; it is not shown again)"), "{greeting}");
    node.stop();
}

#[test]
fn neither_a_terminal_that_closes_nor_who_rotates_logs_ends_the_node() {
    let root = tempfile::tempdir().unwrap();
    let work = root.path();
    let mut node = Node::start(serve_directory(work, &["--memory-quota", "900TiB"]), work);
    node.signal("USR1");
    for _ in 0..2 {
        node.signal("HUP");
        let clock = Clock::real();
        let deadline = clock.now().after(PATIENCE);
        while !log_of(work).contains("SIGHUP") {
            assert!(clock.now() < deadline && node.child.try_wait().unwrap().is_none());
            platform::threads::pause(Duration::from_millis(10));
        }
    }
    node.stop();
    let log = log_of(work);
    assert!(log.contains("--memory-quota is more"), "{log}");
    assert!(log.contains("stopped"), "in order: {log}");
}

/// Waits until the log has this in it.
fn wait_for_log(work: &Path, what: &str) {
    wait_for(work, what, || log_of(work).contains(what));
}

fn wait_for(work: &Path, what: &str, is_so: impl Fn() -> bool) {
    let clock = Clock::real();
    let deadline = clock.now().after(PATIENCE);
    while !is_so() {
        assert!(clock.now() < deadline, "{what}: {}", log_of(work));
        platform::threads::pause(Duration::from_millis(10));
    }
}

#[test]
fn a_hangup_has_the_node_read_its_log_level_again_and_name_what_waits_for_a_restart() {
    let root = tempfile::tempdir().unwrap();
    let work = root.path();
    let file = work.join("settee.toml");
    let say = |text: &str| RealFiles.replace_all(&file, text.as_bytes()).unwrap();
    say("log-level = 'info'\n");
    let config = file.display().to_string();
    let node = Node::start(serve_directory(work, &["--config", &config]), work);
    say("no-such-setting = 1\n");
    node.signal("HUP");
    wait_for_log(work, "correct the file");
    say("log-level = 'warn'\nenable-flush = true\n");
    node.signal("HUP");
    wait_for_log(work, "it counts from a restart on");
    assert!(log_of(work).contains("enable-flush"), "{}", log_of(work));
    node.stop();
    let log = log_of(work);
    assert!(!log.contains("stopping: answering"), "the level was read: {log}");
}

#[test]
fn a_service_manager_hears_of_a_node_from_its_start_to_its_end() {
    for threads in ["1", "4"] {
        let root = tempfile::tempdir().unwrap();
        let work = root.path();
        let path = work.join("notify");
        let manager = std::os::unix::net::UnixDatagram::bind(&path).unwrap();
        manager.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut heard = String::new();
        let mut hear_until = |what: &str| {
            while !heard.contains(what) {
                let mut message = [0; 1024];
                let size = manager.recv(&mut message).unwrap();
                heard += std::str::from_utf8(&message[..size]).unwrap();
            }
            std::mem::take(&mut heard)
        };
        let node = {
            // The watchdog is for the process that is told its own id.
            let mut command = Command::new("sh");
            let script = "WATCHDOG_PID=$$ exec \"$0\" \"$@\"";
            command.args(["-c", script, env!("CARGO_BIN_EXE_settee"), "serve", "--port", "0"]);
            command.args(["--management-port", "0", "--threads", threads, "--ready-file"]);
            command.arg(work.join("ready")).arg("--data-dir").arg(work.join("data"));
            command.env("SETTEE_MEMORY_QUOTA", "64MiB").env("NOTIFY_SOCKET", &path);
            command.env("WATCHDOG_USEC", "300000").stdout(Stdio::null());
            Node::start(command, work)
        };
        let start = hear_until("READY=1");
        assert!(start.contains("STATUS=serving 0 documents"), "{start}");
        assert!(!start.contains("WATCHDOG"), "it does not wait for a start: {start}");
        hear_until("WATCHDOG=1");
        hear_until("WATCHDOG=1");
        node.stop();
        hear_until("STOPPING=1");
    }
}

#[test]
fn a_check_says_whether_a_node_could_start_and_makes_nothing() {
    let root = tempfile::tempdir().unwrap();
    let work = root.path();
    let check = |flags: &[&str]| {
        let mut command = serve_directory(work, flags);
        command.arg("--check");
        command
    };
    let output = check(&[]).stdout(Stdio::piped()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("a start makes the data directory"), "{said}");
    assert_eq!(RealFiles.list(work).unwrap(), Vec::<String>::new());
    let node = Node::start(serve_directory(work, &[]), work);
    let output = check(&[]).stdout(Stdio::piped()).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("a start goes on with the data directory"), "{said}");
    // A reload asks so: what the node has is its own affair as long as it runs.
    let output = check(&["--password", "another"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    node.stop();
    RealFiles.create_directories(&work.join("other")).unwrap();
    RealFiles.replace_all(&work.join("other/letter.txt"), b"Dear ...").unwrap();
    let other = work.join("other").display().to_string();
    for (flags, why) in [
        (["--log-level", "a=b=c=d"], "--log-level"),
        (["--init-dir", "missing"], "--init-dir"),
        (["--password", "another"], "--set-password"),
        (["--advertise", ""], "--advertise"),
        (["--vbuckets", "16"], "says that the bucket has 1024 vBuckets, not 16"),
        (["--bucket-type", "ephemeral"], "says that the bucket is of the type `couchbase`"),
        (["--config", "missing.toml"], "missing.toml"),
        (["--cluster-map", "missing.json"], "--password"),
    ] {
        let said = refused(check(&flags));
        assert!(said.contains(why), "{flags:?}: {said}");
    }
    let mut elsewhere = Command::new(env!("CARGO_BIN_EXE_settee"));
    elsewhere.args(["serve", "--check", "--ready-file", "missing/ready", "--data-dir", &other]);
    let said = refused(elsewhere);
    assert!(said.contains("--ready-file: there is no directory missing"), "{said}");
    for name in ["users.json", "own-setup.json", "buckets/default/bucket.json"] {
        let path = work.join("data").join(name);
        let before = RealFiles.read_all(&path).ok();
        RealFiles.replace_all(&path, b"{\"format\": 1000}").unwrap();
        let said = refused(check(&[]));
        assert!(said.contains(name.rsplit('/').next().unwrap()), "{name}: {said}");
        match before {
            Some(before) => RealFiles.replace_all(&path, &before).unwrap(),
            None => RealFiles.remove(&path).unwrap(),
        }
    }
    let mut foreign = serve(work);
    foreign.args(["--check", "--data-dir", &other]);
    let said = refused(foreign);
    assert!(said.contains("letter.txt"), "{said}");
    assert_eq!(RealFiles.list(Path::new(&other)).unwrap(), ["letter.txt"]);
}

#[test]
fn a_node_that_cannot_go_on_once_it_serves_ends_in_order() {
    let root = tempfile::tempdir().unwrap();
    let work = root.path();
    Node::start(serve_directory(work, &[]), work).stop();
    // Nothing can be made under the one, as on a full disk, and nobody can say what is behind the
    // other.
    RealFiles.create_directories(&work.join("ready.new/inside")).unwrap();
    let check = |name: &str| {
        let why = refused(serve_directory(work, &[]));
        assert!(why.contains(name), "{why}");
        let mark = work.join("data/buckets/default/clean-stop");
        assert!(std::fs::exists(&mark).unwrap(), "{name}: {why}");
    };
    check("ready.new");
    std::os::unix::fs::symlink("nowhere", work.join("data/audit.log.off")).unwrap();
    check("audit.log.off");
}

#[test]
fn a_node_that_keeps_nothing_leaves_nothing_whatever_ends_it() {
    let root = tempfile::tempdir().unwrap();
    let work = root.path();
    let dev = || {
        let mut command = serve(work);
        command.arg("--dev");
        command
    };
    Node::start(dev(), work).stop();
    assert_eq!(left_in(work), Vec::<String>::new(), "after an orderly stop");

    let taken = platform::network::listen_standard(([127, 0, 0, 1], 0).into()).unwrap();
    let mut no_port = dev();
    no_port.args(["--memcached-port", &taken.local_addr().unwrap().port().to_string()]);
    let said = refused(no_port);
    assert!(said.contains("another node") && said.contains("--memcached-port 0"), "{said}");
    assert_eq!(left_in(work), Vec::<String>::new(), "after a start that failed");

    let mut foreign = dev();
    let said = refused({
        foreign.args(["--host", "192.0.2.1"]);
        foreign
    });
    assert!(said.contains("no such address") && !said.contains("another node"), "{said}");

    let mut killed = Node::start(dev(), work);
    killed.child.kill().unwrap();
    killed.child.wait().unwrap();
    assert_eq!(left_in(work).len(), 1, "nobody was there to remove it");
    let next = Node::start(dev(), work);
    assert_eq!(left_in(work).len(), 1, "its own");
    next.stop();
    assert_eq!(left_in(work), Vec::<String>::new());
}

#[test]
fn help_lists_the_groups_that_the_server_names() {
    let root = tempfile::tempdir().unwrap();
    let work = root.path();
    let node = Node::start(serve_directory(work, &["--password", "secret"]), work);
    let ready = platform::files::read_text(&work.join("ready")).unwrap();
    let ready: serde_json::Value = serde_json::from_str(&ready).unwrap();
    let stats = |argument: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_settee"));
        command.arg("stats").args(argument).args(["--password", "secret", "--port"]);
        let Output { stdout, stderr, .. } =
            command.arg(ready["port"].to_string()).output().unwrap();
        String::from_utf8([stdout, stderr].concat()).unwrap()
    };
    let refused = stats(&["no-such-group"]);
    let (_, names) = refused.trim_end().split_once("there are:").expect(&refused);
    let mut groups: Vec<&str> = names.split_whitespace().collect();
    let help = stats(&["--help"]);
    let (_, listed) = help.split_once("(none)").unwrap();
    let (listed, _) = listed.split_once("Examples:").unwrap();
    let is_name = |word: &&str| word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
    let mut helped: Vec<&str> = listed
        .lines()
        .skip(1)
        .filter_map(|line| line.get(2..32))
        .flat_map(|names| names.split([' ', ',']).filter(|word| !word.is_empty()))
        .filter(is_name)
        .collect();
    groups.sort_unstable();
    helped.sort_unstable();
    assert_eq!(helped, groups);
    node.stop();
}

#[test]
fn the_log_says_what_serves_and_where_in_numbers() {
    let root = tempfile::tempdir().unwrap();
    let work = root.path();
    Node::start(serve_directory(work, &["--log-json"]), work).stop();
    let log = log_of(work);
    let line = log.lines().find(|line| line.contains("\"serving\"")).unwrap();
    let line: serde_json::Value = serde_json::from_str(line).unwrap();
    for name in ["data_port", "management_port", "quota_bytes", "documents", "took_ms"] {
        assert!(line["fields"][name].is_u64(), "{name}: {line}");
    }
    assert!(line["fields"]["version"].as_str().unwrap().contains("settee"), "{line}");
    assert_eq!(line["fields"]["quota_bytes"], 64 << 20, "{line}");
}

/// What a node that was started with these flags, and tells its ports there, says to a login.
fn log_in(work: &Path, user: &str, password: &str) -> Result<client::Connection, String> {
    let ready = platform::files::read_text(&work.join("ready")).unwrap();
    let ready: serde_json::Value = serde_json::from_str(&ready).unwrap();
    let port = u16::try_from(ready["port"].as_u64().unwrap()).unwrap();
    let mut options = client::ConnectionOptions::new("ud-agent");
    options.login = Some(client::Login::new(user, password));
    options.bucket = Some("default".to_owned());
    let address = client::ServerAddress::new("127.0.0.1", port);
    client::Connection::open(&address, &options).map_err(|error| error.to_string())
}

#[test]
fn an_address_from_which_too_many_logins_fail_is_refused_until_the_minute_is_over() {
    const FAILURES_MAX: usize = 3;
    let root = tempfile::tempdir().unwrap();
    let work = root.path();
    let flags = ["--failed-logins-max", "3", "--password", "right", "--vbuckets", "16"];
    let node = Node::start(serve_directory(work, &flags), work);
    log_in(work, "Administrator", "right").unwrap();
    // A minute may end between two of them, and what has failed in it is forgotten: but not twice.
    let mut answers = (0..=2 * FAILURES_MAX).map(|_| log_in(work, "Administrator", "wrong"));
    let is_refused = |answer: Result<client::Connection, String>| {
        answer.is_err_and(|error| error.contains("too many logins from this address"))
    };
    assert!(answers.any(is_refused));
    node.stop();
}

/// What is left of a log when what stands in marks is cut out.
fn without_user_data(log: &str) -> String {
    let parts = log.split("<ud>");
    parts.map(|part| part.split_once("</ud>").map_or(part, |(_, rest)| rest)).collect()
}

#[test]
fn a_log_names_users_and_documents_in_marks_alone_and_no_password() {
    const WORDS: [&str; 5] = ["ud-user", "ud-key", "ud-value", "ud-agent", "ud-password"];
    let root = tempfile::tempdir().unwrap();
    let work = root.path();
    let flags = ["--password", "ud-password", "--log-level", "trace", "--vbuckets", "16"];
    let node = Node::start(serve_directory(work, &flags), work);
    let ready = platform::files::read_text(&work.join("ready")).unwrap();
    let ready: serde_json::Value = serde_json::from_str(&ready).unwrap();
    let port = |name: &str| u16::try_from(ready[name].as_u64().unwrap()).unwrap();
    let open = |user: &str| log_in(work, user, "ud-password");
    let mut connection = open("Administrator").unwrap();
    let extras =
        protocol::client::store_extras(protocol::request::StoreExtras { flags: [0; 4], expiry: 0 });
    for opcode in [protocol::Opcode::Set, protocol::Opcode::Add, protocol::Opcode::Get] {
        let extras: &[u8] = if opcode == protocol::Opcode::Get { &[] } else { &extras };
        let value: &[u8] = if extras.is_empty() { b"" } else { b"ud-value" };
        let request = protocol::client::Request::new(opcode);
        connection
            .call(&protocol::client::Request { key: b"\0ud-key", extras, value, ..request })
            .unwrap();
    }
    assert!(open("ud-user").is_err());
    let url = format!("http://127.0.0.1:{}", port("management_port"));
    let mut as_user = Command::new(env!("CARGO_BIN_EXE_settee"));
    as_user.args(["user", "--user", "ud-user", "--password", "ud-password"]);
    as_user.args(["--management", &url, "list"]).stdout(Stdio::null()).stderr(Stdio::null());
    assert!(!as_user.status().unwrap().success());
    node.stop();
    let log = log_of(work);
    for said in ["a login failed", "a login at the REST port failed"] {
        assert!(log.contains(said), "{said} is not in {log}");
    }
    assert!(log.contains("<ud>ud-user</ud>") && log.contains("<ud>ud-agent</ud>"));
    let rest = without_user_data(&log);
    for word in WORDS {
        assert!(!rest.contains(word), "{word} stands outside of a mark: {rest}");
    }
    assert!(!log.contains("ud-password"));
}
