//! A line of the log, taken apart.

use serde_json::Value;

use crate::date::unix_milliseconds;

/// What a line says. Lines that are not whole are text alone, of no moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LogEntry {
    /// When, as the line has it.
    pub(crate) time: String,
    /// The same in milliseconds since 1970.
    pub(crate) unix_ms: i64,
    /// In the words of the original: `info`, `warning` or `critical`.
    pub(crate) kind: &'static str,
    /// Which part of the node says it.
    pub(crate) module: String,
    /// What it says.
    pub(crate) text: String,
}

impl LogEntry {
    /// Reads a line of either form, `time LEVEL module: text` or JSON.
    pub(crate) fn of(line: &str) -> Self {
        Self::of_json(line).or_else(|| Self::of_text(line)).unwrap_or_else(|| Self {
            time: String::new(),
            unix_ms: 0,
            kind: "info",
            module: String::new(),
            text: line.to_owned(),
        })
    }

    fn of_json(line: &str) -> Option<Self> {
        let line: Value = serde_json::from_str(line).ok()?;
        let said = |name| line.get(name).and_then(Value::as_str);
        let mut fields = line.get("fields")?.as_object()?.clone();
        let message = fields.remove("message");
        let mut text = message.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned();
        for (name, value) in &fields {
            text.push_str(&format!(" {name}={value}"));
        }
        Self::new(said("timestamp")?, said("level")?, said("target")?, text)
    }

    fn of_text(line: &str) -> Option<Self> {
        let (time, rest) = line.split_once(' ')?;
        let (level, rest) = rest.trim_start().split_once(' ')?;
        let (module, text) = rest.split_once(": ")?;
        Self::new(time, level, module, text.to_owned())
    }

    fn new(time: &str, level: &str, module: &str, text: String) -> Option<Self> {
        let kind = match level {
            "ERROR" => "critical",
            "WARN" => "warning",
            "INFO" | "DEBUG" | "TRACE" => "info",
            _ => return None,
        };
        let (unix_ms, module) = (unix_milliseconds(time)?, module.to_owned());
        Some(Self { time: time.to_owned(), unix_ms, kind, module, text })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_taken_apart_whatever_its_form() {
        const TIME: &str = "2024-01-01T00:00:01.250000Z";
        const UNIX_MS: i64 = 1_704_067_201_250;
        for (line, unix_ms, kind, module, text) in [
            (
                format!("{TIME}  INFO node::buckets: it is made bucket=\"a: b\""),
                UNIX_MS,
                "info",
                "node::buckets",
                "it is made bucket=\"a: b\"",
            ),
            (format!("{TIME}  WARN settee: slow"), UNIX_MS, "warning", "settee", "slow"),
            (
                format!(
                    r#"{{"timestamp":"{TIME}","level":"ERROR","fields":{{"message":"broken",
                        "bucket":"a","count":2}},"target":"storage"}}"#
                ),
                UNIX_MS,
                "critical",
                "storage",
                "broken bucket=\"a\" count=2",
            ),
            ("INFO one".to_owned(), 0, "info", "", "INFO one"),
            (format!("{TIME} LOUD a: b"), 0, "info", "", "2024-01-01T00:00:01.250000Z LOUD a: b"),
            (String::new(), 0, "info", "", ""),
            ("{}".to_owned(), 0, "info", "", "{}"),
        ] {
            let entry = LogEntry::of(&line);
            let found = (entry.unix_ms, entry.kind, &*entry.module, &*entry.text);
            assert_eq!(found, (unix_ms, kind, module, text), "{line}");
        }
    }
}
