//! Who does not answer, while what is left of a map is tried once.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::ensure;
use cluster::PlannedNode;
use platform::Clock;

use crate::peer_copies::PeerRefusal;

/// Whoever has said nothing for so long is silent.
const SILENCE_MIN: Duration = Duration::from_millis(500);

/// The nodes that have been asked in vain: for each bucket they would be waited for once more.
pub(super) struct Silent<'a> {
    clock: &'a Clock,
    names: BTreeSet<String>,
}

impl<'a> Silent<'a> {
    pub(super) fn nobody(clock: &'a Clock) -> Self {
        Self { clock, names: BTreeSet::new() }
    }

    /// Asks a node, unless it is silent.
    ///
    /// # Errors
    /// There is no answer.
    pub(super) fn ask<T>(
        &mut self,
        node: &PlannedNode,
        ask: impl FnOnce() -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        ensure!(!self.names.contains(&node.name), "it has not answered a moment ago");
        let begun = self.clock.now();
        let answer = ask();
        // Who refuses has answered, however long it took: its disk may be slow.
        let is_answered = answer.as_ref().err().is_none_or(|error| error.is::<PeerRefusal>());
        if !is_answered && self.clock.now().since(begun) >= SILENCE_MIN {
            self.names.insert(node.name.clone());
        }
        answer
    }
}

#[cfg(test)]
mod tests {
    use anyhow::bail;
    use cluster::NodeAddress;
    use platform::WallTime;

    use super::*;

    #[test]
    fn who_was_waited_for_in_vain_is_not_asked_again_and_who_refuses_is() {
        let clock = Clock::simulated(WallTime(0));
        let node = |name: &str| {
            let address = NodeAddress {
                host: "h".to_owned(),
                data_port: 1,
                management_port: 2,
                tls: None,
                external: None,
            };
            PlannedNode { name: name.to_owned(), address }
        };
        let mut silent = Silent::nobody(&clock);
        let mut count = 0;
        for _ in 0..2 {
            let refused: anyhow::Result<()> = silent.ask(&node("refuses"), || {
                count += 1;
                bail!("no such bucket")
            });
            assert!(refused.is_err());
            let refused_late: anyhow::Result<()> = silent.ask(&node("has a slow disk"), || {
                count += 1;
                clock.advance(SILENCE_MIN);
                Err(PeerRefusal("it cannot be removed".to_owned()).into())
            });
            assert!(refused_late.is_err());
            let waited: anyhow::Result<()> = silent.ask(&node("hangs"), || {
                count += 1;
                clock.advance(SILENCE_MIN);
                bail!("no answer in time")
            });
            assert!(waited.is_err());
        }
        assert_eq!(count, 5);
        assert_eq!(silent.ask(&node("answers"), || Ok(7)).unwrap(), 7);
    }
}
