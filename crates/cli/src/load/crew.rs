//! The workers' threads, and how the main thread talks to them.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context;
use platform::network::Poll;
use platform::threads;

use super::pipeline::Loss;
use super::toolbox::Toolbox;
use super::worker::{Phase, Worker};

/// All workers. Their threads end with this value.
pub(super) struct Crew {
    members: Vec<Member>,
    reports: Receiver<Report>,
    stop: Arc<AtomicBool>,
}

struct Member {
    clients: usize,
    phases: Option<Sender<Phase>>,
    thread: Option<JoinHandle<()>>,
}

/// What a worker is made of.
pub(super) struct Recruit {
    pub(super) poll: Poll,
    pub(super) tools: Toolbox,
    pub(super) clients: usize,
}

/// What a worker says when it is done with something.
enum Report {
    Connected,
    PhaseDone,
    CannotConnect(Loss),
    Failed(io::Error),
}

impl Crew {
    /// Starts the threads, which connect their clients.
    pub(super) fn hire(recruits: Vec<Recruit>, stop: &Arc<AtomicBool>) -> io::Result<Self> {
        let (sender, reports) = channel();
        let mut members = Vec::new();
        for (number, recruit) in recruits.into_iter().enumerate() {
            let (phases, receiver) = channel();
            let (clients, stop, sender) = (recruit.clients, stop.clone(), sender.clone());
            let body = move || work(recruit, stop, &receiver, &sender);
            let thread = threads::spawn(&format!("load-{number}"), body)?;
            members.push(Member { clients, phases: Some(phases), thread: Some(thread) });
        }
        Ok(Self { members, reports, stop: stop.clone() })
    }

    /// Clients of each worker.
    pub(super) fn client_counts(&self) -> Vec<usize> {
        self.members.iter().map(|member| member.clients).collect()
    }

    /// Gives each worker its phase.
    pub(super) fn begin(&self, phases: Vec<Phase>) {
        assert_eq!(phases.len(), self.members.len(), "every worker has its part of a phase");
        for (member, phase) in self.members.iter().zip(phases) {
            let sender = member.phases.as_ref().expect("the crew is hired");
            // A worker that has failed has said so, and `wait` tells.
            drop(sender.send(phase));
        }
    }

    /// Waits until every worker is done with what it was told; calls `tick` every `interval`.
    pub(super) fn wait(&self, interval: Duration, mut tick: impl FnMut()) -> anyhow::Result<()> {
        let mut left = self.members.len();
        while left > 0 {
            match self.reports.recv_timeout(interval) {
                Ok(Report::Connected | Report::PhaseDone) => left -= 1,
                Ok(Report::CannotConnect(loss)) => anyhow::bail!(loss),
                Ok(Report::Failed(error)) => return Err(error).context("a worker failed"),
                Err(RecvTimeoutError::Timeout) => tick(),
                Err(RecvTimeoutError::Disconnected) => anyhow::bail!("the workers are gone"),
            }
        }
        Ok(())
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        // After an error the others are still at work.
        self.stop.store(true, Ordering::Relaxed);
        for member in &mut self.members {
            // A worker that waits for its next phase hears that there is none, and ends.
            member.phases = None;
        }
        for thread in self.members.iter_mut().filter_map(|member| member.thread.take()) {
            if thread.join().is_err() {
                assert!(std::thread::panicking(), "a worker has a bug");
            }
        }
    }
}

fn work(
    recruit: Recruit,
    stop: Arc<AtomicBool>,
    phases: &Receiver<Phase>,
    reports: &Sender<Report>,
) {
    // Nobody listens any more once the main thread has given up.
    let report = |what| drop(reports.send(what));
    let Recruit { poll, tools, clients } = recruit;
    let mut worker = match Worker::connect(poll, tools, clients, stop) {
        Ok(worker) => worker,
        Err(loss) => return report(Report::CannotConnect(loss)),
    };
    report(Report::Connected);
    for phase in phases {
        match worker.run(phase) {
            Ok(()) => report(Report::PhaseDone),
            Err(error) => return report(Report::Failed(error)),
        }
    }
}
