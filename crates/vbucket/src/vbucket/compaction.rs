//! What a vBucket hears of the compaction of its file.

use document::{Datatype, Key, Seqno, expiry};

use super::Vbucket;
use crate::effect::Effect;
use crate::operation::{Now, Refusal};

impl Vbucket {
    /// The file has forgotten tombstones up to here. Never falls, and what a damaged file claims
    /// beyond the end of history is not believed.
    pub fn note_purged(&mut self, seqno: Seqno) {
        self.purge_seqno = self.purge_seqno.max(seqno.min(self.high_seqno()));
    }

    /// Of what comes from now on, tombstones up to `seqno` may be missing. What has come of the
    /// snapshot before lacks those that it lacks.
    pub(super) fn begin_snapshot_purged(&mut self, seqno: Seqno) {
        self.purge_seqno = self.purge_seqno();
        self.received_purge_seqno = seqno;
    }

    /// Deletes the document `key` if its newest version is past its time. Says whether it was.
    /// What has to be read from the file first is the refusal, as for a read.
    pub fn delete_if_expired(
        &mut self,
        key: Key<'_>,
        now: Now,
        effects: &mut Vec<Effect>,
    ) -> Result<bool, Refusal> {
        self.check_active()?;
        self.check_collection(key)?;
        if self.prepared(key).is_some() {
            return Ok(false);
        }
        let Some(item) = self.hash_table.get(key) else {
            self.check_absent(key)?;
            return Ok(false);
        };
        if item.is_deleted() || !expiry::is_past(item.expiry(), now.wall.seconds()) {
            return Ok(false);
        }
        if item.datatype().contains(Datatype::XATTR) && item.is_ejected() {
            // Some xattrs survive their document.
            return Err(Refusal::Ejected(item.clone()));
        }
        let expired = item.clone();
        self.delete_expired(&expired, now, effects);
        effects.push(Effect::Release(expired));
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use document::{ItemBuilder, ItemMeta, KeyBuf, VbUuid, Vbid, VbucketState};
    use platform::WallTime;

    use super::*;
    use crate::RoleChange;
    use crate::hash_table::HashSeed;
    use crate::memory_account::MemoryAccount;
    use crate::operation::{StoreMode, WriteCondition};

    fn at(seconds: u64) -> Now {
        Now { wall: WallTime(seconds * 1_000_000_000), ..Now::default() }
    }

    #[test]
    fn only_the_newest_version_decides_whether_a_document_is_deleted() {
        let (seed, account) = (HashSeed::new(1), MemoryAccount::default());
        let mut vbucket = Vbucket::new(Vbid(0), VbucketState::Active, VbUuid(7), seed, account);
        let key = KeyBuf::in_default_collection(b"k").unwrap();
        let effects = &mut Vec::new();
        assert!(!vbucket.delete_if_expired(key.as_key(), at(1), effects).unwrap());
        for (expiry, now, is_deleted) in [(0, 99, false), (50, 10, false), (50, 51, true)] {
            let meta = ItemMeta { expiry, ..ItemMeta::default() };
            let builder = ItemBuilder::new(key.as_key(), meta, b"v");
            let condition = WriteCondition::default();
            vbucket.store(StoreMode::Set, builder, condition, at(1), effects).unwrap();
            let deleted = vbucket.delete_if_expired(key.as_key(), at(now), effects);
            assert_eq!(deleted.unwrap(), is_deleted, "{expiry} at {now}");
        }
        assert!(!vbucket.delete_if_expired(key.as_key(), at(99), effects).unwrap(), "once");
        assert_eq!(vbucket.statistics().expirations, 1);
        for (told, expected) in [(2, 2), (1, 2), (900, vbucket.high_seqno().0)] {
            vbucket.note_purged(Seqno(told));
            assert_eq!(vbucket.purge_seqno(), Seqno(expected));
        }
        let state = VbucketState::Replica;
        let (topology, fresh_uuid) = (None, VbUuid(9));
        let change = RoleChange { state, topology, is_takeover: false, fresh_uuid };
        vbucket.change_role(change, Now::default(), effects);
        let deleted = vbucket.delete_if_expired(key.as_key(), at(99), effects);
        assert!(matches!(deleted, Err(Refusal::NotActive)));
    }
}
