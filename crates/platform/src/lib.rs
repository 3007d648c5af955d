//! The outside world behind one door: time, files, network, randomness, threads and memory.
//!
//! Nothing above this crate calls the operating system, and nothing above it contains `unsafe`
//! (architecture invariant 1). What a simulation replaces is a handle here ([`Files`], [`Clock`],
//! [`Entropy`], [`network::Network`]); what it never needs to replace is a plain function.

pub mod accounts;
pub mod aligned_buffer;
pub mod allocator;
mod cgroup;
pub mod child;
pub mod clock;
pub mod counting_allocator;
mod entropy;
pub mod files;
pub mod machine;
pub mod network;
pub mod no_free;
mod owned_counter;
pub mod prefetch;
pub mod process;
pub mod random;
pub mod redaction;
pub mod seeds;
mod seldom;
pub mod service_manager;
pub mod shared_bytes;
pub mod simulated;
mod slabs;
pub mod terminal;
pub mod threads;

pub use aligned_buffer::AlignedBuffer;
pub use clock::{Clock, Instant, WallTime};
pub use entropy::Entropy;
pub use files::{DiskSpace, File, FileError, FileErrorKind, Files, NotReplaced, OpenMode};
pub use owned_counter::OwnedCounter;
pub use random::Random;
pub use seldom::Seldom;
pub use shared_bytes::{SharedBytes, UniqueBytes};
