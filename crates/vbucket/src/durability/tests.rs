//! Durable writes from the outside: what happens to a vBucket, and what it answers.
//!
//! Scenarios are scripts, one a fact. A line is something that happens, and, behind `=>`, what
//! comes of it: the answer, and the effects that durable writes have. Most have a scenario of the
//! original behind them (docs/specification/engine.md, section 5.11).

mod acknowledgements;
mod active;
mod collections;
mod documents;
mod fallback;
mod files;
mod flushes;
mod histories;
mod levels;
mod model;
mod passive;
mod promotion;
mod refusals;
mod roles;
mod script;
mod words;

use script::run;
