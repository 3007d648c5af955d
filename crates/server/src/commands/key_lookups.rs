//! GET_KEYS and GET_RANDOM_KEY: which documents there are. Source: docs/specification/protocol.md,
//! sections 16.2 and 16.3.

use std::ops::{Bound, ControlFlow};
use std::time::Duration;

use auth::Privilege;
use bucket::{Attempted, Bucket, KeyRange, Refused, ScanRefused, body_of, inflated};
use document::{CollectionId, Datatype, Item, Key};
use executor::{TaskKind, TaskName};
use protocol::request::{RandomKey, listed_keys_count};
use protocol::{Feature, Status};

use super::documents::{Document, accepts_compression};
use super::range_scan::{in_background, refuse_scan};
use super::refusals::{UNKNOWN_COLLECTION, refuse, unknown};
use crate::completed::Completed;
use crate::connection::{Connection, Content, Done, Payload, Request, Turn};

static GET_KEYS: TaskName = TaskName::new("FetchAllKeysTask", TaskKind::AuxIo)
    .priority(6)
    .expected(Duration::from_millis(100));
static RANDOM_KEY: TaskName = TaskName::new("GetRandomKeyVisitor", TaskKind::AuxIo)
    .priority(8)
    .expected(Duration::from_millis(100));

/// Bytes of an answer to GET_KEYS behind which no more keys follow.
const LISTED_BYTES_MAX: usize = 8 << 20;

/// GET_KEYS.
pub(super) fn get_keys(
    connection: &mut Connection,
    request: &Request<'_>,
    document: &Document<'_>,
    turn: &mut Turn<'_>,
) -> Done {
    let Document { bucket, key } = document;
    let (vbid, key) = (request.vbid(), key.as_key());
    match bucket.check_listed(turn.session, vbid, key.collection()) {
        Ok(Attempted::Answered(())) => {}
        Ok(Attempted::Waits) => return Done::Parked,
        Err(refused) => return refuse_scan(connection, request, refused, turn),
    }
    let count_max = listed_keys_count(request.frame.extras);
    let range = KeyRange::between(key.collection(), Bound::Included(key.name()), Bound::Unbounded);
    let (Some(count_max), Some(range)) = (count_max, range) else {
        request.reply(connection).fail(turn, Status::Einval, "the extras are a number of keys");
        return Done::Answered;
    };
    let has_collections = connection.features.contains(Feature::Collections);
    let listed = (*bucket).clone();
    let work = move || {
        let mut keys = KeyList { bytes: Vec::new(), left: count_max, has_collections };
        let result = listed.list_keys(vbid, &range, |key| keys.add(key));
        Completed::KeysListed(result.map(|()| keys.bytes))
    };
    in_background(connection, request, (bucket, &GET_KEYS), turn, work)
}

/// Keys, each behind its length in two bytes.
struct KeyList {
    bytes: Vec<u8>,
    left: usize,
    has_collections: bool,
}

impl KeyList {
    fn add(&mut self, key: Key<'_>) -> ControlFlow<()> {
        if self.left == 0 || self.bytes.len() >= LISTED_BYTES_MAX {
            return ControlFlow::Break(());
        }
        self.left -= 1;
        let key = if self.has_collections { key.encoded() } else { key.name() };
        let length = u16::try_from(key.len()).expect("a key is short");
        self.bytes.extend_from_slice(&length.to_be_bytes());
        self.bytes.extend_from_slice(key);
        ControlFlow::Continue(())
    }
}

/// The keys are there.
pub(super) fn listed(
    connection: &mut Connection,
    request: &Request<'_>,
    result: Result<Vec<u8>, ScanRefused>,
    turn: &mut Turn<'_>,
) -> Done {
    match result {
        Ok(keys) => {
            let content = Content { payload: Payload::Owned(keys), ..Content::default() };
            request.reply(connection).send(turn, content);
            Done::Answered
        }
        Err(refused) => refuse_scan(connection, request, refused, turn),
    }
}

/// GET_RANDOM_KEY.
pub(super) fn get_random_key(
    connection: &mut Connection,
    request: &Request<'_>,
    bucket: &Bucket,
    turn: &mut Turn<'_>,
) -> Done {
    let Some(wanted) = wanted_random_key(connection, request, turn) else { return Done::Answered };
    let collection = wanted.collection.unwrap_or(CollectionId::DEFAULT);
    if !connection.has_in(collection, Privilege::Read, request, turn) {
        return Done::Answered;
    }
    if !bucket.has_collection(collection) {
        unknown(connection, request, UNKNOWN_COLLECTION, turn);
        return Done::Answered;
    }
    let searched = bucket.clone();
    let work = move || Completed::RandomDocument(searched.random_document(collection));
    in_background(connection, request, (bucket, &RANDOM_KEY), turn, work)
}

/// What the request asks for; answered when that was not negotiated.
fn wanted_random_key(
    connection: &Connection,
    request: &Request<'_>,
    turn: &mut Turn<'_>,
) -> Option<RandomKey> {
    let features = connection.features;
    let wanted = RandomKey::parse(request.frame.extras).filter(|wanted| {
        let knows_collections =
            wanted.collection.is_none() || features.contains(Feature::Collections);
        let knows_xattrs =
            !wanted.include_xattrs || features.contains(Feature::GetRandomKeyIncludeXattr);
        knows_collections && knows_xattrs
    });
    if wanted.is_none() {
        let context = "the extras are a collection, and whether attributes are included, as far as \
                       that was negotiated";
        request.reply(connection).fail(turn, Status::Einval, context);
    }
    wanted
}

/// A document has been found, or there is none.
pub(super) fn found_random(
    connection: &mut Connection,
    request: &Request<'_>,
    found: Result<Item, Refused>,
    turn: &mut Turn<'_>,
) -> Done {
    let item = match found {
        Ok(item) => item,
        Err(refused) => return refuse(connection, request, refused, turn),
    };
    let features = connection.features;
    let wanted = RandomKey::parse(request.frame.extras);
    let includes_xattrs = wanted.is_some_and(|wanted| wanted.include_xattrs);
    let (value, datatype) = if includes_xattrs {
        (inflated(&item), item.datatype().without(Datatype::SNAPPY))
    } else {
        body_of(&item, accepts_compression(connection))
    };
    let has_json = features.contains(Feature::Json);
    let datatype = if has_json { datatype } else { datatype.without(Datatype::JSON) };
    let has_collections = features.contains(Feature::Collections);
    let key = if has_collections { item.key().encoded() } else { item.key().name() };
    let (flags, payload) = (item.flags(), Payload::of_body(&item, value));
    let cas = item.cas();
    let content = Content { datatype, cas, extras: &flags, key, payload, ..Content::default() };
    request.reply(connection).send(turn, content);
    Done::Answered
}
