//! The beginning of a conversation as an SDK has it, and the few commands that benchmarks need.

use std::io::{Read, Write};
use std::net::TcpStream;

use anyhow::{Context, Result, bail, ensure};
use auth::client::ScramClient;
use auth::mechanism::HashAlgorithm;

const HELLO: u8 = 0x1f;
const SASL_AUTH: u8 = 0x21;
const SASL_STEP: u8 = 0x22;
const SELECT_BUCKET: u8 = 0x89;
const STAT: u8 = 0x10;
const GET_ALL_VB_SEQNOS: u8 = 0x48;
const SET_PARAM: u8 = 0x82;
/// A group of parameters. The node goes by their names.
const CONFIGURATION: u32 = 6;
const COLLECTIONS_SET_MANIFEST: u8 = 0xb9;
const RANGE_SCAN_CREATE: u8 = 0xda;
const RANGE_SCAN_CONTINUE: u8 = 0xdb;
const KEY_ENOENT: u16 = 0x01;
const RANGE_SCAN_COMPLETE: u16 = 0xa7;
const AUTH_CONTINUE: u16 = 0x21;
const MECHANISM: &[u8] = b"SCRAM-SHA512";

/// Features of a present SDK that shape data operations: TCP_NODELAY, mutation tokens, xattrs,
/// extended errors, select bucket, JSON, tracing, alternative frames, durable writes, collections.
const FEATURES: [u16; 10] = [0x03, 0x04, 0x06, 0x07, 0x08, 0x0b, 0x0f, 0x10, 0x11, 0x12];

/// A named collection's number. The smallest that there is.
pub const NAMED_COLLECTION: u8 = 8;

/// How to log in.
#[derive(Clone, Debug)]
pub struct Login {
    /// The user's name.
    pub user: String,
    /// Their password.
    pub password: String,
    /// The bucket to select.
    pub bucket: String,
}

/// A response: status, key and value.
type Answer = (u16, Vec<u8>, Vec<u8>);

/// HELLO, SCRAM-SHA512, SELECT_BUCKET.
pub fn bootstrap(stream: &mut (impl Read + Write), login: &Login) -> Result<()> {
    let features: Vec<u8> = FEATURES.iter().flat_map(|feature| feature.to_be_bytes()).collect();
    let (status, _, granted) = ask(stream, HELLO, br#"{"a":"peers","i":"0/0"}"#, &features)?;
    ensure!(status == 0, "HELLO: status {status:#x}");
    for needed in [[0, 0x0f], [0, 0x12]] {
        ensure!(granted.chunks(2).any(|code| code == needed), "feature {needed:?} is not granted");
    }
    log_in(stream, login)?;
    let (status, ..) = ask(stream, SELECT_BUCKET, login.bucket.as_bytes(), &[])?;
    ensure!(status == 0, "SELECT_BUCKET: status {status:#x}");
    Ok(())
}

fn log_in(stream: &mut (impl Read + Write), login: &Login) -> Result<()> {
    let scram = ScramClient::new(
        HashAlgorithm::Sha512,
        &login.user,
        login.password.as_bytes(),
        &platform::Entropy::real(),
    );
    let (status, _, challenge) = ask(stream, SASL_AUTH, MECHANISM, &scram.first())?;
    ensure!(status == AUTH_CONTINUE, "SASL_AUTH: status {status:#x}");
    let (answer, expected) = scram.answer(&challenge)?;
    let (status, _, proof) = ask(stream, SASL_STEP, MECHANISM, &answer)?;
    ensure!(status == 0, "SASL_STEP: status {status:#x}");
    expected.check(&proof)?;
    Ok(())
}

/// One statistic by its name, out of all. Works on a memcached port as well.
pub fn statistic(stream: &mut TcpStream, name: &str) -> Result<String> {
    let found = statistics(stream, "")?.into_iter().find(|(key, _)| key == name);
    let (_, value) = found.with_context(|| format!("there is no statistic {name}"))?;
    Ok(value)
}

/// All statistics of a group, by name.
pub fn statistics(stream: &mut TcpStream, group: &str) -> Result<Vec<(String, String)>> {
    Request { opcode: STAT, key: group.as_bytes(), ..EMPTY }.send(stream)?;
    let mut found = Vec::new();
    loop {
        let (status, key, value) = receive(stream)?;
        ensure!(status == 0, "STAT {group}: status {status:#x}");
        if key.is_empty() {
            return Ok(found);
        }
        found.push((String::from_utf8(key)?, String::from_utf8(value)?));
    }
}

/// Gives the selected bucket's parameter of this name another value.
pub fn set_parameter(stream: &mut TcpStream, name: &str, value: &str) -> Result<()> {
    let (key, value, extras) = (name.as_bytes(), value.as_bytes(), &CONFIGURATION.to_be_bytes());
    Request { opcode: SET_PARAM, key, value, extras, ..EMPTY }.send(stream)?;
    let (status, _, reason) = receive(stream)?;
    let reason = String::from_utf8_lossy(&reason);
    ensure!(status == 0, "SET_PARAM {name}: status {status:#x} {reason}");
    Ok(())
}

/// The sum of the high seqnos of all vBuckets that the node has.
pub fn high_seqnos(stream: &mut TcpStream) -> Result<u64> {
    /// A vBucket's number and its seqno.
    const ENTRY_BYTES: usize = 2 + 8;
    let (status, _, value) = ask(stream, GET_ALL_VB_SEQNOS, &[], &[])?;
    ensure!(status == 0, "GET_ALL_VB_SEQNOS: status {status:#x}");
    let (entries, rest) = value.as_chunks::<ENTRY_BYTES>();
    ensure!(rest.is_empty(), "GET_ALL_VB_SEQNOS: {} bytes are no entry", rest.len());
    let seqno = |[_, _, seqno @ ..]: &[u8; ENTRY_BYTES]| u64::from_be_bytes(*seqno);
    Ok(entries.iter().map(seqno).sum())
}

/// Gives the bucket one named collection, [`NAMED_COLLECTION`], or as many as `count` from that
/// number on.
pub fn make_collections(stream: &mut TcpStream, count: u64) -> Result<()> {
    let named = (0..count).map(|index| {
        let uid = u64::from(NAMED_COLLECTION) + index;
        format!(r#",{{"name":"c{uid}","uid":"{uid:x}"}}"#)
    });
    let named: String = named.collect();
    let collections = format!(r#"[{{"name":"_default","uid":"0"}}{named}]"#);
    let scope = format!(r#"{{"name":"_default","uid":"0","collections":{collections}}}"#);
    let manifest = format!(r#"{{"uid":"{count:x}","scopes":[{scope}]}}"#);
    let (status, _, reason) = ask(stream, COLLECTIONS_SET_MANIFEST, &[], manifest.as_bytes())?;
    let reason = String::from_utf8_lossy(&reason).into_owned();
    ensure!(status == 0, "COLLECTIONS_SET_MANIFEST: status {status:#x} {reason}");
    Ok(())
}

/// Reads the keys of all documents of the default collection in one vBucket, as the file has them.
/// Returns how many there are.
pub fn scan_keys(stream: &mut TcpStream, vbucket: u16) -> Result<u64> {
    /// From the smallest key to one behind the largest.
    const EVERYTHING: &[u8] = br#"{"key_only":true,"range":{"start":"AA==","end":"/w=="}}"#;
    let create = Request { opcode: RANGE_SCAN_CREATE, vbucket, value: EVERYTHING, ..EMPTY };
    create.send(stream)?;
    let (status, _, scan) = receive(stream)?;
    if status == KEY_ENOENT {
        return Ok(0);
    }
    ensure!(status == 0 && scan.len() == 16, "RANGE_SCAN_CREATE: status {status:#x}");
    // The scan, and no limit to items, time and bytes.
    let extras = [&scan[..], &[0; 12]].concat();
    Request { opcode: RANGE_SCAN_CONTINUE, vbucket, extras: &extras, ..EMPTY }.send(stream)?;
    let mut found = 0;
    loop {
        let (status, _, keys) = receive(stream)?;
        ensure!([0, RANGE_SCAN_COMPLETE].contains(&status), "RANGE_SCAN_CONTINUE: {status:#x}");
        found += count_keys(&keys)?;
        if status == RANGE_SCAN_COMPLETE {
            return Ok(found);
        }
    }
}

/// Keys in what a scan sends: each behind its length, which is one byte here.
fn count_keys(mut keys: &[u8]) -> Result<u64> {
    let mut count = 0;
    while let Some((size, rest)) = keys.split_first() {
        keys = rest.get(usize::from(*size)..).context("a scan sends half a key")?;
        count += 1;
    }
    Ok(count)
}

/// A request without data.
const EMPTY: Request<'_> = Request { opcode: 0, vbucket: 0, extras: &[], key: &[], value: &[] };

/// Of the plain form.
struct Request<'a> {
    opcode: u8,
    vbucket: u16,
    extras: &'a [u8],
    key: &'a [u8],
    value: &'a [u8],
}

impl Request<'_> {
    fn send(&self, stream: &mut impl Write) -> Result<()> {
        let body = [self.extras, self.key, self.value].concat();
        let mut frame = vec![0x80, self.opcode];
        frame.extend_from_slice(&u16::try_from(self.key.len())?.to_be_bytes());
        frame.extend_from_slice(&[u8::try_from(self.extras.len())?, 0]);
        frame.extend_from_slice(&self.vbucket.to_be_bytes());
        frame.extend_from_slice(&u32::try_from(body.len())?.to_be_bytes());
        frame.extend_from_slice(&[0; 12]);
        frame.extend_from_slice(&body);
        Ok(stream.write_all(&frame)?)
    }
}

fn ask(stream: &mut (impl Read + Write), opcode: u8, key: &[u8], value: &[u8]) -> Result<Answer> {
    Request { opcode, key, value, ..EMPTY }.send(stream)?;
    receive(stream)
}

fn receive(stream: &mut impl Read) -> Result<Answer> {
    let mut header = [0; 24];
    stream.read_exact(&mut header)?;
    let (framing, key_size) = match header[0] {
        0x81 => (0, usize::from(u16::from_be_bytes([header[2], header[3]]))),
        0x18 => (usize::from(header[2]), usize::from(header[3])),
        magic => bail!("a response cannot begin with {magic:#x}"),
    };
    let status = u16::from_be_bytes([header[6], header[7]]);
    let size = u32::from_be_bytes([header[8], header[9], header[10], header[11]]);
    let mut body = vec![0; size as usize];
    stream.read_exact(&mut body)?;
    let key_start = framing + usize::from(header[4]);
    let (key, value) = body
        .get(key_start..)
        .and_then(|rest| rest.split_at_checked(key_size))
        .context("a response's lengths contradict each other")?;
    Ok((status, key.to_owned(), value.to_owned()))
}
