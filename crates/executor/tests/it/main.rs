//! The executor's promises, on threads and without them.

mod deterministic;
mod owners;
mod support;
mod threads;
mod wakes;
