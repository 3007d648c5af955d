//! The log against a plain list of what was queued, and its rules one by one.

mod model;
mod scenarios;
mod support;
