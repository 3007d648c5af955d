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
const AUTH_CONTINUE: u16 = 0x21;
const MECHANISM: &[u8] = b"SCRAM-SHA512";

/// Features of a present SDK that shape data operations: TCP_NODELAY, mutation tokens, xattrs,
/// extended errors, select bucket, JSON, tracing, alternative frames, durable writes, collections.
const FEATURES: [u16; 10] = [0x03, 0x04, 0x06, 0x07, 0x08, 0x0b, 0x0f, 0x10, 0x11, 0x12];

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
pub fn bootstrap(stream: &mut TcpStream, login: &Login) -> Result<()> {
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

fn log_in(stream: &mut TcpStream, login: &Login) -> Result<()> {
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
    send(stream, STAT, group.as_bytes(), &[])?;
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

fn ask(stream: &mut TcpStream, opcode: u8, key: &[u8], value: &[u8]) -> Result<Answer> {
    send(stream, opcode, key, value)?;
    receive(stream)
}

fn send(stream: &mut TcpStream, opcode: u8, key: &[u8], value: &[u8]) -> Result<()> {
    let mut frame = vec![0x80, opcode];
    frame.extend_from_slice(&u16::try_from(key.len())?.to_be_bytes());
    frame.extend_from_slice(&[0; 4]);
    frame.extend_from_slice(&u32::try_from(key.len() + value.len())?.to_be_bytes());
    frame.extend_from_slice(&[0; 12]);
    frame.extend_from_slice(key);
    frame.extend_from_slice(value);
    Ok(stream.write_all(&frame)?)
}

fn receive(stream: &mut TcpStream) -> Result<Answer> {
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
