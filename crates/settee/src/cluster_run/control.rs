//! How another process tells a running cluster what to do: one line of JSON each way, on a port of
//! the loopback interface whose address and secret are in the cluster's directory.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};

/// What a running cluster can be told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Command {
    Kill(u16),
    Restart {
        node: u16,
        is_forced: bool,
    },
    Failover {
        node: u16,
        is_forced: bool,
    },
    Recover {
        node: u16,
        is_forced: bool,
    },
    Pause(u16),
    Resume(u16),
    /// Of these buckets; of all, where none is said.
    Status {
        buckets: Vec<String>,
    },
    Stop,
}

impl Command {
    /// Whether it is about processes alone, whatever the map is.
    pub(super) fn needs_no_map(&self) -> bool {
        matches!(self, Self::Kill(_) | Self::Pause(_) | Self::Stop)
    }
}

/// A command with the way back for what came of it.
pub(super) struct Ordered {
    pub(super) command: Command,
    pub(super) answer: mpsc::SyncSender<Answer>,
    /// Disconnected once the answer is on its way, or nobody waits for it.
    pub(super) passed_on: mpsc::Receiver<()>,
}

/// What a person reads: of success, or why it failed.
pub(super) type Answer = Result<String, String>;

#[derive(Serialize, Deserialize)]
struct Line {
    secret: String,
    command: Command,
}

/// Bytes of a line, at most.
const LINE_BYTES_MAX: u64 = 1 << 16;
/// How long a peer may take to say its line.
pub(super) const LINE_TIME_MAX: Duration = Duration::from_secs(5);
/// How long a command may take: a restart reads everything back.
const COMMAND_TIME_MAX: Duration = Duration::from_secs(120);

/// Listens on a free port and hands what comes to `orders`. The thread ends with the process.
pub(super) fn listen(secret: String, orders: mpsc::Sender<Ordered>) -> anyhow::Result<SocketAddr> {
    let listener = platform::network::listen_standard(([127, 0, 0, 1], 0).into())?;
    let address = listener.local_addr()?;
    platform::threads::spawn("Control", move || accept(&listener, &secret, &orders))?;
    Ok(address)
}

fn accept(listener: &TcpListener, secret: &str, orders: &mpsc::Sender<Ordered>) {
    for stream in listener.incoming() {
        let Ok(stream) = stream else { continue };
        // Whoever breaks the line off hears nothing; the next one is listened to.
        drop(serve(&stream, secret, orders));
    }
}

fn serve(
    mut stream: &TcpStream,
    secret: &str,
    orders: &mpsc::Sender<Ordered>,
) -> anyhow::Result<()> {
    // Connections are served in turn: one that says nothing holds the others up no longer than
    // this.
    stream.set_read_timeout(Some(LINE_TIME_MAX))?;
    let mut line = String::new();
    BufReader::new(stream.take(LINE_BYTES_MAX)).read_line(&mut line)?;
    let (_passed_on, when_passed_on) = mpsc::sync_channel(0);
    let answer = match serde_json::from_str::<Line>(&line) {
        Ok(line) if line.secret == secret => carry_out(line.command, when_passed_on, orders),
        _ => Err("this is no command for this cluster".to_owned()),
    };
    let mut answer = serde_json::to_string(&answer)?;
    answer.push('\n');
    stream.write_all(answer.as_bytes())?;
    Ok(())
}

fn carry_out(
    command: Command,
    passed_on: mpsc::Receiver<()>,
    orders: &mpsc::Sender<Ordered>,
) -> Answer {
    let (answer, answered) = mpsc::sync_channel(1);
    let stopping = || "the cluster is stopping".to_owned();
    orders.send(Ordered { command, answer, passed_on }).map_err(|_| stopping())?;
    answered.recv().unwrap_or_else(|_| Err(stopping()))
}

/// Tells the cluster at `address` to carry out `command`.
pub(super) fn tell(address: SocketAddr, secret: &str, command: Command) -> anyhow::Result<String> {
    let mut stream = platform::network::connect_within(address, LINE_TIME_MAX)
        .context("no cluster runs in this directory; start it with settee cluster-run")?;
    stream.set_read_timeout(Some(COMMAND_TIME_MAX))?;
    let mut line = serde_json::to_string(&Line { secret: secret.to_owned(), command })?;
    line.push('\n');
    stream.write_all(line.as_bytes())?;
    let mut answer = String::new();
    BufReader::new(stream.take(LINE_BYTES_MAX)).read_line(&mut answer)?;
    match serde_json::from_str::<Answer>(&answer) {
        Ok(Ok(text)) => Ok(text),
        Ok(Err(reason)) => bail!(reason),
        Err(_) => bail!("the cluster has ended before it answered; its terminal says why"),
    }
}
