//! Whether the nodes that a backup waits for still answer: what they are asked for may take them
//! long, and one that hangs looks the same.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use anyhow::{Context, bail};
use document::uri::escaped;
use platform::Clock;

use crate::node_port::NodePort;

/// Between two questions to one node, unless whoever asks has less patience.
const INTERVAL: Duration = Duration::from_secs(2);
/// Between two looks at whether anybody still wants to know.
const LOOK: Duration = Duration::from_millis(100);
/// Questions in a row without an answer that make a node a silent one: one may be lost.
const UNANSWERED_MAX: u32 = 2;

/// Nodes that are asked again and again, as long as this lives.
pub(super) struct Watch {
    silent: Receiver<anyhow::Error>,
    is_over: Arc<AtomicBool>,
}

impl Watch {
    /// Asks these nodes for what they have at hand, which each has `patience` to answer.
    pub(super) fn begin(
        ports: impl IntoIterator<Item = NodePort>,
        bucket: &str,
        patience: Duration,
    ) -> anyhow::Result<Self> {
        let (sender, silent) = mpsc::channel();
        let watch = Self { silent, is_over: Arc::default() };
        for port in ports {
            let (sender, is_over) = (sender.clone(), Arc::clone(&watch.is_over));
            let path = format!("/pools/default/b/{}", escaped(bucket));
            let ask = move || {
                if let Err(error) = listen(&port, &path, patience, &is_over) {
                    // Nobody may want to know any more.
                    drop(sender.send(error));
                }
            };
            platform::threads::spawn("BackupWatch", ask).context("no thread can be started")?;
        }
        Ok(watch)
    }

    /// # Errors
    /// A node does not answer any more.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        self.silent.try_recv().map_or(Ok(()), Err)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

/// Asks a node until it is silent, or nobody wants to know.
fn listen(
    port: &NodePort,
    path: &str,
    patience: Duration,
    is_over: &AtomicBool,
) -> anyhow::Result<()> {
    let clock = Clock::real();
    let mut unanswered = 0;
    loop {
        let next = clock.now().after(INTERVAL.min(patience));
        while clock.now() < next {
            if is_over.load(Ordering::Relaxed) {
                return Ok(());
            }
            platform::threads::pause(LOOK);
        }
        // What it says does not matter: who refuses is there.
        let Err(error) = port.hear(path, patience) else {
            unanswered = 0;
            continue;
        };
        unanswered += 1;
        if unanswered == UNANSWERED_MAX {
            bail!("{} does not answer any more: {error:#}", port.url);
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::io::{Read, Write};

    use clap::Parser;
    use platform::network::listen_standard;

    use crate::server_arguments::ServerArguments;

    use super::*;

    pub(in super::super) const PATIENCE: Duration = Duration::from_millis(50);
    const ENOUGH: Duration = Duration::from_secs(60);

    /// A node that refuses so many questions, and hangs from then on.
    pub(in super::super) fn node(mut answers: usize) -> NodePort {
        #[derive(Parser)]
        struct Tool {
            #[command(flatten)]
            server: ServerArguments,
        }
        let listener = listen_standard(([127, 0, 0, 1], 0).into()).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let serve = move || {
            // What it does not answer stays open.
            let mut open = Vec::new();
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                if answers > 0 {
                    answers -= 1;
                    let mut request = [0; 4096];
                    assert!(stream.read(&mut request).unwrap() > 0);
                    let head = "HTTP/1.1 503 no\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
                    stream.write_all(head.as_bytes()).unwrap();
                } else {
                    open.push(stream);
                }
            }
        };
        platform::threads::spawn("FakeNode", serve).unwrap();
        let server = Tool::parse_from(["x", "--user", "u", "--password", "p"]).server;
        NodePort::find(&server, Some(&url)).unwrap().0
    }

    #[test]
    fn a_node_that_does_not_answer_any_more_is_heard_of() {
        for answers in [0, 3] {
            let port = node(answers);
            let url = port.url.clone();
            let watch = Watch::begin([node(usize::MAX), port], "b", PATIENCE).unwrap();
            let (clock, mut heard) = (Clock::real(), watch.check());
            let deadline = clock.now().after(ENOUGH);
            while heard.is_ok() {
                assert!(clock.now() < deadline, "a node that hangs is heard of");
                platform::threads::pause(LOOK);
                heard = watch.check();
            }
            let why = heard.unwrap_err().to_string();
            assert!(why.contains(&format!("{url} does not answer any more")), "{why}");
        }
    }

    #[test]
    fn a_node_that_refuses_is_there() {
        let watch = Watch::begin([node(usize::MAX)], "b", ENOUGH).unwrap();
        // Two questions at least: a node that is not there is heard of by then.
        platform::threads::pause(INTERVAL * 3);
        watch.check().unwrap();
    }
}
