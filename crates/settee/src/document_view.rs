//! Documents as the REST port sees them: those of the vBuckets that are active here.

use std::ops::{Bound, ControlFlow};

use bucket::{Bucket, BucketType, KeyRange, Refused, ScanRefused, body_of};
use cluster::{BucketMap, ClusterMap};
use document::key::encode_collection;
use document::{Cas, Datatype, Key, Vbid};
use management::{
    DocumentError, DocumentId, KeyPage, KeyPosition, KeyQuery, NewDocument, ShownDocument,
};
use node::{AccessError, DocumentAccess, DocumentToStore};

/// vBuckets that one request for keys looks into, at most: it reads their files.
const VBUCKETS_PER_PAGE_MAX: u16 = 64;

/// Where the documents of a bucket are.
pub(crate) struct DocumentPlace<'a> {
    pub(crate) documents: &'a DocumentAccess,
    pub(crate) map: &'a BucketMap,
    pub(crate) cluster: ClusterMap,
}

/// A document's key, and where it belongs.
struct PlacedKey {
    vbid: Vbid,
    encoded: Vec<u8>,
}

impl PlacedKey {
    fn of(map: &BucketMap, id: DocumentId<'_>) -> Result<Self, DocumentError> {
        let count = u16::try_from(map.chains.len()).expect("a bucket has at most 1024 vBuckets");
        let mut encoded = encode_collection(id.collection);
        encoded.extend_from_slice(id.name.as_bytes());
        if Key::from_encoded(&encoded).is_err() {
            let why = "A key has at least one byte and at most 250, in a collection of its own 246";
            return Err(DocumentError::Refused(why.to_owned()));
        }
        Ok(Self { vbid: Vbid::of_name(id.name.as_bytes(), count), encoded })
    }

    fn key(&self) -> Key<'_> {
        Key::from_trusted(&self.encoded)
    }
}

impl DocumentPlace<'_> {
    /// Who has the vBucket, for people.
    fn elsewhere(&self, vbid: Vbid) -> DocumentError {
        let chain = self.map.chains.get(usize::from(vbid.0));
        let active = chain.and_then(|chain| *chain.first()?);
        let node = active.and_then(|index| self.cluster.nodes.get(index));
        DocumentError::NotHere(match node {
            Some(node) => format!(
                "The document belongs to vBucket {vbid}, which {}:{} has: open its console",
                node.host, node.management_port
            ),
            None => format!("The document belongs to vBucket {vbid}, which no node has"),
        })
    }

    fn error(&self, vbid: Vbid, error: AccessError) -> DocumentError {
        match error {
            AccessError::Refused(Refused::NotFound) => DocumentError::NotFound,
            AccessError::Refused(Refused::Exists) => DocumentError::Exists,
            AccessError::Refused(Refused::CasMismatch) => DocumentError::OtherVersion,
            AccessError::Refused(Refused::NotMyVbucket) => self.elsewhere(vbid),
            AccessError::Refused(refused) => refusal(refused),
            AccessError::Unreadable => DocumentError::Failed(
                "The document's file could not be read; the node's log says why".to_owned(),
            ),
            AccessError::TooLate => DocumentError::Failed(
                "It took too long. A write may still happen; read the document again".to_owned(),
            ),
            AccessError::Ambiguous => DocumentError::Failed(
                "Too few nodes have answered in time. The write may still happen; read the \
                 document again"
                    .to_owned(),
            ),
        }
    }
}

/// What is told to people of other refusals.
fn refusal(refused: Refused) -> DocumentError {
    let refuses = |why: &str| DocumentError::Refused(why.to_owned());
    let fails = |why: &str| DocumentError::Failed(why.to_owned());
    match refused {
        Refused::UnknownCollection => refuses("The collection has been dropped"),
        Refused::TooLarge => refuses("A document has at most 20 MiB"),
        Refused::Locked => fails("Somebody holds the document's lock; try again in some seconds"),
        Refused::Blocked(block) => fails(block.context()),
        Refused::Warming => fails("The vBucket is still being loaded; try again in a moment"),
        Refused::SyncWriteInProgress | Refused::RecommitInProgress => {
            fails("A durable write of the document has not ended; try again in a moment")
        }
        Refused::DurabilityImpossible | Refused::NoTopology => {
            fails("The bucket demands durable writes, and there are not enough nodes for one")
        }
        Refused::Ephemeral => refuses(
            "An ephemeral bucket has no files in which keys could be looked up; open documents by \
             their keys",
        ),
        _ => fails("The node has too much to do for this document; try again in a moment"),
    }
}

/// Keys of the vBuckets that are active here, vBucket by vBucket, each in order.
pub(crate) fn keys(bucket: &Bucket, query: &KeyQuery) -> Result<KeyPage, DocumentError> {
    if bucket.bucket_type() == BucketType::Ephemeral {
        return Err(refusal(Refused::Ephemeral));
    }
    let mut page = KeyPage::default();
    let end = bucket.config().vbucket_count;
    let last = query.from.vbid.saturating_add(VBUCKETS_PER_PAGE_MAX).min(end);
    for vbid in query.from.vbid..last {
        let listed = keys_of(bucket, vbid, query, &mut page.keys);
        match listed {
            Ok(()) | Err(ScanRefused::Vbucket(Refused::NotMyVbucket)) => {}
            Err(ScanRefused::Vbucket(Refused::UnknownCollection)) => {
                return Err(refusal(Refused::UnknownCollection));
            }
            Err(_) => page.unreadable.push(vbid),
        }
        if let Some(key) = page.keys.last().filter(|_| page.keys.len() >= query.count_max) {
            page.next = Some(KeyPosition { vbid, behind: key.clone() });
            return Ok(page);
        }
    }
    page.next = (last < end).then(|| KeyPosition { vbid: last, behind: String::new() });
    Ok(page)
}

/// Adds keys of one vBucket, until there are enough.
fn keys_of(
    bucket: &Bucket,
    vbid: u16,
    query: &KeyQuery,
    keys: &mut Vec<String>,
) -> Result<(), ScanRefused> {
    let KeyQuery { collection, prefix, from, count_max } = query;
    let is_first = vbid == from.vbid && from.behind.as_str() >= prefix.as_str();
    let start = match is_first && !from.behind.is_empty() {
        true => Bound::Excluded(from.behind.as_bytes()),
        false => Bound::Included(prefix.as_bytes()),
    };
    let Some(range) = KeyRange::between(*collection, start, Bound::Unbounded) else {
        return Ok(());
    };
    bucket.list_keys(Vbid(vbid), &range, |key| {
        // What is no text cannot be asked for here either.
        if let Ok(name) = std::str::from_utf8(key.name()) {
            if !name.starts_with(prefix.as_str()) || keys.len() >= *count_max {
                return ControlFlow::Break(());
            }
            keys.push(name.to_owned());
        }
        ControlFlow::Continue(())
    })
}

/// A live document.
pub(crate) fn read(
    place: &DocumentPlace<'_>,
    id: DocumentId<'_>,
) -> Result<ShownDocument, DocumentError> {
    let placed = PlacedKey::of(place.map, id)?;
    let found = place.documents.get(placed.vbid, placed.key());
    let found = found.map_err(|error| place.error(placed.vbid, error))?;
    let (value, datatype) = body_of(&found.item, false);
    Ok(ShownDocument {
        cas: found.cas.0,
        flags: u32::from_be_bytes(found.item.flags()),
        expiry_seconds: found.item.expiry(),
        is_json: datatype.contains(Datatype::JSON),
        value: value.into_owned(),
    })
}

/// Stores a document. Returns its CAS.
pub(crate) fn write(
    place: &DocumentPlace<'_>,
    id: DocumentId<'_>,
    document: &NewDocument<'_>,
) -> Result<u64, DocumentError> {
    let placed = PlacedKey::of(place.map, id)?;
    let stored = place.documents.store(&DocumentToStore {
        vbid: placed.vbid,
        key: placed.key(),
        cas: Cas(document.cas),
        is_new: document.is_new,
        flags: document.flags.to_be_bytes(),
        value: document.value,
    });
    stored.map(|cas| cas.0).map_err(|error| place.error(placed.vbid, error))
}

/// Deletes a document.
pub(crate) fn delete(
    place: &DocumentPlace<'_>,
    id: DocumentId<'_>,
    cas: u64,
) -> Result<(), DocumentError> {
    let placed = PlacedKey::of(place.map, id)?;
    let deleted = place.documents.delete(placed.vbid, placed.key(), Cas(cas));
    deleted.map_err(|error| place.error(placed.vbid, error))
}
