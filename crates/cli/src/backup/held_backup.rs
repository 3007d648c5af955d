//! A backup that a node holds, over its REST port.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};

use anyhow::Context;
use document::uri::escaped;
use serde::Deserialize;
use serde_json::Value;

use super::manifest::BucketPart;
use super::map::Revision;
use crate::node_port::NodePort;

/// Bytes of the catalogue, at most.
const CATALOGUE_BYTES_MAX: u64 = 64 << 20;
/// Bytes that are read at a time.
const READ_BYTES: usize = 256 << 10;

/// A backup that the node holds as long as this lives.
pub(super) struct HeldBackup {
    pub(super) catalogue: Catalogue,
    /// The answer that stays open.
    _answer: BufReader<ureq::BodyReader<'static>>,
}

/// What the node has.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Catalogue {
    pub(super) backup: String,
    pub(super) bucket: BucketPart,
    pub(super) node: String,
    /// Of the map; nodes of older versions do not say it, and have all that there is on them.
    #[serde(flatten)]
    pub(super) revision: Option<Revision>,
    pub(super) cut_seconds: f64,
    /// Those that are active on the node, as are the next two.
    pub(super) vbuckets: Vec<Listed>,
    pub(super) deleted: Vec<u16>,
    pub(super) empty: Vec<u16>,
    /// The manifest of scopes and collections, which older versions do not say.
    #[serde(default)]
    pub(super) collections: Option<Value>,
    /// The settings that are kept of the bucket, which older versions do not say.
    #[serde(default)]
    pub(super) settings: BTreeMap<String, String>,
}

/// One vBucket.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Listed {
    pub(super) vbid: u16,
    pub(super) state: String,
    pub(super) bytes: u64,
    pub(super) late: bool,
}

impl HeldBackup {
    /// Has the node hold the state of its files; or why not yet, as the map is being carried out.
    pub(super) fn begin(port: &NodePort, bucket: &str) -> anyhow::Result<Result<Self, String>> {
        let path = format!("/pools/default/buckets/{}/backup", escaped(bucket));
        let body = match port.get_unless_it_changes(&path)? {
            Ok(body) => body,
            Err(why) => return Ok(Err(why)),
        };
        let mut answer = BufReader::new(body.into_reader());
        let mut line = String::new();
        (&mut answer).take(CATALOGUE_BYTES_MAX).read_line(&mut line)?;
        let catalogue = serde_json::from_str(&line)
            .with_context(|| format!("{} gives no backups; is it a settee node?", port.url))?;
        Ok(Ok(Self { catalogue, _answer: answer }))
    }
}

impl Catalogue {
    /// Gives a vBucket's bytes to `sink`.
    pub(super) fn read(
        &self,
        port: &NodePort,
        vbid: u16,
        mut sink: impl FnMut(&[u8]) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let (bucket, backup) = (escaped(&self.bucket.name), &self.backup);
        let body = port.get(&format!("/pools/default/buckets/{bucket}/backup/{backup}/{vbid}"))?;
        let mut reader = body.into_reader();
        let mut buffer = vec![0; READ_BYTES];
        loop {
            let count = reader.read(&mut buffer).context("the node broke off; its log says why")?;
            if count == 0 {
                return Ok(());
            }
            sink(&buffer[..count])?;
        }
    }
}
