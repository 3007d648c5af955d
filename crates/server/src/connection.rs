//! One connection: bytes in, bytes out, completions by token. No socket, no thread.

mod ahead;
mod bucket_loss;
mod dcp;
mod dialect;
mod durations;
mod foreign;
mod holding;
mod identity;
mod input;
mod known_answer;
mod metering;
mod notification;
mod output;
mod parked;
mod receive;
mod reply;
mod request;
mod rights;
mod state;
mod text;
mod turn;

pub(crate) use identity::Reply;
pub(crate) use known_answer::{KnownAnswer, KnownOfLine, PathsAnswer};
pub(crate) use output::{Output, Unsent};
pub(crate) use parked::{Kept, Parked, ParkedAnswer, ParkedRequest};
pub(crate) use reply::{Content, Payload};
pub(crate) use request::{Done, Request};
pub(crate) use rights::Sight;
pub(crate) use state::{Connection, LoginEnd};
pub(crate) use turn::Turn;
