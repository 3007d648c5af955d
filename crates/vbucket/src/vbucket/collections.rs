//! Collections that are dropped: what becomes of their durable writes. Source:
//! docs/specification/engine.md, sections 5.4, 5.6 and 6.5.

use document::{CollectionId, Seqno};

use super::Vbucket;
use crate::effect::Effect;
use crate::operation::{Now, SyncWriteEnd};

impl Vbucket {
    /// Forgets the prepares of `collection` up to `through`, the seqno at which it was dropped:
    /// nobody ends them any more, here or on another node, and their clients hear so. What was
    /// behind them goes on. For whoever drops a collection, in a vBucket of any role.
    ///
    /// The file has them until it is compacted: after a restart this is called again, behind the
    /// last [`Vbucket::restore_prepare`].
    pub fn drop_prepares(
        &mut self,
        collection: CollectionId,
        through: Seqno,
        now: Now,
        effects: &mut Vec<Effect>,
    ) {
        let dropped = self.monitor.drop_writes(|write| {
            write.seqno <= through && write.item.key().collection() == collection
        });
        let Some(last) = dropped.last().map(|write| write.seqno) else { return };
        // A key of a collection that comes again may have another prepare: not in one checkpoint.
        self.last_abort_seqno = self.last_abort_seqno.max(Some(last));
        for write in dropped {
            self.forget_prepare(write.item, effects);
            let waiter = write.client.map(|client| client.waiter);
            let dropped = |waiter| Effect::SyncWriteEnded(waiter, SyncWriteEnd::Dropped);
            effects.extend(waiter.map(dropped));
        }
        self.resolve_sync_writes(now, effects);
        self.settle_account();
    }
}
