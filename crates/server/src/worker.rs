//! Front-end workers: threads with a readiness loop each.

mod event_loop;
mod mailbox;
mod message_queue;
mod peer;
mod server;
mod turn;
mod watch;

pub use mailbox::Mailboxes;
pub use server::{Doors, Parts, Server, open_door};
