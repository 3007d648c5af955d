//! A world that tests and the simulator own: files that can lose, tear, refuse and fill up, and a
//! network with latency, cuts and machines that lose power.

pub mod files;
pub mod network;

pub use files::{Call, CallCounts, Fault, FaultError, RecordedCall, SimulatedFiles};
pub use network::{Host, SimulatedNetwork};
