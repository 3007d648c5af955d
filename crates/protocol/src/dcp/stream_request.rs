//! Requests for streams. Source: docs/specification/protocol.md, section 20.4.

use document::{CollectionId, Seqno, VbUuid};
use serde::Deserialize;

use crate::fields::Fields;
use crate::validate::Invalid;

/// What kind of stream it is to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamFlags(pub u32);

impl StreamFlags {
    /// The consumer takes the vBucket over.
    pub const TAKEOVER: Self = Self(0x01);
    /// Only what is in the file.
    pub const DISK_ONLY: Self = Self(0x02);
    /// Up to what is the newest now.
    pub const TO_LATEST: Self = Self(0x04);
    /// Only of an active vBucket.
    pub const ACTIVE_ONLY: Self = Self(0x10);
    /// The branch must be known even when the stream begins with nothing.
    pub const STRICT_UUID: Self = Self(0x20);
    /// From what is the newest now.
    pub const FROM_LATEST: Self = Self(0x40);
    /// Tombstones that were purged are not missed.
    pub const IGNORE_PURGED: Self = Self(0x80);
    /// What is in memory, instead of history.
    pub const CACHE_TRANSFER: Self = Self(0x100);

    const KNOWN: u32 = 0x1f7;

    /// Whether each bit that is set means something.
    pub fn is_known(self) -> bool {
        self.0 & !Self::KNOWN == 0
    }

    /// Whether all bits of `other` are set.
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// Where a stream is to begin and end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamRequest<'a> {
    /// What kind.
    pub flags: StreamFlags,
    /// The last seqno that the consumer has.
    pub start: Seqno,
    /// The last seqno that it wants; the highest number for a stream without an end.
    pub end: Seqno,
    /// The branch of history that the consumer has.
    pub uuid: VbUuid,
    /// The snapshot that `start` lies in.
    pub snapshot_start: Seqno,
    /// See there.
    pub snapshot_end: Seqno,
    /// A JSON text for [`StreamSelection::parse`], or nothing.
    pub value: &'a [u8],
}

impl<'a> StreamRequest<'a> {
    pub(super) fn parse(extras: &[u8], value: &'a [u8]) -> Result<Self, Invalid> {
        let request = Self::read(extras, value);
        let request = request.ok_or(Invalid::argument("the extras have the wrong size"))?;
        if !request.flags.is_known() {
            return Err(Invalid::argument("a flag is unknown or retired"));
        }
        Ok(request)
    }

    fn read(extras: &[u8], value: &'a [u8]) -> Option<Self> {
        let mut fields = Fields::new(extras);
        let flags = StreamFlags(fields.u32()?);
        fields.u32()?;
        let request = Self {
            flags,
            start: Seqno(fields.u64()?),
            end: Seqno(fields.u64()?),
            uuid: VbUuid(fields.u64()?),
            snapshot_start: Seqno(fields.u64()?),
            snapshot_end: Seqno(fields.u64()?),
            value,
        };
        fields.finish(request)
    }

    pub(super) fn encode(&self, extras: &mut Vec<u8>) {
        extras.extend(self.flags.0.to_be_bytes());
        extras.extend([0; 4]);
        for field in
            [self.start.0, self.end.0, self.uuid.0, self.snapshot_start.0, self.snapshot_end.0]
        {
            extras.extend(field.to_be_bytes());
        }
    }
}

/// What of a vBucket a stream is to carry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamSelection {
    /// Only these collections.
    pub collections: Option<Vec<CollectionId>>,
    /// Only the collections of this scope.
    pub scope: Option<u32>,
    /// Which of several streams of the vBucket it is.
    pub stream_id: Option<u16>,
    /// Up to where tombstones had been purged in what the consumer has seen.
    pub purge_seqno: Option<Seqno>,
    /// Whether the consumer wants what is in memory.
    pub wants_cache_transfer: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Json {
    /// The manifest that the consumer knows; producers have long ceased to compare it.
    uid: Option<String>,
    collections: Option<Vec<String>>,
    scope: Option<String>,
    sid: Option<u16>,
    purge_seqno: Option<String>,
    cts: Option<CacheTransfer>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "read for its form alone")]
struct CacheTransfer {
    free_memory: Option<u64>,
    all_keys: Option<bool>,
}

impl StreamSelection {
    /// Whether the stream carries less than everything.
    pub fn is_filtered(&self) -> bool {
        self.collections.is_some() || self.scope.is_some()
    }

    /// Reads the value of a stream request: nothing stands for everything.
    pub fn parse(value: &[u8]) -> Result<Self, Invalid> {
        if value.is_empty() {
            return Ok(Self::default());
        }
        let wrong = Invalid::argument("the filter has an unknown form");
        let json: Json = serde_json::from_slice(value).map_err(|_| wrong)?;
        json.selection().ok_or(wrong)
    }
}

impl Json {
    fn selection(self) -> Option<StreamSelection> {
        let Self { uid, collections, scope, sid, purge_seqno, cts } = self;
        let says_something = uid.is_some()
            || collections.is_some()
            || scope.is_some()
            || sid.is_some()
            || purge_seqno.is_some()
            || cts.is_some();
        if !says_something || (collections.is_some() && scope.is_some()) || sid == Some(0) {
            return None;
        }
        if let Some(uid) = uid {
            u64::from_str_radix(&uid, 16).ok()?;
        }
        let hex = |id: &String| u32::from_str_radix(id, 16).ok();
        let collections = match collections {
            None => None,
            Some(ids) if ids.is_empty() => return None,
            Some(ids) => {
                let ids: Option<Vec<_>> = ids.iter().map(|id| hex(id).map(CollectionId)).collect();
                Some(ids?)
            }
        };
        let scope = match scope {
            None => None,
            Some(id) => Some(hex(&id)?),
        };
        let purge_seqno = match purge_seqno {
            None => None,
            Some(seqno) => Some(Seqno(seqno.parse().ok()?)),
        };
        let wants_cache_transfer = cts.is_some();
        Some(StreamSelection {
            collections,
            scope,
            stream_id: sid,
            purge_seqno,
            wants_cache_transfer,
        })
    }
}
