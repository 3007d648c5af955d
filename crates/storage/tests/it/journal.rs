//! The journal from outside: what is acknowledged is replayed, whatever happens.

mod basics;
mod model;
