//! `settee cluster-run` with real processes.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use platform::files::RealFiles;
use platform::{Clock, Entropy, Files};

use crate::support::{PATIENCE, settee};

/// The first of eight data ports and eight management ports on which nobody listens now.
fn free_ports() -> u16 {
    let mut random = Entropy::real().random();
    loop {
        let base = 20_000 + u16::try_from(random.below(750)).unwrap() * 16;
        let is_free =
            |port| platform::network::listen_standard(([127, 0, 0, 1], port).into()).is_ok();
        if (base..base + 16).all(is_free) {
            return base;
        }
    }
}

struct Cluster {
    child: Child,
    directory: tempfile::TempDir,
    base: u16,
}

impl Cluster {
    fn start(flags: &[&str]) -> Self {
        Self::start_by(Command::spawn, flags)
    }

    fn start_by(
        spawn: impl FnOnce(&mut Command) -> std::io::Result<Child>,
        flags: &[&str],
    ) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let base = free_ports();
        let unless_said =
            |flag, default| if flags.contains(&flag) { vec![] } else { vec![flag, default] };
        let mut command = Self::command(directory.path(), base);
        command.args(unless_said("--nodes", "2")).args(unless_said("--memory-quota", "64MiB"));
        let child = spawn(command.args(flags)).unwrap();
        let cluster = Self { child, directory, base };
        cluster.wait_for(&["--status"], "n_1");
        cluster
    }

    fn command(directory: &Path, base: u16) -> Command {
        let mut command = settee();
        command
            .args(["cluster-run", "--replicas", "1", "--vbuckets", "16", "--dir"])
            .arg(directory)
            .args(["--port-base", &base.to_string()])
            .args(["--management-port-base", &(base + 8).to_string()])
            .stdout(Stdio::null());
        command
    }

    fn tell(&self, order: &[&str]) -> Output {
        let mut command = settee();
        command.arg("cluster-run").arg("--dir").arg(self.directory.path()).args(order);
        command.output().unwrap()
    }

    /// What is answered to an order that must succeed.
    fn ask(&self, order: &[&str]) -> String {
        let output = self.tell(order);
        assert!(output.status.success(), "{order:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn wait_for(&self, order: &[&str], answer: &str) {
        let clock = Clock::real();
        let deadline = clock.now().after(PATIENCE);
        loop {
            let output = self.tell(order);
            if String::from_utf8_lossy(&output.stdout).contains(answer) {
                return;
            }
            assert!(clock.now() < deadline, "{order:?} does not answer {answer:?}: {output:?}");
            platform::threads::pause(Duration::from_millis(20));
        }
    }

    /// Stores 200 documents with durable writes in a bucket.
    fn load(&self, bucket: &str) {
        let flags = ["--durability", "majority", "--bucket", bucket, "--num-cycles", "1"];
        let output = self.load_command(&flags).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }

    /// What stores 200 documents, through the second node.
    fn load_command(&self, flags: &[&str]) -> Command {
        let mut command = settee();
        command.args(["load", "--port", &(self.base + 2).to_string(), "--num-items", "200"]);
        command.args(["--user", "Administrator", "--password", "password"]).args(flags);
        command
    }

    /// What a node answers to a request of the administrator.
    fn rest(&self, node: u16, method: &str, path: &str, form: &str) -> String {
        let port = self.base + 8 + node;
        let mut connection = platform::network::connect(([127, 0, 0, 1], port).into()).unwrap();
        // Of Administrator, whose password is "password".
        let login = "Authorization: Basic QWRtaW5pc3RyYXRvcjpwYXNzd29yZA==";
        let size = form.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: x\r\n{login}\r\n\
             Connection: close\r\nContent-Type: application/x-www-form-urlencoded\r\n\
             Content-Length: {size}\r\n\r\n{form}"
        );
        connection.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).unwrap();
        answer
    }

    /// Waits until a node's log says this.
    fn wait_for_log(&self, node: u16, words: &str) {
        let log = self.directory.path().join(format!("n_{node}.log"));
        let clock = Clock::real();
        let deadline = clock.now().after(PATIENCE);
        while !platform::files::read_text(&log).unwrap().contains(words) {
            assert!(clock.now() < deadline, "{words:?} is not in {}", log.display());
            platform::threads::pause(Duration::from_millis(20));
        }
    }

    /// Waits until a node holds so many documents, active ones and replicas.
    fn wait_for_items(&self, node: u16, count: usize) {
        self.wait_for_statistic(node, &format!("curr_items_tot {count}"));
    }

    fn wait_for_statistic(&self, node: u16, wanted: &str) {
        let clock = Clock::real();
        let deadline = clock.now().after(PATIENCE);
        loop {
            let statistics = self.statistics(node, "default", None);
            if statistics.lines().any(|line| line == wanted) {
                return;
            }
            assert!(clock.now() < deadline, "not {wanted}: {statistics}");
            platform::threads::pause(Duration::from_millis(20));
        }
    }

    fn wait_until_served(&self, nodes: &[u16], count: usize) {
        let clock = Clock::real();
        let deadline = clock.now().after(PATIENCE);
        while self.served_count(nodes) != count {
            assert!(clock.now() < deadline, "{count} documents are not served");
            platform::threads::pause(Duration::from_millis(20));
        }
    }

    /// Waits until what both of two nodes have is the same.
    fn wait_until_alike(&self, one: u16, other: u16) {
        let clock = Clock::real();
        let deadline = clock.now().after(PATIENCE);
        let seqnos = |node| {
            let text = self.statistics(node, "default", Some("vbucket-seqno"));
            let lines = text.lines().filter_map(|line| line.split_once(' '));
            let seqnos = lines.filter(|(name, _)| name.ends_with(":abs_high_seqno"));
            let owned = seqnos.map(|(name, seqno)| (name.to_owned(), seqno.to_owned()));
            owned.collect::<BTreeMap<_, _>>()
        };
        loop {
            let (one, other) = (seqnos(one), seqnos(other));
            if one.iter().all(|(name, seqno)| other.get(name).is_none_or(|it| it == seqno)) {
                return;
            }
            assert!(clock.now() < deadline, "{one:?} {other:?}");
            platform::threads::pause(Duration::from_millis(20));
        }
    }

    /// How many documents can be read from these nodes.
    fn served_count(&self, nodes: &[u16]) -> usize {
        let count = |&node: &u16| -> usize {
            let statistics = self.statistics(node, "default", None);
            let count = statistics.lines().find_map(|line| line.strip_prefix("curr_items "));
            count.unwrap().parse().unwrap()
        };
        nodes.iter().map(count).sum()
    }

    fn statistics(&self, node: u16, bucket: &str, group: Option<&str>) -> String {
        let port = (self.base + 2 * node).to_string();
        let mut command = settee();
        command.arg("stats").args(group).args(["--user", "Administrator"]);
        command.args(["--password", "password", "--port", &port, "--bucket", bucket]);
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    }

    /// Waits until a node follows the other one, by TLS. Returned is how often it was asked.
    fn wait_for_follower(&self, node: u16) -> u64 {
        let mut count = 0;
        let clock = Clock::real();
        let deadline = clock.now().after(PATIENCE);
        let says = |text: &str, end: &str| text.lines().any(|line| line.ends_with(end));
        loop {
            let text = self.statistics(node, "default", Some("dcp"));
            count += 1;
            if says(&text, ":connected true") {
                assert!(says(&text, ":tls true"), "{text}");
                return count;
            }
            assert!(clock.now() < deadline, "nobody is followed: {text}");
            platform::threads::pause(Duration::from_millis(20));
        }
    }

    /// How many vBuckets of a node are in each state.
    fn states(&self, node: u16) -> Vec<(String, usize)> {
        self.states_of(node, "default")
    }

    fn states_of(&self, node: u16, bucket: &str) -> Vec<(String, usize)> {
        let text = self.statistics(node, bucket, Some("vbucket"));
        let mut states: Vec<&str> =
            text.lines().filter_map(|line| line.split_whitespace().nth(1)).collect();
        states.sort_unstable();
        let chunks = states.chunk_by(|one, other| one == other);
        chunks.map(|chunk| (chunk[0].to_owned(), chunk.len())).collect()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // Its nodes end with it.
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

fn counts(states: &[(&str, usize)]) -> Vec<(String, usize)> {
    states.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
}

#[test]
fn nodes_share_the_vbuckets_and_outlive_one_another() {
    let mut cluster = Cluster::start(&[]);
    for node in [0, 1] {
        assert_eq!(cluster.states(node), counts(&[("active", 8), ("replica", 8)]));
    }
    let second = Cluster::command(cluster.directory.path(), cluster.base).output().unwrap();
    let reason = String::from_utf8_lossy(&second.stderr);
    assert!(reason.contains("runs in") && reason.contains("--dir"), "{reason}");

    cluster.load("default");
    for node in [0, 1] {
        cluster.wait_for_items(node, 200);
    }

    assert!(cluster.ask(&["--kill", "0"]).contains("n_0 was killed"));
    assert!(!cluster.tell(&["--kill", "0"]).status.success(), "it does not run");
    assert!(!cluster.tell(&["--kill", "2"]).status.success(), "there is no such node");
    assert!(cluster.ask(&["--status"]).contains("does not run"));
    assert!(cluster.ask(&["--failover", "0"]).contains("promoted"));
    assert_eq!(cluster.states(1), counts(&[("active", 16)]));
    assert!(cluster.ask(&["--restart", "0"]).contains("without it"));
    assert_eq!(cluster.states(0), counts(&[("dead", 16)]), "the map is newer than its files");
    assert!(cluster.ask(&["--failover", "0"]).contains("given up before"), "it is told again");
    assert!(!cluster.tell(&["--failover", "1"]).status.success(), "it is the only one left");

    assert!(!cluster.tell(&["--recover", "1"]).status.success(), "it was not given up");
    assert!(cluster.ask(&["--recover", "0"]).contains("missing"));
    assert_eq!(cluster.states(0), counts(&[("replica", 16)]));
    cluster.wait_for_items(0, 200);
    cluster.load("default");

    cluster.ask(&["--pause", "1"]);
    assert!(cluster.ask(&["--status"]).contains("hangs"));
    cluster.ask(&["--resume", "1"]);
    // The answer comes although the process that gives it ends.
    assert!(cluster.ask(&["--stop"]).contains("stop"));
    assert!(cluster.child.wait().unwrap().success());
}

/// Of a third of the vBuckets the node that is lost first has a copy, and the other one a newer.
#[test]
fn what_nobody_serves_goes_on_where_the_most_of_it_is_once_all_have_answered_or_by_force() {
    for is_forced in [false, true] {
        let cluster = Cluster::start(&["--nodes", "3"]);
        let give_up = |node: &str| {
            cluster.ask(&["--kill", node]);
            cluster.ask(&["--failover", node])
        };
        cluster.load("default");
        give_up("0");
        let later = ["--num-cycles", "1", "--key-prefix", "later-"];
        assert!(cluster.load_command(&later).output().unwrap().status.success());
        cluster.wait_until_served(&[1, 2], 400);
        cluster.wait_for_statistic(1, "ep_diskqueue_items 0");
        cluster.wait_until_alike(1, 2);
        assert!(give_up("1").contains("5 vBuckets had no replica"));
        let served_count = cluster.served_count(&[2]);

        // Now and when it is a member already.
        for _ in 0..2 {
            let answer = cluster.ask(&["--recover", "0"]);
            for said in ["0, 4, 6, 10, 12 are not served", "n_1: it does not run", "--force"] {
                assert!(answer.contains(said), "{answer}");
            }
            assert_eq!(cluster.states(0), counts(&[("dead", 5), ("replica", 11)]));
        }
        if is_forced {
            let answer = cluster.ask(&["--recover", "0", "--force"]);
            assert!(answer.contains("5 vBuckets that no node served go on"), "{answer}");
            assert_eq!(cluster.states(0), counts(&[("active", 5), ("replica", 11)]));
            let count = cluster.served_count(&[0, 2]);
            assert!(served_count < count && count < 400, "what came behind is lost: {count}");
        }
        let answer = cluster.ask(&["--recover", "1"]);
        assert_eq!(answer.contains("5 vBuckets that no node served go on"), !is_forced, "{answer}");
        let state = if is_forced { "replica" } else { "active" };
        assert_eq!(cluster.states(1), counts(&[(state, 5)]));
        let count = cluster.served_count(&[0, 1, 2]);
        assert_eq!(count == 400, !is_forced, "{count}");
        let again = cluster.tell(&["--recover", "1"]);
        assert!(!again.status.success(), "nothing is left to be taken in: {again:?}");
    }
}

#[test]
fn several_buckets_are_told_apart_by_their_names() {
    let cluster = Cluster::start(&["--bucket", "orders,travel"]);
    let all = cluster.ask(&["--status"]);
    assert!(all.contains("bucket orders") && all.contains("bucket travel"), "{all}");
    let of_travel = cluster.ask(&["--status", "--bucket", "travel"]);
    assert!(of_travel.contains("bucket travel") && !of_travel.contains("orders"), "{of_travel}");
    let unknown = cluster.tell(&["--status", "--bucket", "other"]);
    let reason = String::from_utf8_lossy(&unknown.stderr);
    assert!(!unknown.status.success() && reason.contains("`orders`, `travel`"), "{reason}");

    cluster.load("travel");
    let has = |bucket: &str, line: &str| {
        cluster.statistics(1, bucket, None).lines().any(|known| known == line)
    };
    assert!(has("orders", "cmd_set 0") && !has("travel", "cmd_set 0"));

    let data = cluster.directory.path().join("n_1");
    let dump = |bucket: &str| {
        let mut command = settee();
        command.args(["dump", "--keys-only", "--bucket", bucket]).arg(&data).output().unwrap()
    };
    assert!(!dump("travel").stdout.is_empty());
    assert!(dump("orders").stdout.len() < dump("travel").stdout.len());
    let reason = String::from_utf8(dump("other").stderr).unwrap();
    assert!(reason.contains("`orders`") && reason.contains("`travel`"), "{reason}");

    let management = format!("http://127.0.0.1:{}", cluster.base + 9);
    let reset = |flags: &[&str]| {
        let mut command = settee();
        command.args(["reset-vbucket", "--password", "password", "--management", &management]);
        let output = command.args(flags).output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    assert_eq!(reset(&[]), (true, String::new()), "nothing is damaged");
    let (_, reason) = reset(&["1"]);
    assert!(reason.contains("several buckets") && reason.contains("--bucket"), "{reason}");
    let (_, reason) = reset(&["1", "--bucket", "travel"]);
    assert!(reason.contains("refuses (400)") && reason.contains("vBucket"), "{reason}");

    assert!(cluster.ask(&["--failover", "0"]).contains("promoted"));
    for bucket in ["orders", "travel"] {
        assert_eq!(cluster.states_of(1, bucket), counts(&[("active", 16)]), "{bucket}");
    }
}

#[test]
fn a_bucket_of_the_name_of_one_that_was_deleted_can_be_made_at_once_on_any_node() {
    let cluster = Cluster::start(&["--nodes", "3", "--memory-quota", "256MiB"]);
    let form = "name=orders&ramQuotaMB=100&replicaNumber=1";
    for round in 0..6 {
        let (deleter, maker) = (round % 3, round / 2);
        let made = cluster.rest(maker, "POST", "/pools/default/buckets", form);
        assert!(made.starts_with("HTTP/1.1 202"), "{maker}, {round}: {made}");
        let gone = cluster.rest(deleter, "DELETE", "/pools/default/buckets/orders", "");
        assert!(gone.starts_with("HTTP/1.1 200"), "{deleter}, {round}: {gone}");
    }
}

/// How many connections a node has had at its plain data port, this question's among them.
fn plain_connections(cluster: &Cluster, node: u16) -> u64 {
    let text = cluster.statistics(node, "default", Some("connections"));
    let of = |name: &str| -> u64 {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap().trim().parse().unwrap()
    };
    of("total_connections ") - of("tls_connections ")
}

#[test]
fn nodes_speak_by_tls_alone_and_a_wrong_certificate_is_refused_with_a_line_in_the_log() {
    let cluster = Cluster::start(&[]);
    cluster.load("default");
    let before = plain_connections(&cluster, 0);
    cluster.ask(&["--restart", "1"]);
    let asked_of_first = cluster.wait_for_follower(0);
    cluster.wait_for_follower(1);
    let plain = plain_connections(&cluster, 0) - before;
    assert_eq!(plain, asked_of_first + 1, "no connection is another's than this test's");
    cluster.load("default");

    let certificates = cluster.directory.path().join("certificates");
    let strange = cluster.directory.path().join("strange");
    let (clock, files) = (Clock::real(), RealFiles);
    let other = tls::AuthorityDirectory::new(&clock, &files, &strange);
    let pem = other.issue_to("n_1.pem", "127.0.0.1", "another authority").unwrap();
    files.replace_all(&certificates.join("n_1.pem"), &pem).unwrap();
    cluster.ask(&["--restart", "1"]);
    cluster.wait_for_log(0, "the node's certificate is refused");
    assert!(cluster.ask(&["--status"]).contains("UnknownIssuer"), "nobody else believes it");
}

/// A file may have so many blocks of 512 or 1024 bytes.
const FILE_BLOCKS_MAX: u32 = 64;

/// Starts a command whose processes can write no larger files.
fn spawn_with_small_files(command: &mut Command) -> std::io::Result<Child> {
    let mut limited = Command::new("sh");
    let line = format!("trap '' XFSZ; ulimit -f {FILE_BLOCKS_MAX}; exec \"$0\" \"$@\"");
    limited.args(["-c", &line]).arg(command.get_program()).args(command.get_args());
    limited.stdout(Stdio::null()).spawn()
}

#[test]
fn a_node_that_stops_with_an_error_is_named_with_its_reason() {
    for order in [&["--restart", "1"][..], &["--stop"]] {
        let mut cluster = Cluster::start_by(spawn_with_small_files, &["--persistence", "files"]);
        let mut load = cluster.load_command(&[]).stdout(Stdio::null()).spawn().unwrap();
        cluster.wait_for_log(1, "flushing fails");
        load.kill().unwrap();
        load.wait().unwrap();
        let told = cluster.tell(order);
        let reason = String::from_utf8_lossy(&told.stderr);
        for part in ["n_1 stopped with an error: exit status: 1", "could not be written"] {
            assert!(!told.status.success() && reason.contains(part), "{reason}");
        }
        if order == ["--stop"] {
            assert!(!cluster.child.wait().unwrap().success());
        }
    }
}

#[test]
fn a_cluster_whose_map_cannot_be_written_is_stopped() {
    let cluster = Cluster::start(&[]);
    // Nothing can be made under this name, as on a full disk.
    let obstacle = cluster.directory.path().join("map.new");
    RealFiles.create_directories(&obstacle.join("inside")).unwrap();
    let answer = cluster.rest(0, "POST", "/pools/default/buckets/default", "flushEnabled=1");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let refused = cluster.tell(&["--recover", "1"]);
    let reason = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && reason.contains("map.new"), "{refused:?}");
    assert!(cluster.ask(&["--kill", "1"]).contains("was killed"));
    assert!(cluster.ask(&["--stop"]).contains("stopped"));
}
