//! Requests, from a template each: per operation only what differs is written.

use anyhow::ensure;
use document::Datatype;
use document::DurabilityLevel;
use protocol::client::{Request, store_extras};
use protocol::frame::HEADER_SIZE;
use protocol::frame_info::{DurabilityRequirement, FrameInfos};
use protocol::request::StoreExtras;
use protocol::{Feature, FeatureSet, Opcode};

/// Where the vBucket stands in a header; body size and opaque follow.
const VBUCKET: std::ops::Range<usize> = 6..8;
const BODY_SIZE: std::ops::Range<usize> = 8..12;
const OPAQUE: std::ops::Range<usize> = 12..16;

/// What writes have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct WriteOptions {
    pub(super) durability: Option<DurabilityLevel>,
    pub(super) durability_timeout_ms: u16,
    pub(super) expiry: u32,
    pub(super) is_json: bool,
}

/// Encodes reads and writes of documents whose names all have one size.
#[derive(Clone, Debug)]
pub(super) struct Encoder {
    features: FeatureSet,
    get: Template,
    set: Template,
}

/// A request up to its name.
#[derive(Clone, Debug)]
struct Template {
    head: Vec<u8>,
    /// Bytes of the body without the value.
    body_size: u32,
}

/// What differs from one request to the next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Variables<'a> {
    pub(super) vbucket: u16,
    pub(super) opaque: u32,
    pub(super) name: &'a [u8],
}

impl Encoder {
    /// For a connection with these features.
    pub(super) fn new(
        features: FeatureSet,
        write: WriteOptions,
        name_size: usize,
    ) -> anyhow::Result<Self> {
        let is_durable = features.contains(Feature::AltRequestSupport)
            && features.contains(Feature::SyncReplication);
        ensure!(
            is_durable || write.durability.is_none(),
            "the server knows no durable writes; leave out --durability"
        );
        let prefix: &[u8] = if features.contains(Feature::Collections) { &[0] } else { &[] };
        let name = vec![b'0'; name_size];
        let key = [prefix, &name].concat();
        let get = Request { key: &key, ..Request::new(Opcode::Get) };
        let durability = write.durability.map(|level| DurabilityRequirement {
            level,
            timeout_ms: Some(write.durability_timeout_ms),
        });
        let is_json = write.is_json && features.contains(Feature::Json);
        let set = Request {
            datatype: if is_json { Datatype::JSON } else { Datatype::RAW }.bits(),
            infos: FrameInfos { durability, ..FrameInfos::default() },
            extras: &store_extras(StoreExtras { flags: [0; 4], expiry: write.expiry }),
            key: &key,
            ..Request::new(Opcode::Set)
        };
        let template = |request: &Request<'_>| Template::new(request, name_size);
        Ok(Self { features, get: template(&get), set: template(&set) })
    }

    /// The features that it was made for.
    pub(super) fn features(&self) -> FeatureSet {
        self.features
    }

    /// Appends a read.
    pub(super) fn get(&self, variables: Variables<'_>, out: &mut Vec<u8>) {
        self.get.append(variables, out);
    }

    /// Appends a write; `value` appends its body.
    pub(super) fn set(
        &self,
        variables: Variables<'_>,
        out: &mut Vec<u8>,
        value: impl FnOnce(&mut Vec<u8>),
    ) {
        let start = self.set.append(variables, out);
        let value_start = out.len();
        value(out);
        let value_size = u32::try_from(out.len() - value_start).expect("bodies are below 20 MiB");
        let body_size = self.set.body_size + value_size;
        out[start..][BODY_SIZE].copy_from_slice(&body_size.to_be_bytes());
    }
}

impl Template {
    fn new(request: &Request<'_>, name_size: usize) -> Self {
        let mut head = Vec::new();
        request.encode(&mut head);
        let body_size = u32::try_from(head.len() - HEADER_SIZE).expect("a key is small");
        head.truncate(head.len() - name_size);
        Self { head, body_size }
    }

    /// Appends everything but the value. Returns where the request begins.
    fn append(&self, variables: Variables<'_>, out: &mut Vec<u8>) -> usize {
        let start = out.len();
        let size = self.head.len() + variables.name.len();
        assert_eq!(size, HEADER_SIZE + self.body_size as usize, "all names have one size");
        out.extend_from_slice(&self.head);
        let header = &mut out[start..];
        header[VBUCKET].copy_from_slice(&variables.vbucket.to_be_bytes());
        header[OPAQUE].copy_from_slice(&variables.opaque.to_be_bytes());
        out.extend_from_slice(variables.name);
        start
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_make_the_requests_that_the_protocol_makes() {
        let durable: FeatureSet =
            [Feature::AltRequestSupport, Feature::SyncReplication, Feature::Collections]
                .into_iter()
                .collect();
        let level = Some(DurabilityLevel::PersistToMajority);
        for (features, durability, prefix) in
            [(FeatureSet::NONE, None, &b""[..]), (durable, None, b"\0"), (durable, level, b"\0")]
        {
            let write = WriteOptions {
                durability,
                durability_timeout_ms: 2_500,
                expiry: 77,
                is_json: true,
            };
            let encoder = Encoder::new(features, write, 4).unwrap();
            let variables = Variables { vbucket: 0x0102, opaque: 0x0304_0506, name: b"name" };
            let mut actual = b"before".to_vec();
            encoder.get(variables, &mut actual);
            encoder.set(variables, &mut actual, |out| out.extend_from_slice(b"some value"));

            let key = [prefix, b"name"].concat();
            let mut expected = b"before".to_vec();
            let get = Request {
                vbucket: 0x0102,
                opaque: 0x0304_0506,
                key: &key,
                ..Request::new(Opcode::Get)
            };
            get.encode(&mut expected);
            let timeout_ms = Some(2_500);
            let durability = durability.map(|level| DurabilityRequirement { level, timeout_ms });
            Request {
                opcode: Opcode::Set,
                infos: FrameInfos { durability, ..FrameInfos::default() },
                extras: &store_extras(StoreExtras { flags: [0; 4], expiry: 77 }),
                value: b"some value",
                ..get
            }
            .encode(&mut expected);
            assert_eq!(actual, expected);
        }
    }

    #[test]
    fn durability_needs_a_server_that_knows_it() {
        let durability = Some(DurabilityLevel::Majority);
        let write =
            WriteOptions { durability, durability_timeout_ms: 1, expiry: 0, is_json: false };
        assert!(Encoder::new(FeatureSet::NONE, write, 20).is_err());
    }
}
