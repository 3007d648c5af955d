//! A client that reads all vBuckets of a node from their beginning, as fast as it can, and only
//! counts.

use std::io::{BufReader, Read, Write};
use std::net::TcpStream;

use anyhow::{Result, ensure};

const OPEN: u8 = 0x50;
const STREAM_REQUEST: u8 = 0x53;
const STREAM_END: u8 = 0x55;
const MUTATION: u8 = 0x57;
const BUFFER_ACK: u8 = 0x5d;
const CONTROL: u8 = 0x5e;
const NOOP: u8 = 0x5c;
const RESPONSE: u8 = 0x81;
/// A response with framing extras. Its status stands where that of others does.
const FRAMED_RESPONSE: u8 = 0x18;
const PRODUCER: u32 = 1;
/// End at the seqno that is the highest now.
const TO_LATEST: u32 = 4;
const BUFFER_BYTES: u32 = 20 << 20;
const HEADER_SIZE: usize = 24;

/// What was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// Mutations.
    pub mutations: u64,
    /// Bytes of all messages.
    pub bytes: u64,
}

/// Streams `vbuckets` vBuckets from the beginning to what is their end now, on a connection that
/// has selected its bucket.
pub fn read_all(stream: TcpStream, vbuckets: u16) -> Result<Received> {
    let mut writer = stream.try_clone()?;
    let mut open = 0_u32.to_be_bytes().to_vec();
    open.extend(PRODUCER.to_be_bytes());
    send(&mut writer, OPEN, 0, &open, b"benchmark", &[])?;
    // Collections, which the connection has agreed on, need it.
    send(&mut writer, CONTROL, 0, &[], b"enable_noop", b"true")?;
    let size = BUFFER_BYTES.to_string();
    send(&mut writer, CONTROL, 0, &[], b"connection_buffer_size", size.as_bytes())?;
    let mut reader = BufReader::with_capacity(1 << 20, stream);
    let mut received = Received::default();
    let mut unacknowledged = 0_u32;
    let mut body = Vec::new();
    let mut asked = 0;
    let mut running = 0_u16;
    loop {
        // Some streams at a time, as consumers ask for them.
        while asked < vbuckets && running < 64 {
            let mut extras = TO_LATEST.to_be_bytes().to_vec();
            extras.extend([0; 12]);
            extras.extend(u64::MAX.to_be_bytes());
            extras.extend([0; 24]);
            send(&mut writer, STREAM_REQUEST, asked, &extras, &[], &[])?;
            (asked, running) = (asked + 1, running + 1);
        }
        if running == 0 {
            return Ok(received);
        }
        let mut header = [0; HEADER_SIZE];
        reader.read_exact(&mut header)?;
        let [magic, opcode] = [header[0], header[1]];
        let size = u32::from_be_bytes([header[8], header[9], header[10], header[11]]);
        body.resize(size as usize, 0);
        reader.read_exact(&mut body)?;
        if magic == RESPONSE || magic == FRAMED_RESPONSE {
            let status = u16::from_be_bytes([header[6], header[7]]);
            ensure!(status == 0, "opcode {opcode:#x}: status {status:#x}");
            continue;
        }
        match opcode {
            MUTATION => received.mutations += 1,
            STREAM_END => running -= 1,
            NOOP => {
                header[0] = RESPONSE;
                writer.write_all(&header)?;
                continue;
            }
            _ => {}
        }
        let bytes = HEADER_SIZE as u32 + size;
        received.bytes += u64::from(bytes);
        unacknowledged += bytes;
        if unacknowledged > BUFFER_BYTES / 5 {
            send(&mut writer, BUFFER_ACK, 0, &unacknowledged.to_be_bytes(), &[], &[])?;
            unacknowledged = 0;
        }
    }
}

fn send(
    stream: &mut TcpStream,
    opcode: u8,
    vbucket: u16,
    extras: &[u8],
    key: &[u8],
    value: &[u8],
) -> Result<()> {
    let mut frame = vec![0x80, opcode];
    frame.extend(u16::try_from(key.len())?.to_be_bytes());
    frame.extend([u8::try_from(extras.len())?, 0]);
    frame.extend(vbucket.to_be_bytes());
    frame.extend(u32::try_from(extras.len() + key.len() + value.len())?.to_be_bytes());
    frame.extend([0; 12]);
    frame.extend([extras, key, value].concat());
    Ok(stream.write_all(&frame)?)
}
