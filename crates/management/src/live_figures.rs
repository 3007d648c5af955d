//! The figures of this moment, for all who look at them together. When nobody does, nothing is
//! read.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::Bytes;
use platform::{Clock, Instant};
use serde_json::{Value, json};

use crate::metric::Metric;

/// From one event to the next.
pub(crate) const INTERVAL: Duration = Duration::from_secs(1);
/// How old an event may be for somebody else to get it, too: viewers do not look in step.
const AGE_MAX: Duration = Duration::from_millis(900);

/// The latest event, if it is one of late.
#[derive(Debug, Default)]
pub(crate) struct LiveFigures {
    latest: Mutex<Option<(Instant, Bytes)>>,
}

impl LiveFigures {
    /// The event of now: what `metrics` reads, unless somebody has just had that read.
    pub(crate) fn event(&self, clock: &Clock, metrics: impl FnOnce() -> Vec<Metric>) -> Bytes {
        let now = clock.now();
        if let Some((taken, event)) = &*self.lock()
            && now.since(*taken) < AGE_MAX
        {
            return event.clone();
        }
        // Under no lock, because others are asked, with locks of their own. All who look do so on
        // the server's one thread: nobody has them read meanwhile.
        let event = Bytes::from(text_of(clock, &metrics()));
        *self.lock() = Some((now, event.clone()));
        event
    }

    fn lock(&self) -> MutexGuard<'_, Option<(Instant, Bytes)>> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One event of a stream of them: `data:`, one line of JSON, an empty line. Source: HTML, section
/// 9.2.5 (server-sent events). The JSON has the time in milliseconds since 1970, and each figure as
/// its name, its labels and its value.
fn text_of(clock: &Clock, metrics: &[Metric]) -> String {
    let figures: Value = metrics.iter().map(figure).collect();
    let millis = clock.wall_time().0 / 1_000_000;
    format!("data: {}\n\n", json!({"time": millis, "figures": figures}))
}

fn figure(metric: &Metric) -> Value {
    let labels = metric.labels.iter().map(|(name, value)| ((*name).to_owned(), json!(value)));
    json!([metric.name, Value::Object(labels.collect()), metric.value])
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use platform::WallTime;

    use super::*;

    #[test]
    fn figures_are_read_once_for_all_who_look_in_the_same_second() {
        let clock = Clock::simulated(WallTime(1_700_000_000_000_000_000));
        let (figures, reads) = (LiveFigures::default(), Cell::new(0));
        let look = || {
            let read = || {
                reads.set(reads.get() + 1);
                vec![Metric::gauge("kv_curr_items", "Items", 5.0).with_label("bucket", "b")]
            };
            figures.event(&clock, read)
        };
        let first = look();
        let expected = "data: {\"figures\":[[\"kv_curr_items\",{\"bucket\":\"b\"},5.0]],\
                        \"time\":1700000000000}\n\n";
        assert_eq!(first, expected);
        clock.advance(AGE_MAX / 2);
        assert_eq!(look(), first);
        assert_eq!(reads.get(), 1);
        clock.advance(INTERVAL);
        assert_ne!(look(), first);
        assert_eq!(reads.get(), 2);
    }

    #[test]
    fn no_lock_is_held_while_figures_are_read() {
        let clock = Clock::simulated(WallTime(1_700_000_000_000_000_000));
        let figures = LiveFigures::default();
        let read = || {
            assert!(figures.latest.try_lock().is_ok());
            Vec::new()
        };
        figures.event(&clock, read);
    }
}
