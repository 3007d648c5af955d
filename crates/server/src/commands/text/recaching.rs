//! What meta commands know of documents that are to be made anew.

use bucket::Bucket;
use document::Cas;
use protocol::text::answer::Recaching;
use vbucket::Found;

use crate::connection::Turn;
use crate::recache_marks::{DocumentName, Mark, MarkedRead};

/// What a client hears that reads a document.
pub(super) fn read(bucket: &Bucket, name: &[u8], read: MarkedRead, turn: &Turn<'_>) -> Recaching {
    turn.shared.recache_marks.read(|| name_of(bucket, name), read)
}

/// The document was found and touched: it is as old as before.
pub(super) fn touched(bucket: &Bucket, name: &[u8], found: &Found, turn: &Turn<'_>) {
    carry_on(bucket, name, Some(found.item.cas()), cas_behind(found), turn);
}

/// The version takes the place of `before`, which it was made from: its mark holds for it, too.
pub(super) fn carry_on(
    bucket: &Bucket,
    name: &[u8],
    before: Option<Cas>,
    cas: Cas,
    turn: &Turn<'_>,
) {
    if let Some(before) = before.filter(|before| *before != cas) {
        turn.shared.recache_marks.carry_on(|| name_of(bucket, name), before, cas);
    }
}

/// The version that there is behind a read.
pub(super) fn cas_behind(found: &Found) -> Cas {
    // A lock shows another CAS than that of the version.
    if found.cas == Cas::LOCKED { found.item.cas() } else { found.cas }
}

/// The document was made for the client, which is to fill it.
pub(super) fn mark_vivified(bucket: &Bucket, name: &[u8], cas: Cas, turn: &Turn<'_>) -> Recaching {
    mark(bucket, name, Mark { is_stale: false, is_won: true, cas }, turn);
    Recaching { has_won: true, ..Recaching::default() }
}

/// The version is out of date. Whether a client makes the document anew already is kept where the
/// version takes the place of `before`.
pub(super) fn mark_stale(
    bucket: &Bucket,
    name: &[u8],
    before: Option<Cas>,
    cas: Cas,
    turn: &Turn<'_>,
) {
    let marks = &turn.shared.recache_marks;
    let before = before.and_then(|before| marks.of(&name_of(bucket, name), before));
    let is_won = before.is_some_and(|mark| mark.is_won);
    mark(bucket, name, Mark { is_stale: true, is_won, cas }, turn);
}

fn mark(bucket: &Bucket, name: &[u8], mark: Mark, turn: &Turn<'_>) {
    turn.shared.recache_marks.mark(name_of(bucket, name), mark);
}

fn name_of(bucket: &Bucket, name: &[u8]) -> DocumentName {
    (bucket.config().name.clone(), name.to_vec())
}
