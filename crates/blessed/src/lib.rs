//! Texts in the tree that are made from the code: a test compares them with what they should be,
//! and with `BLESS=1` in the environment writes them anew.
//!
//! Pages have parts that are made ([`check_page`]). Files of cases have what is said, which people
//! write, and the answers behind it ([`check_cases`], [`check_conversations`]). For tests alone.

mod cases;
mod line;
mod names;
mod notation;
mod texts;

pub use cases::{check_cases, check_conversations};
pub use line::Line;
pub use names::Names;
pub use notation::{bytes_of, number_of, shown};
pub use texts::check_page;
