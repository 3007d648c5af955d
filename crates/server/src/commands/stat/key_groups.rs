//! Groups about single documents.

use std::time::Duration;

use bucket::{Attempted, Completion, InFile, Refused};
use document::key::encode_collection;
use document::{CollectionId, Item, Key, Vbid, VbucketState};
use executor::{TaskKind, TaskName};
use vbucket::Found;

use super::emitter::{Checked, Emitter, NoGroup, id_argument};
use crate::buckets::BucketPart;
use crate::completed::Completed;

pub(super) static CHECK: TaskName = TaskName::new("VKeyStatBGFetchTask", TaskKind::Reader)
    .priority(3)
    .expected(Duration::from_millis(25));

/// Groups of documents of a collection that their argument names by its id.
const BY_ID: [&str; 2] = ["key-byid", "vkey-byid"];
/// Groups of documents of the default collection.
const OF_DEFAULT: [&str; 2] = ["key", "vkey"];

/// The collection of whose document a group tells; `None` if it tells of none, or the argument
/// names none, which the group says itself.
pub(super) fn collection_of(group: &str, argument: &str) -> Option<CollectionId> {
    if OF_DEFAULT.contains(&group) {
        return Some(CollectionId::DEFAULT);
    }
    let named = || argument.rsplit_once(' ').and_then(|(_, id)| id_argument(id).ok());
    BY_ID.contains(&group).then(named).flatten().map(CollectionId)
}

/// Group "key": `<key> <vBucket>`, a key of the default collection. What is on disk is read first,
/// so that the request may wait.
pub(super) fn key(
    emitter: &mut Emitter<'_, '_>,
    part: &BucketPart,
    argument: &str,
) -> Result<(), NoGroup> {
    let document = look_up(emitter, part, CollectionId::DEFAULT, argument)?;
    tell(emitter, document);
    Ok(())
}

/// Group "key-byid": `<key> <vBucket> 0x<collection>`.
pub(super) fn key_by_id(
    emitter: &mut Emitter<'_, '_>,
    part: &BucketPart,
    argument: &str,
) -> Result<(), NoGroup> {
    let (argument, collection) = in_collection(argument)?;
    let document = look_up(emitter, part, collection, argument)?;
    tell(emitter, document);
    Ok(())
}

/// Group "vkey": the same as "key", and whether the file has the document as memory has it.
pub(super) fn checked_key(
    emitter: &mut Emitter<'_, '_>,
    part: &BucketPart,
    argument: &str,
) -> Result<(), NoGroup> {
    Err(NoGroup::InFile(Box::new(look_up(emitter, part, CollectionId::DEFAULT, argument)?)))
}

/// Group "vkey-byid".
pub(super) fn checked_key_by_id(
    emitter: &mut Emitter<'_, '_>,
    part: &BucketPart,
    argument: &str,
) -> Result<(), NoGroup> {
    let (argument, collection) = in_collection(argument)?;
    Err(NoGroup::InFile(Box::new(look_up(emitter, part, collection, argument)?)))
}

/// What is told of a document with what its file has of it, in the words of the original. Not for
/// front-end workers: it reads the file.
pub(super) fn check(document: Checked) -> Completed {
    let Checked { bucket, vbid, item, mut told } = document;
    let valid = match bucket.in_file(vbid, &item) {
        Ok(InFile::Same) => "valid",
        Ok(InFile::NotYet) => "dirty",
        Ok(InFile::Missing) => "ram_but_not_disk",
        Ok(InFile::Different) => "data_mismatch",
        Err(error) => {
            tracing::error!(%error, vbucket = vbid.0, "a document cannot be held against its file");
            return Completed::Bucket(Completion::ReadFailed);
        }
    };
    told.push(("key_valid", valid.to_owned()));
    Completed::KeyChecked(told)
}

/// `<key> <vBucket>`, and the collection whose id stands behind them.
fn in_collection(argument: &str) -> Result<(&str, CollectionId), NoGroup> {
    let (argument, id) = argument.rsplit_once(' ').ok_or(NoGroup::BadArgument)?;
    Ok((argument, CollectionId(id_argument(id)?)))
}

fn tell(emitter: &mut Emitter<'_, '_>, document: Checked) {
    for (name, value) in document.told {
        emitter.emit(name, value);
    }
}

/// The document that `<key> <vBucket>` names.
fn look_up(
    emitter: &mut Emitter<'_, '_>,
    part: &BucketPart,
    collection: CollectionId,
    argument: &str,
) -> Result<Checked, NoGroup> {
    let (name, vbid) = argument.rsplit_once(' ').ok_or(NoGroup::BadArgument)?;
    let vbid = Vbid(vbid.parse().map_err(|_| NoGroup::BadArgument)?);
    let key = [encode_collection(collection).as_slice(), name.as_bytes()].concat();
    let key = Key::from_encoded(&key).map_err(|_| NoGroup::BadArgument)?;
    let bucket = &part.bucket;
    let mut here = None;
    bucket.with_vbucket(vbid, |vbucket| {
        here = Some((vbucket.state(), vbucket.persisted_seqno().0));
    });
    let (state, persisted) = here.ok_or(NoGroup::NoSuchVbucket)?;
    let session = &mut *emitter.turn.session;
    let found = match state {
        VbucketState::Active => bucket.get_metadata(session, vbid, key),
        VbucketState::Replica => bucket.get_replica(session, vbid, key),
        VbucketState::Pending | VbucketState::Dead => return Err(NoGroup::NoSuchVbucket),
    };
    let Attempted::Answered(Found { item, .. }) = found.map_err(NoGroup::Refused)? else {
        return Err(NoGroup::Waits);
    };
    if item.is_deleted() {
        return Err(NoGroup::Refused(Refused::NotFound));
    }
    let told = statistics(&item, state, persisted);
    Ok(Checked { bucket: bucket.clone(), vbid, item, told })
}

fn statistics(item: &Item, state: VbucketState, persisted: u64) -> Vec<(&'static str, String)> {
    vec![
        ("key_is_dirty", (item.seqno().0 > persisted).to_string()),
        ("key_exptime", item.expiry().to_string()),
        ("key_flags", u32::from_be_bytes(item.flags()).to_string()),
        ("key_cas", item.cas().to_string()),
        ("key_datatype", item.datatype().bits().to_string()),
        ("key_vb_state", state.name().to_owned()),
        ("key_is_resident", (!item.is_ejected()).to_string()),
    ]
}
