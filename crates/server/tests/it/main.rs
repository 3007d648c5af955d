//! A data port on the loopback interface, and clients that behave badly.

mod bad_input;
mod commands;
mod pipelining;
mod support;
