//! What a bucket logs while a test does something, on this thread.

use std::fmt::{self, Write as _};
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Lines of the levels ERROR and WARN.
#[derive(Clone, Default)]
pub(crate) struct HeardLog(Arc<Mutex<Vec<(Level, String)>>>);

impl HeardLog {
    /// Hears what is logged while `action` runs.
    pub(crate) fn during<T>(&self, action: impl FnOnce() -> T) -> T {
        tracing::subscriber::with_default(self.clone(), action)
    }

    /// Whether a line of this level holds `text`.
    pub(crate) fn has(&self, level: Level, text: &str) -> bool {
        let lines = self.0.lock().unwrap();
        lines.iter().any(|(found, line)| *found == level && line.contains(text))
    }

    pub(crate) fn count(&self, level: Level) -> usize {
        self.0.lock().unwrap().iter().filter(|(found, _)| *found == level).count()
    }
}

impl fmt::Debug for HeardLog {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.lock().unwrap().fmt(formatter)
    }
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        write!(self.0, "{}={value:?} ", field.name()).unwrap();
    }
}

impl Subscriber for HeardLog {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(String::new());
        event.record(&mut line);
        self.0.lock().unwrap().push((*event.metadata().level(), line.0));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
