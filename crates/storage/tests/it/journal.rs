//! The journal from outside: what is acknowledged is replayed, whatever happens.

mod basics;
mod crash;
mod damage;
mod faults;
mod limits;
mod model;
mod scenarios;
