//! Which markers go in front of which items. Source: docs/specification/protocol.md, section 20.7.

use std::collections::VecDeque;
use std::ops::RangeInclusive;

use bucket::BackfillFacts;
use document::{Item, Operation, Seqno, VbucketState};
use protocol::dcp::{EndReason, Marker, MarkerFlags};
use vbucket::checkpoint::LogSection;

use super::filter::Filter;

/// What waits to be sent in a stream, in order.
#[derive(Debug)]
pub(super) enum Outgoing {
    Marker(Marker),
    /// From memory.
    Item(Item),
    /// From a file, or from a checkpoint that came from one.
    DiskItem(Item),
    SeqnoAdvanced(Seqno),
    /// The consumer's vBucket is to have this role.
    VbucketState(VbucketState),
    OsoSnapshot {
        is_start: bool,
    },
    End(EndReason),
}

impl Outgoing {
    /// Whether it carries an item.
    pub(super) fn is_item(&self) -> bool {
        matches!(self, Self::Item(_) | Self::DiskItem(_))
    }
}

/// What a consumer has to be told about snapshots.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Policy {
    /// Prepares, commits and aborts are sent.
    pub(super) has_sync_writes: bool,
    /// The consumer holds durable writes.
    pub(super) is_sync_replication: bool,
    pub(super) has_collections: bool,
    pub(super) has_marker_2_2: bool,
    /// The consumer answers markers when it has the whole snapshot.
    pub(super) wants_acks: bool,
    /// Tombstones are left out of the first backfill.
    pub(super) skips_deletes: bool,
}

/// Puts items into snapshots.
#[derive(Debug)]
pub(super) struct Snapshots {
    policy: Policy,
    /// The stream's last seqno.
    end: Seqno,
    /// The file that is read ends the stream: what has been changed since the stream was asked for
    /// is in it in its newest version alone.
    ends_with_file: bool,
    /// Everything up to here was handed over, or is not for this consumer.
    read_through: Seqno,
    /// The end of the last snapshot that was announced.
    announced_end: Seqno,
    /// Where the first snapshot begins, until it is announced.
    first_start: Option<Seqno>,
    /// The consumer has a part of a snapshot that ends here: before that, what it has is consistent
    /// nowhere, because versions that were superseded up to here were left out.
    owed_end: Seqno,
    /// The checkpoint that was read last.
    checkpoint: Option<u64>,
    /// The disk snapshot whose items come.
    disk: Option<BackfillFacts>,
    /// The last seqno of a message with an item.
    last_item: Seqno,
    /// Which collections are sent.
    filter: Filter,
    /// Nothing follows any more.
    is_over: bool,
}

impl Snapshots {
    /// Of a stream that goes on after `start`, to `end`. The consumer is in the snapshot `within`.
    pub(super) fn new(
        policy: Policy,
        start: Seqno,
        within: RangeInclusive<Seqno>,
        end: Seqno,
    ) -> Self {
        let (snapshot_start, snapshot_end) = within.into_inner();
        assert!(snapshot_start <= start, "a stream begins within its snapshot");
        assert!(start <= snapshot_end, "a stream begins within its snapshot");
        assert!(start <= end, "a stream begins before its end");
        let has_part = snapshot_start < start && start < snapshot_end;
        Self {
            policy,
            end,
            ends_with_file: false,
            read_through: start,
            announced_end: start,
            first_start: Some(snapshot_start.min(start.next())),
            owed_end: if has_part { snapshot_end } else { start },
            checkpoint: None,
            disk: None,
            last_item: start,
            filter: Filter::everything(true),
            is_over: false,
        }
    }

    /// The same of what `filter` lets through.
    #[must_use]
    pub(super) fn of(mut self, filter: Filter) -> Self {
        self.filter = filter;
        self
    }

    /// The same up to the end of the file that is read first, if that is behind the end asked for.
    #[must_use]
    pub(super) fn ending_with_file(mut self) -> Self {
        self.ends_with_file = true;
        self
    }

    /// The stream's last seqno.
    pub(super) fn end(&self) -> Seqno {
        self.end
    }

    /// Everything up to here was handed over.
    pub(super) fn read_through(&self) -> Seqno {
        self.read_through
    }

    /// Whether the end was handed over.
    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Nothing follows, for this reason.
    pub(super) fn finish(&mut self, reason: EndReason, out: &mut VecDeque<Outgoing>) {
        if !self.is_over {
            self.is_over = true;
            out.push_back(Outgoing::End(reason));
        }
    }

    /// A part of the log was read, up to `through`.
    pub(super) fn add_section(
        &mut self,
        section: LogSection,
        through: Seqno,
        out: &mut VecDeque<Outgoing>,
    ) {
        let LogSection { checkpoint_id, kind, snapshot, mut items } = section;
        let covered = snapshot.end.min(through);
        let read_through = self.read_through;
        // In this order: the filter changes with the events that it sees, and sees each item once.
        items.retain(|item| item.seqno() > read_through && self.is_sent(item));
        let announces_all = self.policy.has_sync_writes || self.policy.has_collections;
        let visible = |item: &&Item| !item.operation().is_prepared();
        let last = items.iter().rfind(visible).map(Item::seqno).unwrap_or_default();
        // What another node has said of its snapshot is not taken for granted.
        let visible_end = snapshot.visible_end.max(last);
        let end = match announces_all {
            true => snapshot.end,
            // What is visible behind it is of other collections: it would never come, and neither
            // would a message that ends the snapshot.
            false if through >= visible_end => last,
            false => visible_end,
        };
        let end = end.max(self.owed_end);
        let is_new = self.checkpoint != Some(checkpoint_id);
        let has_news = !items.is_empty() || (announces_all && covered > self.read_through);
        if !self.is_over && has_news && self.read_through < self.end {
            // A snapshot that goes on is not announced again.
            let is_between = self.read_through >= self.announced_end;
            if end > self.announced_end || (is_new && is_between) {
                let mut flags = MarkerFlags::MEMORY;
                if kind.is_disk() {
                    flags = MarkerFlags::DISK;
                }
                if is_new {
                    flags = flags.with(MarkerFlags::CHECKPOINT);
                }
                let is_disk = kind.is_disk();
                let marker = Marker {
                    max_visible: Some(visible_end.max(self.owed_end).min(end)),
                    high_completed: snapshot.high_completed.filter(|_| is_disk),
                    high_prepared: snapshot.high_prepared.filter(|_| is_disk),
                    purge: snapshot.purge_seqno.map(|seqno| seqno.min(end)),
                    ..self.marker(end.max(self.read_through.next()), flags)
                };
                self.announce(marker, out);
            }
            self.checkpoint = Some(checkpoint_id);
            self.push_items(items, kind.is_disk(), out);
        }
        self.end_if_empty(out);
        self.cover(covered, out);
    }

    /// A file is going to be read. Without anything visible in it there is no snapshot.
    pub(super) fn begin_disk(&mut self, disk: BackfillFacts, out: &mut VecDeque<Outgoing>) {
        self.begin_file(disk);
        // Behind the file the log is read anew: its first section begins a checkpoint for the
        // consumer.
        self.checkpoint = None;
        let announces_all = self.policy.has_sync_writes || self.policy.has_collections;
        let end = match announces_all {
            true => disk.snapshot_end,
            false if disk.high == disk.snapshot_end => disk.max_visible.min(disk.default_high),
            // More of it comes from the log.
            false => disk.max_visible.min(disk.snapshot_end),
        };
        let end = end.max(self.owed_end);
        if end <= self.read_through || self.is_over {
            return;
        }
        let flags = MarkerFlags::DISK.with(MarkerFlags::CHECKPOINT);
        let marker = Marker {
            max_visible: Some(disk.max_visible.min(end)),
            high_completed: Some(disk.high_completed),
            high_prepared: Some(disk.high_prepared),
            purge: Some(disk.purge.min(end)),
            ..self.marker(end, flags)
        };
        self.announce(marker, out);
    }

    /// Tombstones are of no use to a consumer that has nothing. One that was handed something, from
    /// the log or from a file that was not read to its end, keeps what it is not told the deletion
    /// of.
    fn begin_file(&mut self, disk: BackfillFacts) {
        self.disk = Some(disk);
        if self.ends_with_file {
            self.end = self.end.max(disk.high);
        }
        self.policy.skips_deletes &= self.read_through == Seqno(0);
    }

    /// Items of the file that is read have come, seqnos rising.
    pub(super) fn add_disk_items(&mut self, mut items: Vec<Item>, out: &mut VecDeque<Outgoing>) {
        let completed = self.disk.map_or(Seqno(0), |disk| disk.high_completed);
        let skips_deletes = self.policy.skips_deletes;
        let last_item = self.last_item;
        items.retain(|item| {
            let is_completed =
                matches!(item.operation(), Operation::Prepare(_)) && item.seqno() <= completed;
            let is_skipped = skips_deletes && item.is_deleted();
            item.seqno() > last_item && self.is_sent(item) && !is_completed && !is_skipped
        });
        let last = items.last().map(Item::seqno);
        if last > Some(self.announced_end)
            && !self.is_over
            && let Some(disk) = self.disk
        {
            // The file knew its last visible seqno wrongly.
            let flags = MarkerFlags::DISK.with(MarkerFlags::CHECKPOINT);
            let marker = self.marker(disk.snapshot_end, flags);
            self.announce(marker, out);
        }
        self.push_items(items, true, out);
        self.read_through = self.read_through.max(last.unwrap_or_default());
        self.end_if_empty(out);
        self.end_if_reached(out);
    }

    /// The file was read. The rest of its snapshot, if there is more, is in the log.
    pub(super) fn end_disk(&mut self, out: &mut VecDeque<Outgoing>) {
        let Some(disk) = self.disk.take() else { return };
        self.policy.skips_deletes = false;
        self.cover(disk.high, out);
    }

    /// A file is going to be read in the order of keys.
    pub(super) fn begin_by_key(&mut self, disk: BackfillFacts, out: &mut VecDeque<Outgoing>) {
        self.begin_file(disk);
        if !self.is_over {
            out.push_back(Outgoing::OsoSnapshot { is_start: true });
        }
    }

    /// Items of it have come, keys rising.
    pub(super) fn add_items_by_key(&mut self, items: Vec<Item>, out: &mut VecDeque<Outgoing>) {
        if self.is_over {
            return;
        }
        let skips_deletes = self.policy.skips_deletes;
        for item in items {
            if self.is_sent(&item) && !(skips_deletes && item.is_deleted()) {
                self.last_item = self.last_item.max(item.seqno());
                out.push_back(Outgoing::DiskItem(item));
            }
        }
        self.end_if_empty(out);
    }

    /// All of it has come. `tells_seqno`: the consumer is told how far it is by that.
    pub(super) fn end_by_key(&mut self, tells_seqno: bool, out: &mut VecDeque<Outgoing>) {
        let Some(disk) = self.disk.take() else { return };
        if self.is_over {
            return;
        }
        if tells_seqno && self.last_item < disk.high {
            out.push_back(Outgoing::SeqnoAdvanced(disk.high));
        }
        out.push_back(Outgoing::OsoSnapshot { is_start: false });
        self.read_through = disk.high;
        self.announced_end = disk.high;
        self.last_item = disk.high;
        // What came by key was the first snapshot: the next one begins behind it.
        self.first_start = None;
        self.policy.skips_deletes = false;
        self.end_if_reached(out);
    }

    /// Whether the item is for this consumer.
    fn is_sent(&mut self, item: &Item) -> bool {
        (self.policy.has_sync_writes || !item.operation().is_prepared()) && self.filter.admits(item)
    }

    /// Ends a stream whose last collection is gone, behind the message that says so.
    fn end_if_empty(&mut self, out: &mut VecDeque<Outgoing>) {
        if self.filter.is_empty() {
            self.finish(EndReason::FilterEmpty, out);
        }
    }

    fn marker(&mut self, end: Seqno, flags: MarkerFlags) -> Marker {
        // A replica takes no snapshot that begins behind a gap. Of seqnos without items in the
        // middle of a snapshot it has not heard.
        let before =
            if self.policy.is_sync_replication { self.last_item } else { self.read_through };
        let start = self.first_start.take().unwrap_or(before.next()).min(end);
        let acks = if self.policy.wants_acks { MarkerFlags::ACK } else { MarkerFlags::default() };
        Marker { start, end, flags: flags.with(acks), ..Marker::default() }
    }

    fn announce(&mut self, marker: Marker, out: &mut VecDeque<Outgoing>) {
        let is_disk = marker.flags.contains(MarkerFlags::DISK);
        let is_sync = self.policy.is_sync_replication;
        let is_2_2 = self.policy.has_marker_2_2;
        let zero = Seqno(0);
        assert!(marker.start <= marker.end, "a snapshot begins before its end");
        assert!(marker.end > self.read_through, "a snapshot that is announced is not sent yet");
        self.announced_end = marker.end;
        out.push_back(Outgoing::Marker(Marker {
            max_visible: marker.max_visible.filter(|_| is_sync),
            high_completed: (is_sync && is_disk).then_some(marker.high_completed.unwrap_or(zero)),
            high_prepared: marker.high_prepared.filter(|_| is_sync && is_disk && is_2_2),
            purge: marker.purge.filter(|_| is_disk && is_2_2),
            ..marker
        }));
    }

    fn push_items(&mut self, items: Vec<Item>, is_disk: bool, out: &mut VecDeque<Outgoing>) {
        if self.is_over {
            return;
        }
        for item in items {
            let seqno = item.seqno();
            // The snapshot may go on behind the stream's end.
            if seqno > self.end {
                break;
            }
            assert!(seqno > self.last_item, "seqnos rise strictly in a stream");
            assert!(seqno <= self.announced_end, "an item is in the snapshot that was announced");
            self.last_item = seqno;
            out.push_back(if is_disk { Outgoing::DiskItem(item) } else { Outgoing::Item(item) });
        }
    }

    /// Everything up to `seqno` was handed over. A snapshot that is whole by that, and whose last
    /// seqnos are not for this consumer, is ended by a message.
    fn cover(&mut self, seqno: Seqno, out: &mut VecDeque<Outgoing>) {
        self.read_through = self.read_through.max(seqno);
        let is_whole = self.read_through >= self.announced_end;
        let is_cut = self.announced_end > self.end;
        // A stream that ends within the snapshot is not taken beyond its own end.
        if is_whole
            && !is_cut
            && !self.is_over
            && self.last_item < self.announced_end
            && self.policy.has_collections
        {
            self.last_item = self.announced_end;
            out.push_back(Outgoing::SeqnoAdvanced(self.announced_end));
        }
        self.end_if_reached(out);
    }

    fn end_if_reached(&mut self, out: &mut VecDeque<Outgoing>) {
        if self.read_through >= self.end {
            self.finish(EndReason::Ok, out);
        }
    }
}

#[cfg(test)]
mod tests;
