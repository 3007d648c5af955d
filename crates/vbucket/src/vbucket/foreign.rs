//! Versions of documents that came about elsewhere, in another cluster or before a backup. Source:
//! docs/specification/engine.md, section 6.4.

use document::item::U48_MAX;
use document::{Cas, Datatype, Item, Key, RevSeqno, expiry};

use super::Vbucket;
use super::write::release_builder;
use crate::clock_rules::{ClockRules, FutureCas};
use crate::effect::Effect;
use crate::operation::{ForeignTerms, ForeignWrite, Mutation, Now, Refusal};
use crate::version_order::Version;

impl Vbucket {
    /// The same with these rules for the clocks of others.
    #[must_use]
    pub fn with_clock_rules(mut self, rules: ClockRules) -> Self {
        self.clock_rules = rules;
        self
    }

    /// Stores a version with the CAS and the revision that it has elsewhere.
    ///
    /// # Panics
    /// If it is let in and built as part of a durable write: it is none.
    pub fn store_foreign(
        &mut self,
        write: ForeignWrite,
        now: Now,
        effects: &mut Vec<Effect>,
    ) -> Result<Mutation, Refusal> {
        let ForeignWrite { mut builder, cas, revision, placeholders, terms } = write;
        let revision = RevSeqno(revision.0.min(U48_MAX));
        let incoming = Version { cas, revision, meta: builder.meta() };
        let checked = self.check_foreign(builder.key(), &incoming, terms, now);
        let (existing, renames) = match checked {
            Ok(checked) => checked,
            Err(refusal) => {
                release_builder(builder, effects);
                return Err(refusal);
            }
        };
        self.locks.release(builder.key());
        let was_live = existing.is_some_and(|item| !item.is_deleted());
        let is_deletion = incoming.meta.deletion.is_some();
        let done = &self.figures.done;
        done.foreign_stores.add(usize::from(!is_deletion));
        done.foreign_deletions.add(usize::from(is_deletion));
        match (is_deletion, was_live) {
            (true, true) => done.deletions.add(1),
            (true, false) => {}
            (false, true) => done.updates.add(1),
            (false, false) => done.creations.add(1),
        }
        let cas = match renames {
            true => self.clock.next(now.wall),
            false => self.clock.adopt(cas, now.wall, &self.clock_rules),
        };
        if !placeholders.is_empty() {
            let datatype = builder.meta().datatype;
            assert!(!datatype.contains(Datatype::SNAPPY), "places are those of the plain value");
            placeholders.fill(builder.value_mut(), cas, self.high_seqno().next());
        }
        let place = self.hash_table.locate(builder.key());
        Ok(self.commit_as(builder, place, cas, revision, now, effects))
    }

    /// The version that is here, and whether the one that comes gets another CAS, if it may come.
    fn check_foreign(
        &mut self,
        key: Key<'_>,
        incoming: &Version,
        terms: ForeignTerms,
        now: Now,
    ) -> Result<(Option<Item>, bool), Refusal> {
        self.check_active()?;
        self.check_collection(key)?;
        if self.is_takeover_late {
            return Err(self.reject(Refusal::TakeoverIsLate));
        }
        if incoming.cas == Cas::ANY || incoming.cas == Cas::LOCKED {
            return Err(self.reject(Refusal::InvalidCas));
        }
        let renames = match self.clock_rules.judge(incoming.cas, now.wall) {
            FutureCas::Ignore => terms.renames,
            FutureCas::Replace => true,
            FutureCas::Refuse => return Err(self.reject(Refusal::InvalidCas)),
        };
        self.check_unprepared(key)?;
        let existing = match (self.hash_table.get(key), terms.order) {
            (Some(newest), _) => Some(newest.clone()),
            // Who compares versions compares with a tombstone, too.
            (None, Some(_)) => self.find_tombstone(key)?,
            (None, None) => {
                self.check_absent(key)?;
                None
            }
        };
        let is_live = |item: &&Item| {
            !item.is_deleted() && !expiry::is_past(item.expiry(), now.wall.seconds())
        };
        match existing.as_ref().filter(is_live) {
            Some(live) => {
                self.check_replaceable(live, terms.replaces, now)?;
                if terms.only_adds {
                    return Err(self.reject(Refusal::Exists));
                }
            }
            None if terms.replaces != Cas::ANY => return Err(self.reject(Refusal::NotFound)),
            None => {}
        }
        if let (Some(order), Some(existing)) = (terms.order, &existing)
            && !order.accepts(incoming, &Version::of(existing))
        {
            match incoming.meta.deletion {
                Some(_) => self.figures.done.foreign_deletions_lost.add(1),
                None => self.figures.done.foreign_stores_lost.add(1),
            }
            return Err(self.reject(Refusal::NotNewer));
        }
        Ok((existing, renames))
    }
}

#[cfg(test)]
mod tests;
