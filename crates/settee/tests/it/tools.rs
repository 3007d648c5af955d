//! What tools at the command line say and do, beside a node that serves.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use crate::support::{
    Node, complaint, document_tool, log_of, port_of, printed, serve_directory, settee, tool,
    tool_command, wait_for,
};

#[test]
fn the_binary_tells_its_own_version_not_the_one_that_clients_are_told() {
    let output = settee().arg("--version").output().unwrap();
    let version = String::from_utf8(output.stdout).unwrap();
    assert_eq!(version, concat!("settee ", env!("CARGO_PKG_VERSION"), "\n"));
}

#[test]
fn every_command_has_a_manual_page() {
    let root = tempfile::tempdir().unwrap();
    let settee = |arguments: &[&str]| {
        let output = settee().args(arguments).output().unwrap();
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
        let mut command = settee();
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
fn help_lists_the_groups_that_the_server_names() {
    let root = tempfile::tempdir().unwrap();
    let work = root.path();
    let node = Node::start(serve_directory(work, &["--password", "secret"]), work);
    let port = port_of(work, "port").to_string();
    let stats = |argument: &[&str]| {
        let mut command = settee();
        command.arg("stats").args(argument).args(["--password", "secret", "--port"]);
        let Output { stdout, stderr, .. } = command.arg(&port).output().unwrap();
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
