//! `settee serve` with real processes.
#![expect(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use platform::files::RealFiles;
use platform::{Clock, Files};

const PATIENCE: Duration = Duration::from_secs(60);

/// A node with one worker, no data yet, and any free ports.
fn serve(work: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_settee"));
    command.args(["serve", "--port", "0", "--management-port", "0", "--threads", "1"]);
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

#[test]
fn what_a_directory_has_is_not_changed_by_the_way() {
    let root = tempfile::tempdir().unwrap();
    let work = root.path();
    let first = ["--password", "first", "--vbuckets", "16", "--bucket", "orders"];
    Node::start(serve_directory(work, &first), work).stop();
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
fn a_terminal_that_closes_does_not_end_the_node() {
    let root = tempfile::tempdir().unwrap();
    let work = root.path();
    let mut node = Node::start(serve_directory(work, &["--memory-quota", "900TiB"]), work);
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
