//! How long a task that goes through many things may run before it lets others run.

use std::time::Duration;

/// The default of all tasks that can pause between two items.
pub(crate) const TIME_SLICE: Duration = Duration::from_millis(25);
