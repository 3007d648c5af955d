//! Front-end workers: threads with a readiness loop each.

mod crowd;
mod event_loop;
mod handshake;
mod line;
mod mailbox;
mod message_queue;
mod peer;
mod server;
mod socket;
mod turn;
mod watch;

pub use mailbox::Mailboxes;
pub use server::{Doors, Parts, Server, TlsDoor, open_door};
