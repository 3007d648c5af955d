//! The store from outside: what it keeps, what it loses, what it survives.

mod batches;
mod crash;
mod faults;
mod garbage;
mod model;
mod sharing;
mod start_up;
