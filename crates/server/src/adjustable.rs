//! The properties that can be set: from when on commands are slow, and how long hot documents are
//! sampled.

use std::time::Duration;

use protocol::Opcode;

use crate::hot_keys::SECONDS_MAX;
use crate::shared::Shared;

/// Milliseconds from which on a command is slow: with its name behind this, or `all`.
const SLOW: &str = "slow_ms.";
const ALL_COMMANDS: &str = "all";
/// Seconds for which hot documents are sampled, from now on.
const HOT: &str = "hot_keys.sample_seconds";

/// A property that can be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Adjustable {
    /// From when on a command is slow.
    Slow(Opcode),
    /// The same of all commands.
    AllSlow,
    /// How long hot documents are sampled.
    Hot,
}

impl Adjustable {
    /// The property with this name, or why there is none although it begins like one.
    pub(crate) fn named(key: &[u8]) -> Option<Result<Self, &'static str>> {
        let name = std::str::from_utf8(key).ok()?;
        if name == HOT {
            return Some(Ok(Self::Hot));
        }
        let command = name.strip_prefix(SLOW)?;
        if command == ALL_COMMANDS {
            return Some(Ok(Self::AllSlow));
        }
        let found = Opcode::ALL.iter().find(|opcode| opcode.name() == command);
        let unknown = "behind slow_ms. stands the name of a command, such as GET, or all";
        Some(found.map(|opcode| Self::Slow(*opcode)).ok_or(unknown))
    }

    /// What it is now.
    pub(crate) fn get(self, shared: &Shared) -> Result<String, &'static str> {
        match self {
            Self::Slow(opcode) => Ok(shared.slow_operations.threshold_ms(opcode).to_string()),
            Self::AllSlow => Err("commands have thresholds of their own; ask for one's"),
            Self::Hot => Ok(u8::from(shared.hot_keys.is_sampling()).to_string()),
        }
    }

    /// Makes it something else.
    pub(crate) fn set(self, value: &[u8], shared: &Shared) -> Result<(), &'static str> {
        let number = std::str::from_utf8(value).ok().and_then(|value| value.parse::<u64>().ok());
        let number = number.ok_or("the value is a decimal number")?;
        match self {
            Self::Slow(opcode) => shared.slow_operations.set_threshold_ms(opcode, number),
            Self::AllSlow => {
                for opcode in Opcode::ALL {
                    shared.slow_operations.set_threshold_ms(*opcode, number);
                }
            }
            Self::Hot if (1..=SECONDS_MAX).contains(&number) => {
                shared.hot_keys.sample_for(Duration::from_secs(number), shared.clock.now());
            }
            Self::Hot => return Err("hot documents are sampled for 1 to 600 seconds"),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_are_found_by_their_names() {
        for (key, expected) in [
            (&b"slow_ms.GET"[..], Some(Some(Adjustable::Slow(Opcode::Get)))),
            (b"slow_ms.all", Some(Some(Adjustable::AllSlow))),
            (b"hot_keys.sample_seconds", Some(Some(Adjustable::Hot))),
            (b"slow_ms.NO_SUCH", Some(None)),
            (b"trace.status", None),
            (b"\xff", None),
        ] {
            assert_eq!(Adjustable::named(key).map(Result::ok), expected, "{key:?}");
        }
    }
}
