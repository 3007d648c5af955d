//! Snapshot markers and their versions. Source: docs/specification/protocol.md, section 20.7.

use document::Seqno;

use crate::fields::Fields;
use crate::validate::Invalid;

/// What is said about a snapshot beside its range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MarkerFlags(pub u32);

impl MarkerFlags {
    /// It comes from memory.
    pub const MEMORY: Self = Self(0x01);
    /// It comes from a file: no key is twice in it.
    pub const DISK: Self = Self(0x02);
    /// The consumer begins a checkpoint with it.
    pub const CHECKPOINT: Self = Self(0x04);
    /// The consumer answers once it has all of it.
    pub const ACK: Self = Self(0x08);
    /// It holds more than the newest versions.
    pub const HISTORY: Self = Self(0x10);
    /// A key may be in it twice.
    pub const DUPLICATES: Self = Self(0x20);

    /// Whether all bits of `other` are set.
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// These and `other`.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// How a marker is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkerVersion {
    /// Range and flags, in the extras.
    V1,
    /// With the highest visible and the highest completed seqno, in the value.
    V2_0,
    /// With the purge seqno and the highest prepared seqno as well.
    V2_2,
}

/// Announces a snapshot: the items from `start` to `end`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marker {
    /// The first seqno that may be in it.
    pub start: Seqno,
    /// The last one: the snapshot is whole when it was reached.
    pub end: Seqno,
    /// What it is.
    pub flags: MarkerFlags,
    /// The highest seqno of something visible.
    pub max_visible: Option<Seqno>,
    /// Up to here durable writes are completed.
    pub high_completed: Option<Seqno>,
    /// Up to here tombstones were purged.
    pub purge: Option<Seqno>,
    /// Up to here the producer held all prepares.
    pub high_prepared: Option<Seqno>,
}

/// Bytes of the extras of version 1.
const V1_EXTRAS_SIZE: usize = 20;
const V2_0_NUMBER: u8 = 0;
const V2_2_NUMBER: u8 = 2;

impl Marker {
    /// The oldest version that can carry it.
    pub fn version(&self) -> MarkerVersion {
        if self.purge.or(self.high_prepared).is_some() {
            MarkerVersion::V2_2
        } else if self.max_visible.or(self.high_completed).is_some() {
            MarkerVersion::V2_0
        } else {
            MarkerVersion::V1
        }
    }

    /// Extras and value. What is not set is sent as 0 where there is a place for it.
    pub(super) fn encode(&self, extras: &mut Vec<u8>, value: &mut Vec<u8>) {
        let version = self.version();
        let out = match version {
            MarkerVersion::V1 => extras,
            MarkerVersion::V2_0 => {
                extras.push(V2_0_NUMBER);
                value
            }
            MarkerVersion::V2_2 => {
                extras.push(V2_2_NUMBER);
                value
            }
        };
        put(out, Some(self.start));
        put(out, Some(self.end));
        out.extend(self.flags.0.to_be_bytes());
        if version != MarkerVersion::V1 {
            put(out, self.max_visible);
            put(out, self.high_completed);
        }
        if version == MarkerVersion::V2_2 {
            put(out, self.purge);
            put(out, self.high_prepared);
        }
    }

    /// Bytes of extras and value.
    pub(super) fn body_size(&self) -> usize {
        match self.version() {
            MarkerVersion::V1 => V1_EXTRAS_SIZE,
            MarkerVersion::V2_0 => 37,
            MarkerVersion::V2_2 => 53,
        }
    }

    pub(super) fn parse(extras: &[u8], value: &[u8]) -> Result<Self, Invalid> {
        let read = match (extras, value) {
            ([V2_0_NUMBER], value) => Self::read(value, MarkerVersion::V2_0),
            ([V2_2_NUMBER], value) => Self::read(value, MarkerVersion::V2_2),
            (extras, []) => Self::read(extras, MarkerVersion::V1),
            _ => None,
        };
        let marker = read.ok_or(Invalid::argument("a snapshot marker has another size"))?;
        if marker.start > marker.end {
            return Err(Invalid::argument("a snapshot begins behind its end"));
        }
        Ok(marker)
    }

    fn read(bytes: &[u8], version: MarkerVersion) -> Option<Self> {
        let mut fields = Fields::new(bytes);
        let mut marker = Self {
            start: Seqno(fields.u64()?),
            end: Seqno(fields.u64()?),
            flags: MarkerFlags(fields.u32()?),
            ..Self::default()
        };
        if version != MarkerVersion::V1 {
            marker.max_visible = fields.u64().map(Seqno);
            marker.high_completed = Some(Seqno(fields.u64()?));
        }
        if version == MarkerVersion::V2_2 {
            marker.purge = fields.u64().map(Seqno);
            marker.high_prepared = Some(Seqno(fields.u64()?));
        }
        fields.finish(marker)
    }
}

fn put(out: &mut Vec<u8>, seqno: Option<Seqno>) {
    out.extend(seqno.unwrap_or(Seqno(0)).0.to_be_bytes());
}
