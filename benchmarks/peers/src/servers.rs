//! The servers, as child processes on free ports of the loopback interface.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde_json::Value;
use tempfile::TempDir;

use crate::certificate::Certificate;
use crate::couchbase::{self, Login};
use crate::ended_child::EndedChild;

const START_TIME_MAX: Duration = Duration::from_secs(20);
const FLUSH_TIME_MAX: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(2);
const PASSWORD: &str = "password";
/// Of the node, below the directory that it is given.
const DATA: &str = "data";

/// Which program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// This project's.
    Settee,
    /// memcached.
    Memcached,
    /// redis-server.
    Redis,
}

/// A running server. Dropping it ends it and removes what it wrote.
pub struct Server {
    child: EndedChild,
    program: Program,
    /// Where it is spoken to without a login.
    pub address: SocketAddr,
    /// Where SDKs speak to it, and as whom.
    pub data_port: Option<(SocketAddr, Login)>,
    /// Where it speaks TLS, if it was started for that. Settee's is that of SDKs.
    pub tls_address: Option<SocketAddr>,
    directory: TempDir,
}

impl Program {
    /// In a report.
    pub fn name(self) -> &'static str {
        match self {
            Self::Settee => "settee",
            Self::Memcached => "memcached",
            Self::Redis => "redis",
        }
    }

    /// How the names of the threads begin that serve connections, if the program names them.
    pub const fn front_end_threads(self) -> Option<&'static str> {
        match self {
            Self::Settee => Some("FrontEnd"),
            Self::Memcached | Self::Redis => None,
        }
    }

    /// The version, for the report.
    pub fn version(self) -> Result<String> {
        let (program, flag) = match self {
            Self::Settee => return Ok(settee_binary()?.display().to_string()),
            Self::Memcached => ("memcached", "-V"),
            Self::Redis => ("redis-server", "--version"),
        };
        let output = Command::new(program).arg(flag).output();
        let output = output.with_context(|| format!("{program} is not installed"))?;
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }
}

impl Server {
    /// Starts a server with one front-end thread on these CPUs, and returns when it serves.
    pub fn start(program: Program, cores: &[usize]) -> Result<Self> {
        Self::start_with_threads(program, cores, 1)
    }

    /// The same with so many front-end threads.
    pub fn start_with_threads(program: Program, cores: &[usize], threads: usize) -> Result<Self> {
        let directory = tempfile::Builder::new().prefix("peers-").tempdir()?;
        let port = free_port()?;
        let command = command(program, port, directory.path(), threads)?;
        Self::start_command(program, command, port, directory, cores)
    }

    /// One front-end thread and further arguments.
    pub fn start_with(program: Program, cores: &[usize], arguments: &[&str]) -> Result<Self> {
        let directory = tempfile::Builder::new().prefix("peers-").tempdir()?;
        let port = free_port()?;
        let mut command = command(program, port, directory.path(), 1)?;
        command.args(arguments);
        Self::start_command(program, command, port, directory, cores)
    }

    /// The same for a server that speaks TLS and takes so many connections. memcached speaks
    /// nothing else then.
    pub fn start_with_tls(
        program: Program,
        cores: &[usize],
        certificate: &Certificate,
        connections_max: usize,
    ) -> Result<Self> {
        let directory = tempfile::Builder::new().prefix("peers-").tempdir()?;
        let port = free_port()?;
        let mut command = command(program, port, directory.path(), 1)?;
        let (chain, key) = (certificate.chain(), certificate.key());
        match program {
            Program::Settee => {
                command.arg("--tls-certificate").arg(chain).arg("--tls-key").arg(key);
                command.args(["--tls-port", "0", "--management-tls-port", "0"]);
            }
            Program::Memcached => {
                let files = format!("ssl_chain_cert={},ssl_key={}", chain.display(), key.display());
                command.args(["-Z", "-o", &files, "-c", &connections_max.to_string()]);
            }
            Program::Redis => bail!("redis is not measured behind TLS"),
        }
        let mut server = Self::start_command(program, command, port, directory, cores)?;
        if program == Program::Memcached {
            server.tls_address = Some(server.address);
        }
        Ok(server)
    }

    /// The same for a node of this binary.
    pub fn start_node(binary: &Path, cores: &[usize]) -> Result<Self> {
        let directory = tempfile::Builder::new().prefix("peers-").tempdir()?;
        let command = settee_command(binary, directory.path(), 1);
        // The node chooses its ports, and its ready file says which.
        Self::start_command(Program::Settee, command, 0, directory, cores)
    }

    fn start_command(
        program: Program,
        mut command: Command,
        port: u16,
        directory: TempDir,
        cores: &[usize],
    ) -> Result<Self> {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = on_cores(cores, || command.spawn())?;
        let child = child.with_context(|| format!("cannot start {}", program.name()))?;
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let child = EndedChild(child);
        let mut server =
            Self { child, program, address, data_port: None, tls_address: None, directory };
        server.wait_until_it_serves()?;
        Ok(server)
    }

    /// The program's name.
    pub fn program(&self) -> Program {
        self.program
    }

    /// The process.
    pub fn pid(&self) -> u32 {
        self.child.0.id()
    }

    /// Where it keeps its data, and nothing else is.
    pub fn data_directory(&self) -> PathBuf {
        self.directory.path().join(DATA)
    }

    /// Waits until everything written is on disk, where there is a disk.
    pub fn wait_until_flushed(&self) -> Result<()> {
        if self.program != Program::Settee {
            return Ok(());
        }
        let mut stream = TcpStream::connect(self.address)?;
        let started = Instant::now();
        loop {
            let queued = couchbase::statistic(&mut stream, "ep_diskqueue_items")?;
            if queued == "0" {
                return Ok(());
            }
            ensure!(started.elapsed() < FLUSH_TIME_MAX, "{queued} items are still not on disk");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn wait_until_it_serves(&mut self) -> Result<()> {
        let started = Instant::now();
        while !self.serves()? {
            if let Some(status) = self.child.0.try_wait()? {
                bail!("{} ended at once: {status}", self.program.name());
            }
            ensure!(started.elapsed() < START_TIME_MAX, "{} does not serve", self.program.name());
            std::thread::sleep(POLL);
        }
        Ok(())
    }

    fn serves(&mut self) -> Result<bool> {
        if self.program != Program::Settee {
            return Ok(TcpStream::connect(self.address).is_ok());
        }
        let Ok(text) = std::fs::read_to_string(self.directory.path().join("ready")) else {
            return Ok(false);
        };
        // The file may be half written.
        let Ok(ready) = serde_json::from_str::<Value>(&text) else { return Ok(false) };
        let port = |name: &str| -> Result<SocketAddr> {
            let port = ready[name].as_u64().with_context(|| format!("no {name} in {text}"))?;
            Ok(SocketAddr::from(([127, 0, 0, 1], u16::try_from(port)?)))
        };
        let word = |name: &str| ready[name].as_str().map(str::to_owned).context("no such field");
        let login =
            Login { user: word("user")?, password: PASSWORD.to_owned(), bucket: word("bucket")? };
        self.address = port("memcached_port")?;
        self.data_port = Some((port("port")?, login));
        self.tls_address = port("tls_port").ok();
        Ok(true)
    }
}

fn command(program: Program, port: u16, directory: &Path, threads: usize) -> Result<Command> {
    let (port, thread_count) = (port.to_string(), threads.to_string());
    let mut command = match program {
        Program::Settee => return Ok(settee_command(&settee_binary()?, directory, threads)),
        Program::Memcached => Command::new("memcached"),
        Program::Redis => Command::new("redis-server"),
    };
    match program {
        Program::Memcached => command.args([
            "-t",
            &thread_count,
            // Each connection as it begins: in binary or in text.
            "-B",
            "auto",
            "-m",
            "2048",
            "-U",
            "0",
            "-l",
            "127.0.0.1",
            "-p",
            &port,
            "-u",
            "root",
        ]),
        _ => command.args([
            "--port",
            &port,
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--appendonly",
            "no",
            "--io-threads",
            &thread_count,
            // Otherwise the others only write.
            "--io-threads-do-reads",
            if threads > 1 { "yes" } else { "no" },
        ]),
    };
    command.current_dir(directory);
    Ok(command)
}

/// The node on an empty data directory inside `directory`, with free ports and its ready file in
/// `directory/ready`.
fn settee_command(binary: &Path, directory: &Path, threads: usize) -> Command {
    let mut command = Command::new(binary);
    command.arg("serve").arg("--threads").arg(threads.to_string());
    command.args(["--host", "127.0.0.1", "--port", "0"]);
    command.args(["--management-port", "0", "--memcached-port", "0", "--memory-quota", "8GiB"]);
    command.args(["--password", PASSWORD, "--log-level", "error"]);
    command.arg("--data-dir").arg(directory.join(DATA));
    command.arg("--ready-file").arg(directory.join("ready"));
    command
}

/// From the environment variable SETTEE_BINARY, or built now. A relative path starts in the
/// present directory.
pub fn settee_binary() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("SETTEE_BINARY") {
        return std::fs::canonicalize(&path).with_context(|| format!("no binary at {path:?}"));
    }
    build_node(&repository(), &target_directory()).context("say SETTEE_BINARY=path")
}

/// A release build of the node from the sources in `root`, of whichever package it is there.
pub(crate) fn build_node(root: &Path, target: &Path) -> Result<PathBuf> {
    let mut build = Command::new("cargo");
    build.args(["build", "--quiet", "--release", "--bin", "settee"]).current_dir(root);
    build.arg("--target-dir").arg(target);
    ensure!(build.status()?.success(), "cannot build the node in {}", root.display());
    Ok(std::fs::canonicalize(target.join("release/settee"))?)
}

/// The root of the repository.
pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Where cargo puts what it builds of the node.
pub(crate) fn target_directory() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR");
    let target = target.map_or_else(|| repository().join("target"), PathBuf::from);
    // Whoever gets it may be in another directory.
    std::path::absolute(&target).unwrap_or(target)
}

/// Does something with this thread, and the processes that it starts, on some CPUs only.
fn on_cores<T>(cores: &[usize], body: impl FnOnce() -> T) -> Result<T> {
    let before = sched_getaffinity(None)?;
    pin_thread(cores)?;
    let outcome = body();
    sched_setaffinity(None, &before)?;
    Ok(outcome)
}

/// Lets this thread run on these CPUs only.
pub fn pin_thread(cores: &[usize]) -> Result<()> {
    let mut set = CpuSet::new();
    cores.iter().for_each(|&core| set.set(core));
    sched_setaffinity(None, &set).with_context(|| format!("cannot run on CPUs {cores:?}"))
}

/// The last CPU of the machine: the generator's. To be asked before this thread is pinned.
pub fn generator_core() -> usize {
    let count = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    count - 1
}

fn free_port() -> Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}
