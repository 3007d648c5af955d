//! What a node logs, where to, and what it never says there.

use std::process::Stdio;

use platform::Files;
use platform::files::RealFiles;

use crate::support::{
    Node, ask, log_in, log_of, port_of, refused, serve_directory, settee, tool, wait_for,
    wait_for_log,
};

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
fn neither_a_terminal_that_closes_nor_who_rotates_logs_ends_the_node() {
    let root = tempfile::tempdir().unwrap();
    let work = root.path();
    let mut node = Node::start(serve_directory(work, &["--memory-quota", "900TiB"]), work);
    node.signal("USR1");
    for _ in 0..2 {
        node.signal("HUP");
        wait_for(work, "SIGHUP", || {
            assert!(node.child.try_wait().unwrap().is_none(), "it goes on");
            log_of(work).contains("SIGHUP")
        });
    }
    node.stop();
    let log = log_of(work);
    assert!(log.contains("--memory-quota is more"), "{log}");
    assert!(log.contains("stopped"), "in order: {log}");
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
    let url = format!("http://127.0.0.1:{}", port_of(work, "management_port"));
    let mut as_user = settee();
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
