//! `settee serve` as it starts, checks whether it could, and ends: what it finds and leaves.

use std::path::Path;
use std::process::{Command, Stdio};

use platform::Files;
use platform::files::RealFiles;

use crate::support::{
    Node, PATIENCE, ask, log_file, log_of, refused, serve, serve_directory, settee, tool,
};

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
        // A check says the same.
        let last = |said: &str| said.lines().last().map(str::to_owned);
        let checked = refused(serve_directory(work, &[flags, &["--check"]].concat()));
        assert_eq!(last(&checked), last(&said), "{flags:?}");
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
        let mut command = settee();
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
    let mut elsewhere = settee();
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
fn an_audit_log_that_cannot_be_opened_is_told_at_the_start_and_by_a_check() {
    let root = tempfile::tempdir().unwrap();
    let work = root.path();
    let why = "the audit log cannot be opened";
    Node::start(serve_directory(work, &[]), work).stop();
    assert!(!log_of(work).contains(why));
    RealFiles.remove(&work.join("data/audit.log")).unwrap_or_default();
    RealFiles.create_directories(&work.join("data/audit.log")).unwrap();
    let check = |flags: &[&str]| {
        let mut command = serve_directory(work, &[&["--check"], flags].concat());
        let output = command.stderr(Stdio::piped()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let is_told = |said: &str| {
        let mut lines = said.lines().filter(|line| line.contains(why));
        lines.any(|line| line.contains("ERROR") && line.contains("data/audit.log"))
    };
    let said = check(&[]);
    assert!(is_told(&said), "{said}");
    let said = check(&["--audit-log=false"]);
    assert!(!said.contains(why), "{said}");
    Node::start(serve_directory(work, &[]), work).stop();
    assert!(is_told(&log_of(work)), "{}", log_of(work));
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

fn left_in(work: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(work).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with("settee-dev")).collect()
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
