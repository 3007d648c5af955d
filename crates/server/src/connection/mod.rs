//! One connection: bytes in, bytes out, completions by token. No socket, no thread.

mod dcp;
mod foreign;
mod holding;
mod input;
mod notification;
mod output;
mod parked;
mod receive;
mod reply;
mod request;
mod state;
mod turn;

pub(crate) use output::{Output, Unsent};
pub(crate) use parked::{Parked, ParkedRequest, Progress};
pub(crate) use reply::{Content, Payload, Reply};
pub(crate) use request::{Done, Request};
pub(crate) use state::{Connection, Entrance};
pub(crate) use turn::Turn;
