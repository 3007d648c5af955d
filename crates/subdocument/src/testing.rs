//! Documents and requests for tests.

use document::{Cas, Datatype, RevSeqno, Seqno, VbUuid, xattr};

use crate::attributes::Attributes;
use crate::failure::Failure;
use crate::flags::DocumentFlags;
use crate::request::{ClientRights, RawSpec, RequestForm, RequestHead, Specs};
use crate::stored::{DocumentFacts, StoredDocument};

/// Everything.
pub(crate) const ALL_RIGHTS: ClientRights = ClientRights {
    has_attributes: true,
    has_binary_attributes: true,
    reads_system_attributes: true,
    writes_system_attributes: true,
};

/// The CAS of stored documents.
pub(crate) const CAS: Cas = Cas(0x1700_0000_0000_0000);

/// Opcode, path flags, path, value.
pub(crate) type ShortSpec<'a> = (u8, u8, &'a str, &'a str);

/// A document with its attributes.
pub(crate) struct Sample {
    value: Vec<u8>,
    datatype: Datatype,
    is_deleted: bool,
}

impl Sample {
    pub(crate) fn new(attributes: &[(&str, &str)], body: &str) -> Self {
        let is_json = document::datatype::is_json(body.as_bytes());
        let datatype = if is_json { Datatype::JSON } else { Datatype::RAW };
        if attributes.is_empty() {
            return Self { value: body.into(), datatype, is_deleted: false };
        }
        let mut section = Attributes::default();
        for (key, value) in attributes {
            section.set(key.as_bytes(), value.as_bytes());
        }
        let value = section.with_body(body.as_bytes());
        Self { value, datatype: datatype.with(Datatype::XATTR), is_deleted: false }
    }

    pub(crate) fn deleted(attributes: &[(&str, &str)]) -> Self {
        Self { is_deleted: true, ..Self::new(attributes, "") }
    }

    pub(crate) fn stored(&self) -> StoredDocument<'_> {
        StoredDocument {
            value: &self.value,
            datatype: self.datatype,
            facts: DocumentFacts {
                cas: CAS,
                vbucket_uuid: VbUuid(0xabc),
                seqno: Seqno(7),
                revision: RevSeqno(5),
                expiry: 99,
                stored_datatype: self.datatype,
                is_deleted: self.is_deleted,
                ..DocumentFacts::default()
            },
        }
    }
}

pub(crate) fn specs<'a>(short: &[ShortSpec<'a>]) -> Result<Specs<'a>, Failure> {
    let mut specs = Specs::new();
    for (opcode, path_flags, path, value) in short {
        let (opcode, path_flags) = (*opcode, *path_flags);
        let (path, value) = (path.as_bytes(), value.as_bytes());
        specs.push(RawSpec { opcode, path_flags, path, value })?;
    }
    Ok(specs)
}

pub(crate) fn multi(flags: u8) -> RequestHead {
    let flags = DocumentFlags::from_bits(flags);
    RequestHead { form: RequestForm::Multi, flags, cas: Cas::ANY }
}

pub(crate) fn single(flags: u8) -> RequestHead {
    RequestHead { form: RequestForm::Single, ..multi(flags) }
}

/// A value as people read it: attributes with their keys, a bar, the body.
pub(crate) fn shown(value: &[u8], datatype: Datatype) -> String {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("values here are text");
    if !datatype.contains(Datatype::XATTR) {
        return format!("|{}", text(value));
    }
    let (section, body) = xattr::split(value).expect("a section that was just made");
    let entries: Vec<_> = xattr::entries(&section[4..])
        .map(|entry| format!("{}={}", text(entry.key), text(entry.value)))
        .collect();
    let size: usize = xattr::entries(&section[4..]).map(|entry| entry.size).sum();
    assert_eq!(size + 4, section.len(), "all entries can be read");
    format!("{}|{}", entries.join(" "), text(body))
}
