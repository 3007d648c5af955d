//! A node as a process of its own, and what is said to it.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use platform::files::RealFiles;
use platform::{Clock, Files};

pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn settee() -> Command {
    Command::new(env!("CARGO_BIN_EXE_settee"))
}

/// A node with one worker, no data yet, and any free ports.
pub(crate) fn serve(work: &Path) -> Command {
    let mut command = settee();
    command.args(["serve", "--port", "0", "--management-port", "0"]).env("SETTEE_THREADS", "1");
    command.arg("--ready-file").arg(work.join("ready")).env("SETTEE_MEMORY_QUOTA", "64MiB");
    command.env_remove("SETTEE_PASSWORD").env("TMPDIR", work);
    command.stdout(Stdio::null());
    command
}

/// The same with a directory that stays.
pub(crate) fn serve_directory(work: &Path, flags: &[&str]) -> Command {
    let mut command = serve(work);
    command.arg("--data-dir").arg(work.join("data")).args(flags);
    command
}

pub(crate) struct Node {
    pub(crate) child: Child,
}

impl Node {
    pub(crate) fn start(mut command: Command, work: &Path) -> Self {
        let log = log_file(&work.join("log"));
        // Of an earlier start.
        drop(RealFiles.remove(&work.join("ready")));
        let mut node = Self { child: command.stderr(log).spawn().unwrap() };
        wait_for(work, "the node is ready", || {
            assert!(node.child.try_wait().unwrap().is_none(), "{}", log_of(work));
            std::fs::exists(work.join("ready")).unwrap()
        });
        node
    }

    pub(crate) fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("sh").args(["-c", &format!("kill -{name} {id}")]).status();
        assert!(sent.unwrap().success());
    }

    pub(crate) fn stop(mut self) {
        self.signal("TERM");
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // One that was stopped is gone; of one that a failed assertion leaves there is no more use.
        drop(self.child.kill());
    }
}

pub(crate) fn log_file(path: &Path) -> Stdio {
    let mut options = std::fs::OpenOptions::new();
    Stdio::from(options.create(true).append(true).open(path).unwrap())
}

pub(crate) fn log_of(work: &Path) -> String {
    platform::files::read_text(&work.join("log")).unwrap()
}

/// What a node that must not start says.
pub(crate) fn refused(mut command: Command) -> String {
    let Output { status, stderr, .. } = command.stderr(Stdio::piped()).output().unwrap();
    let text = String::from_utf8(stderr).unwrap();
    assert!(!status.success(), "{text}");
    text
}

/// Waits until the log has this in it.
pub(crate) fn wait_for_log(work: &Path, what: &str) {
    wait_for(work, what, || log_of(work).contains(what));
}

pub(crate) fn wait_for(work: &Path, what: &str, mut is_so: impl FnMut() -> bool) {
    let clock = Clock::real();
    let deadline = clock.now().after(PATIENCE);
    while !is_so() {
        assert!(clock.now() < deadline, "{what}: {}", log_of(work));
        platform::threads::pause(Duration::from_millis(10));
    }
}

/// A port of the node that was started last.
pub(crate) fn port_of(work: &Path, name: &str) -> u64 {
    let ready = platform::files::read_text(&work.join("ready")).unwrap();
    let ready: serde_json::Value = serde_json::from_str(&ready).unwrap();
    ready[name].as_u64().unwrap()
}

/// A request with a form, and the status and the body that answer it.
pub(crate) fn ask(
    work: &Path,
    password: Option<&str>,
    method: &str,
    path: &str,
    form: &str,
) -> (u16, String) {
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
pub(crate) fn tool(work: &Path, arguments: &[&str]) -> String {
    let url = format!("http://127.0.0.1:{}", port_of(work, "management_port"));
    let mut command = settee();
    command.args(arguments);
    let output = command.args(["--management", &url, "--password", "password"]).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// What a tool answers that talks to the node's data port.
pub(crate) fn document_tool(work: &Path, arguments: &[&str]) -> Output {
    tool_command(work, arguments).output().unwrap()
}

pub(crate) fn tool_command(work: &Path, arguments: &[&str]) -> Command {
    let mut command = settee();
    command.args(arguments).stdin(Stdio::null());
    let port = port_of(work, "port").to_string();
    command.args(["--password", "password", "--port", &port]);
    command
}

/// What it prints if it does what it is to do.
pub(crate) fn printed(work: &Path, arguments: &[&str]) -> String {
    let output = document_tool(work, arguments);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// What it says on standard error if it does not.
pub(crate) fn complaint(work: &Path, arguments: &[&str]) -> String {
    let output = document_tool(work, arguments);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {output:?}");
    assert!(output.stdout.is_empty(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// What the node says to a login of a client that calls itself `ud-agent`.
pub(crate) fn log_in(
    work: &Path,
    user: &str,
    password: &str,
) -> Result<client::Connection, String> {
    let port = u16::try_from(port_of(work, "port")).unwrap();
    let mut options = client::ConnectionOptions::new("ud-agent");
    options.login = Some(client::Login::new(user, password));
    options.bucket = Some("default".to_owned());
    let address = client::ServerAddress::new("127.0.0.1", port);
    client::Connection::open(&address, &options).map_err(|error| error.to_string())
}
