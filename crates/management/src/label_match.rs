//! Which figures are meant, by their labels, with the operators that queries have. Source: the
//! original's documentation of `/pools/default/stats/range`; what they mean is as with Prometheus.

use regex_automata::dfa::dense::{self, DFA};
use regex_automata::dfa::{Automaton, StartKind};
use regex_automata::nfa::thompson;
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input, MatchKind};
use serde::Deserialize;

use crate::stats_history::SeriesName;

/// Bytes of a regular expression, and of what it is made into: it is built, and asked about all
/// figures, on the thread that answers everybody.
const PATTERN_BYTES_MAX: usize = 1024;
const COMPILED_BYTES_MAX: usize = 256 << 10;

/// What a label has to be compared with.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Wanted {
    /// One text.
    One(String),
    /// Several.
    Several(Vec<String>),
}

/// What is asked of one label. One that a figure does not have counts as an empty one.
#[derive(Debug)]
pub(crate) struct LabelMatch {
    /// The figure's own name is the label `name`.
    label: String,
    values: Values,
    /// Whether it must be none of them.
    is_negated: bool,
}

#[derive(Debug)]
enum Values {
    Listed(Vec<String>),
    /// Accepts whole values.
    Pattern(Box<DFA<Vec<u32>>>),
}

impl LabelMatch {
    /// # Errors
    /// There is no such operator, or it does not go with the value.
    pub(crate) fn new(label: String, operator: &str, wanted: Wanted) -> Result<Self, String> {
        let (takes_list, is_pattern, is_negated) = match operator {
            "=" => (false, false, false),
            "!=" => (false, false, true),
            "=~" => (false, true, false),
            "!~" => (false, true, true),
            "any" => (true, false, false),
            "not_any" => (true, false, true),
            _ => return Err("The operator must be one of: =, !=, =~, !~, any, not_any".to_owned()),
        };
        let values = match wanted {
            Wanted::One(pattern) if is_pattern => Values::Pattern(Box::new(compiled(&pattern)?)),
            Wanted::One(value) => Values::Listed(vec![value]),
            Wanted::Several(values) if takes_list => Values::Listed(values),
            Wanted::Several(_) => {
                return Err("A list of values needs the operator any or not_any".to_owned());
            }
        };
        Ok(Self { label, values, is_negated })
    }

    /// The label is this.
    pub(crate) fn equal(label: String, value: String) -> Self {
        Self { label, values: Values::Listed(vec![value]), is_negated: false }
    }

    /// Whether it is about the figure's own name.
    pub(crate) fn is_of_name(&self) -> bool {
        self.label == NAME
    }

    /// Whether a figure is meant, as far as this says.
    pub(crate) fn accepts(&self, series: &SeriesName) -> bool {
        let is_listed = if self.is_of_name() {
            // Counters are asked for with and without their ending.
            let name = series.name.as_str();
            let short = name.strip_suffix(COUNTER).unwrap_or(name);
            self.values.contain(name) || self.values.contain(short)
        } else {
            let known = series.labels.iter().find(|(label, _)| *label == self.label);
            self.values.contain(known.map_or("", |(_, value)| value))
        };
        is_listed != self.is_negated
    }
}

/// The label that is a figure's own name.
const NAME: &str = "name";
/// How the names of counters end.
const COUNTER: &str = "_total";

impl Values {
    fn contain(&self, value: &str) -> bool {
        match self {
            Self::Listed(values) => values.iter().any(|listed| listed == value),
            Self::Pattern(pattern) => {
                let input = Input::new(value).anchored(Anchored::Yes);
                // It finds the longest; a search gives up only where it was told to.
                let found = pattern.try_search_fwd(&input).ok().flatten();
                found.is_some_and(|found| found.offset() == value.len())
            }
        }
    }
}

/// # Errors
/// It is none, or too large.
fn compiled(pattern: &str) -> Result<DFA<Vec<u32>>, String> {
    let why = |error: &dyn std::fmt::Display| {
        format!("The value is no regular expression, or too large a one: {error}")
    };
    if pattern.len() > PATTERN_BYTES_MAX {
        return Err(why(&format!("it has more than {PATTERN_BYTES_MAX} bytes")));
    }
    // Classes such as `\d` are those of ASCII.
    let syntax = syntax::Config::new().unicode(false).utf8(false).dot_matches_new_line(true);
    let nfa = thompson::Config::new().utf8(false).nfa_size_limit(Some(COMPILED_BYTES_MAX));
    let dfa = dense::Config::new()
        .match_kind(MatchKind::All)
        .start_kind(StartKind::Anchored)
        .determinize_size_limit(Some(COMPILED_BYTES_MAX))
        .dfa_size_limit(Some(COMPILED_BYTES_MAX));
    let built = dense::Builder::new().syntax(syntax).thompson(nfa).configure(dfa).build(pattern);
    built.map_err(|error| why(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(value: &str) -> Wanted {
        Wanted::One(value.to_owned())
    }

    fn several(values: &[&str]) -> Wanted {
        Wanted::Several(values.iter().map(|value| (*value).to_owned()).collect())
    }

    #[test]
    fn operators_mean_what_they_mean_with_prometheus() {
        let name = "kv_ops_total".to_owned();
        let series = SeriesName { name, labels: vec![("op", "get".to_owned())] };
        for (label, operator, wanted, expected) in [
            ("op", "=", one("get"), true),
            ("op", "=", one("set"), false),
            ("op", "!=", one("get"), false),
            ("op", "!=", one("set"), true),
            ("op", "=~", one("g.t|set"), true),
            ("op", "=~", one("ge"), false),
            ("op", "=~", one("e"), false),
            ("op", "=~", one("g|get"), true),
            ("op", "!~", one("[a-z]+"), false),
            ("op", "!~", one("[0-9]+"), true),
            ("op", "any", several(&["set", "get"]), true),
            ("op", "any", several(&[]), false),
            ("op", "any", one("get"), true),
            ("op", "not_any", several(&["set", "get"]), false),
            ("op", "not_any", several(&["set"]), true),
            // A label that there is not is empty.
            ("bucket", "=", one(""), true),
            ("bucket", "!=", one("travel"), true),
            ("bucket", "=~", one(".*"), true),
            ("bucket", "=~", one(".+"), false),
            ("name", "=", one("kv_ops"), true),
            ("name", "=", one("kv_ops_total"), true),
            ("name", "!=", one("kv_ops"), false),
            ("name", "=~", one("kv_.*s"), true),
            ("name", "not_any", several(&["kv_ops_total"]), false),
        ] {
            let asked = format!("{label} {operator} {wanted:?}");
            let matching = LabelMatch::new(label.to_owned(), operator, wanted).unwrap();
            assert_eq!(matching.accepts(&series), expected, "{asked}");
        }
    }

    #[test]
    fn what_cannot_be_asked_is_refused_and_a_pattern_has_a_size() {
        let large = "(a{1000}){1000}";
        let long = "a".repeat(PATTERN_BYTES_MAX + 1);
        for (operator, wanted, why) in [
            ("~", one("a"), "one of: =, !="),
            ("=", several(&["a"]), "any or not_any"),
            ("=~", several(&["a"]), "any or not_any"),
            ("=~", one("("), "no regular expression"),
            ("!~", one(large), "too large"),
            ("=~", one("[01]*1[01]{20}"), "too large"),
            ("=~", one(&long), "too large"),
        ] {
            let refused = LabelMatch::new("op".to_owned(), operator, wanted).unwrap_err();
            assert!(refused.contains(why), "{operator}: {refused}");
        }
    }
}
