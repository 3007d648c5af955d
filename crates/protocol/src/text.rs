//! memcached's text protocol, its meta commands included: bytes to requests, answers to bytes.
//! Source: memcached's protocol.txt.
//!
//! A line is a request, but for a retrieval of several keys, which is one request a key and one
//! for the end of the line: so its length has no limit, and whoever executes it may stop behind any
//! key.

pub mod answer;
pub mod exptime;
pub mod key;
pub mod meta;
pub mod reader;
pub mod request;

mod line;

#[cfg(test)]
mod tests;
