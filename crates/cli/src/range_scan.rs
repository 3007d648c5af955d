//! What a tool asks of scans: the keys of a vBucket, or its documents, one after the other.

use std::ops::ControlFlow;

use anyhow::anyhow;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use client::{Connection, OwnedResponse, status_name};
use document::{CollectionId, Datatype, Vbid};
use protocol::client::{Request, scanned_documents, scanned_names};
use protocol::range_scan::ScannedDocument;
use protocol::{Opcode, Status};
use serde_json::{Value, json};

use crate::server_arguments::explain;
use crate::stats::said_context;

/// Bytes of a scan's name.
const ID_SIZE: usize = 16;
/// The milliseconds, and bytes, after which a portion of a scan ends: no limit.
const NO_LIMIT: [u8; 8] = [0; 8];
/// What every name is in front of: no text has this byte, and few others do.
const LAST_BYTE: u8 = 0xff;
const NAME_BYTES_MAX: usize = 250;

/// What is read of a vBucket's part of a collection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RangeScan<'a> {
    pub(crate) collection: CollectionId,
    /// What names begin with.
    pub(crate) prefix: &'a [u8],
    /// Whether names are all that is wanted.
    pub(crate) keys_only: bool,
    /// About so many by chance, instead of all.
    pub(crate) sample_count: Option<u64>,
    /// Documents after which it ends; 0 for no limit.
    pub(crate) count_max: u32,
}

impl RangeScan<'_> {
    /// Gives `visit` each document of a vBucket that was persisted when the scan began, in the
    /// order of names. Of a scan of keys alone they have nothing but these.
    ///
    /// # Errors
    /// The server refuses, or is not there; or `visit` fails, which leaves the connection useless.
    pub(crate) fn run(
        &self,
        connection: &mut Connection,
        vbid: Vbid,
        visit: &mut dyn FnMut(&ScannedDocument<'_>) -> anyhow::Result<()>,
    ) -> anyhow::Result<ControlFlow<()>> {
        let Some(id) = self.create(connection, vbid)? else { return Ok(ControlFlow::Continue(())) };
        let extras = [&id[..], &self.count_max.to_be_bytes(), &NO_LIMIT].concat();
        let opcode = Opcode::RangeScanContinue;
        connection.send(&Request { vbucket: vbid.0, extras: &extras, ..Request::new(opcode) });
        connection.flush().map_err(explain)?;
        loop {
            let answer = connection.receive().map_err(explain)?;
            match answer.status() {
                Some(Status::Success) => self.visit_all(&answer, visit)?,
                Some(Status::RangeScanComplete) => {
                    self.visit_all(&answer, visit)?;
                    return Ok(ControlFlow::Continue(()));
                }
                Some(Status::RangeScanMore) => {
                    self.visit_all(&answer, visit)?;
                    cancel(connection, vbid, &id)?;
                    return Ok(ControlFlow::Break(()));
                }
                _ => return Err(refused(vbid, &answer)),
            }
        }
    }

    /// Has the server begin. `None` where there is nothing.
    fn create(
        &self,
        connection: &mut Connection,
        vbid: Vbid,
    ) -> anyhow::Result<Option<[u8; ID_SIZE]>> {
        let value = self.to_json().to_string();
        let answer = connection.call(&Request {
            vbucket: vbid.0,
            datatype: Datatype::JSON.bits(),
            value: value.as_bytes(),
            ..Request::new(Opcode::RangeScanCreate)
        });
        let answer = answer.map_err(explain)?;
        match answer.status() {
            Some(Status::Success) => {
                let id: Result<[u8; ID_SIZE], _> = answer.value().try_into();
                Ok(Some(id.map_err(|_| anyhow!("the server gives a scan no name of 16 bytes"))?))
            }
            Some(Status::KeyEnoent) => Ok(None),
            _ => Err(refused(vbid, &answer)),
        }
    }

    fn to_json(self) -> Value {
        let what = match self.sample_count {
            Some(samples) => json!({"samples": samples, "seed": 0}),
            None => json!({
                "start": STANDARD.encode(self.prefix),
                "excl_end": STANDARD.encode(behind(self.prefix)),
            }),
        };
        let kind = if self.sample_count.is_some() { "sampling" } else { "range" };
        let collection = format!("{:x}", self.collection.0);
        json!({"collection": collection, "key_only": self.keys_only, kind: what})
    }

    fn visit_all(
        &self,
        answer: &OwnedResponse,
        visit: &mut dyn FnMut(&ScannedDocument<'_>) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let found = if self.keys_only {
            let names = scanned_names(answer.value());
            let of = |name| ScannedDocument { name, ..ScannedDocument::default() };
            names.map(|names| names.into_iter().map(of).collect())
        } else {
            scanned_documents(answer.value())
        };
        let found = found.ok_or_else(|| anyhow!("the server answers a scan with no documents"))?;
        found.iter().try_for_each(visit)
    }
}

/// The first name behind all that begin with `prefix`.
fn behind(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if let Some(next) = last.checked_add(1) {
            end.push(next);
            return end;
        }
    }
    vec![LAST_BYTE; NAME_BYTES_MAX]
}

fn cancel(connection: &mut Connection, vbid: Vbid, id: &[u8]) -> anyhow::Result<()> {
    let request = Request { vbucket: vbid.0, extras: id, ..Request::new(Opcode::RangeScanCancel) };
    let answer = connection.call(&request).map_err(explain)?;
    match answer.status() {
        Some(Status::Success | Status::KeyEnoent) => Ok(()),
        _ => Err(refused(vbid, &answer)),
    }
}

fn refused(vbid: Vbid, answer: &OwnedResponse) -> anyhow::Error {
    let status = answer.status();
    let advice = match status {
        Some(Status::Eaccess) => "log in as a user with a role for scans: --user and --password",
        Some(Status::UnknownCommand | Status::NotSupported) => "this server or bucket has no scans",
        Some(Status::UnknownCollection) => "there is no such collection, or no longer",
        Some(Status::NotMyVbucket) => "the bucket is being moved between nodes; try again",
        Some(Status::Etmpfail | Status::Ebusy) => "the server cannot just now; try again",
        _ => "see the node's log",
    };
    let said = said_context(&String::from_utf8_lossy(answer.value())).unwrap_or_default();
    let status = status_name(answer.view().status_code);
    anyhow!("vBucket {} cannot be scanned: {status}: {said}; {advice}", vbid.0)
}

#[cfg(test)]
mod tests {
    use std::ops::Bound;

    use protocol::range_scan::{RangeScanCreate, ScanSelection};

    use super::*;

    fn parsed(prefix: &[u8], sample_count: Option<u64>) -> RangeScanCreate {
        let collection = CollectionId(0x1f);
        let scan = RangeScan { collection, prefix, keys_only: true, sample_count, count_max: 0 };
        RangeScanCreate::parse(scan.to_json().to_string().as_bytes()).unwrap()
    }

    #[test]
    fn the_server_understands_what_is_asked_for() {
        for (prefix, first_behind) in [
            (&b"user::"[..], b"user:;".to_vec()),
            (b"a\xff", b"b".to_vec()),
            (b"", vec![LAST_BYTE; NAME_BYTES_MAX]),
            (b"\xff", vec![LAST_BYTE; NAME_BYTES_MAX]),
        ] {
            let wanted = parsed(prefix, None);
            assert_eq!(wanted.collection, CollectionId(0x1f));
            assert!(wanted.key_only);
            let range = ScanSelection::Range {
                start: Bound::Included(prefix.to_vec()),
                end: Bound::Excluded(first_behind),
            };
            assert_eq!(wanted.selection, range, "{prefix:?}");
        }
        let sampling = ScanSelection::Sampling { samples: 7, seed: 0 };
        assert_eq!(parsed(b"", Some(7)).selection, sampling);
    }
}
