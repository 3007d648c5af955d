//! SET_WITH_META, ADD_WITH_META, DEL_WITH_META: versions of documents that came about elsewhere.

use std::borrow::Cow;

use document::limits::{SYSTEM_XATTR_SIZE_MAX, VALUE_SIZE_MAX};
use document::{
    Cas, Datatype, Deletion, ItemBuilder, ItemMeta, Key, Placeholders, RevSeqno, Vbid, xattr,
};
use vbucket::{ForeignTerms, ForeignWrite, Mutation, WriteCondition};

use super::value::{Incoming, inflate_sent, json_bit, split_xattrs};
use crate::core::{Attempted, Bucket, Refused, Session};
use crate::memory::Compression;

/// What is done with a version from elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForeignKind {
    /// It is stored whatever is here.
    Set,
    /// It is stored where there is no document.
    Add,
    /// It is a tombstone.
    Delete(Deletion),
}

/// A version of a document that came about elsewhere.
#[derive(Clone, Copy, Debug)]
pub struct ForeignVersion<'a> {
    /// What is done with it.
    pub kind: ForeignKind,
    /// Where it belongs.
    pub vbid: Vbid,
    /// What it is called.
    pub key: Key<'a>,
    /// The client's flags.
    pub flags: [u8; 4],
    /// Seconds since the epoch, 0 for never; of a tombstone, when it was made, 0 for now.
    pub expiry: u32,
    /// Its name there.
    pub cas: Cas,
    /// How often it has changed.
    pub revision: RevSeqno,
    /// Its value: of a tombstone, the xattrs are kept, and a body is left out.
    pub value: Incoming<'a>,
    /// Whether the value begins with xattrs.
    pub has_xattrs: bool,
    /// The only version that it may replace; [`Cas::ANY`] for any.
    pub replaces: Cas,
    /// Whether it is taken even if the version that is here wins.
    pub always_wins: bool,
    /// Whether it gets a CAS of this bucket's clock.
    pub renames: bool,
    /// Where its value, which is not compressed then, says CAS and seqno. All places are text:
    /// bodies, or values of attributes.
    pub placeholders: Option<&'a Placeholders>,
}

impl Bucket {
    /// Stores a version with the metadata that it has elsewhere, if it wins over the one that is
    /// here. It is no durable write, whatever the bucket demands of others.
    pub fn store_foreign(
        &self,
        session: &mut Session,
        version: ForeignVersion<'_>,
    ) -> Result<Attempted<Mutation>, Refused> {
        let ForeignVersion { vbid, key, .. } = version;
        match version.kind {
            // It makes room.
            ForeignKind::Delete(_) if version.value.body.is_empty() => {
                self.check_disk(vbid, Some(key))?;
            }
            _ => {
                let size = version.value.body.len();
                self.check_write_gate(vbid, key, &WriteCondition::default(), size)?;
            }
        }
        let now = self.time_of(session);
        let builder = version.built(self.0.memory.compression(), now.wall.seconds())?;
        let order = self.conflict_resolution().order();
        let terms = ForeignTerms {
            only_adds: version.kind == ForeignKind::Add,
            replaces: version.replaces,
            order: (!version.always_wins).then_some(order),
            renames: version.renames,
        };
        let placeholders = version.placeholders.cloned().unwrap_or_default();
        let ForeignVersion { cas, revision, .. } = version;
        let write = ForeignWrite { builder, cas, revision, placeholders, terms };
        let result = self
            .attempt(session, vbid, |vbucket, effects| vbucket.store_foreign(write, now, effects));
        self.answer(session, vbid, result)
    }

    /// Has the clock of a vBucket go on from `cas`, back as well: it had followed one that has run
    /// away.
    pub fn set_max_cas(&self, vbid: Vbid, cas: Cas) -> Result<(), Refused> {
        self.check_disk(vbid, None)?;
        self.on_vbucket(vbid, |vbucket, _, effects| vbucket.set_max_cas(cas, effects))
            .ok_or(Refused::NotMyVbucket)
    }
}

impl ForeignVersion<'_> {
    fn built(&self, compression: &Compression, now: u32) -> Result<ItemBuilder, Refused> {
        let (value, datatype) = self.checked(compression)?;
        let (expiry, deletion) = match self.kind {
            ForeignKind::Delete(how) => {
                (if self.expiry == 0 { now } else { self.expiry }, Some(how))
            }
            ForeignKind::Set | ForeignKind::Add => (self.expiry, None),
        };
        let meta = ItemMeta { flags: self.flags, expiry, datatype, deletion };
        Ok(ItemBuilder::new(self.key, meta, &value))
    }

    /// The value as it is to be stored.
    fn checked(&self, compression: &Compression) -> Result<(Cow<'_, [u8]>, Datatype), Refused> {
        if !self.has_xattrs && !self.is_deletion() {
            return self.value.checked(compression);
        }
        let sent = self.value.body;
        if sent.is_empty() && self.is_deletion() {
            return Ok((Cow::Borrowed(sent), Datatype::RAW));
        }
        let plain = match self.value.is_compressed {
            true => Cow::Owned(inflate_sent(sent)?),
            false => Cow::Borrowed(sent),
        };
        if !self.has_xattrs {
            return Ok((Cow::Borrowed(&[]), Datatype::RAW));
        }
        if !xattr::is_well_formed(&plain) {
            return Err(Refused::BadXattrs);
        }
        // Too many attributes of the system are no attributes; of users, and bodies, too much.
        let system_bytes = xattr::system_only(&plain).len();
        if system_bytes > SYSTEM_XATTR_SIZE_MAX {
            return Err(Refused::BadXattrs);
        }
        if plain.len() - system_bytes > VALUE_SIZE_MAX {
            return Err(Refused::TooLarge);
        }
        let (section, body) = split_xattrs(&plain);
        let has_any = section.len() > size_of::<u32>();
        match (self.is_deletion(), has_any) {
            (true, true) => return Ok((Cow::Owned(section.to_vec()), Datatype::XATTR)),
            (true, false) => return Ok((Cow::Borrowed(&[]), Datatype::RAW)),
            (false, false) => return Ok((Cow::Owned(body.to_vec()), json_bit(body))),
            (false, true) => {}
        }
        let datatype = json_bit(body).with(Datatype::XATTR);
        let is_worth_it = compression.is_worth_it(plain.len(), sent.len());
        if self.value.is_compressed && compression.keeps_compressed() && is_worth_it {
            return Ok((Cow::Borrowed(sent), datatype.with(Datatype::SNAPPY)));
        }
        Ok((plain, datatype))
    }

    fn is_deletion(&self) -> bool {
        matches!(self.kind, ForeignKind::Delete(_))
    }
}
