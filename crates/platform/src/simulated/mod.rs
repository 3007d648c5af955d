//! A world that tests and the simulator own: files that can lose, tear, refuse and fill up.

pub mod files;

pub use files::{Call, CallCounts, Fault, FaultError, SimulatedFiles};
