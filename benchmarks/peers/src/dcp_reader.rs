//! A client that reads all vBuckets of a node from their beginning, as fast as it can, and only
//! counts; to their present end, or on and on.

use std::io::{BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use anyhow::{Result, ensure};

const OPEN: u8 = 0x50;
const STREAM_REQUEST: u8 = 0x53;
const STREAM_END: u8 = 0x55;
const MUTATION: u8 = 0x57;
const DELETION: u8 = 0x58;
const EXPIRATION: u8 = 0x59;
const SYSTEM_EVENT: u8 = 0x5f;
const SEQNO_ADVANCED: u8 = 0x64;
/// Messages whose extras begin with their seqno.
const SEQNO_FIRST: [u8; 5] = [MUTATION, DELETION, EXPIRATION, SYSTEM_EVENT, SEQNO_ADVANCED];
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
    let mut reader = Reader::open(stream)?;
    let mut asked = 0;
    let mut running = 0_u16;
    loop {
        // Some streams at a time, as consumers ask for them.
        while asked < vbuckets && running < 64 {
            reader.ask(asked, TO_LATEST)?;
            (asked, running) = (asked + 1, running + 1);
        }
        if running == 0 {
            return Ok(reader.received);
        }
        if reader.next()?.opcode == STREAM_END {
            running -= 1;
        }
    }
}

/// How far a reader is that goes on for ever, told to other threads.
pub struct Progress {
    items: AtomicU64,
    ended_streams: AtomicU64,
    /// By vBucket: the highest that was read.
    seqnos: Vec<AtomicU64>,
    is_over: AtomicBool,
}

impl Progress {
    /// Nothing of so many vBuckets.
    pub fn new(vbuckets: u16) -> Self {
        Self {
            items: AtomicU64::new(0),
            ended_streams: AtomicU64::new(0),
            seqnos: (0..vbuckets).map(|_| AtomicU64::new(0)).collect(),
            is_over: AtomicBool::new(false),
        }
    }

    /// Mutations, deletions and expirations that were read.
    pub fn items(&self) -> u64 {
        self.items.load(Relaxed)
    }

    /// Streams that the node has ended, which it has no reason to.
    pub fn ended_streams(&self) -> u64 {
        self.ended_streams.load(Relaxed)
    }

    /// The sum of the seqnos up to which vBuckets were read.
    pub fn seqnos(&self) -> u64 {
        self.seqnos.iter().map(|seqno| seqno.load(Relaxed)).sum()
    }

    /// From now on the end of the connection is no error.
    pub fn finish(&self) {
        self.is_over.store(true, Relaxed);
    }

    fn note(&self, message: &Message) {
        match message.opcode {
            MUTATION | DELETION | EXPIRATION => {
                self.items.fetch_add(1, Relaxed);
            }
            STREAM_END => {
                self.ended_streams.fetch_add(1, Relaxed);
            }
            _ => {}
        }
        let seqno = self.seqnos.get(usize::from(message.vbucket)).zip(message.seqno);
        if let Some((highest, seqno)) = seqno {
            highest.fetch_max(seqno, Relaxed);
        }
    }
}

/// Streams `vbuckets` vBuckets from the beginning and on, until the connection ends.
pub fn follow(stream: TcpStream, vbuckets: u16, progress: &Progress) -> Result<()> {
    let mut reader = Reader::open(stream)?;
    (0..vbuckets).try_for_each(|vbucket| reader.ask(vbucket, 0))?;
    loop {
        match reader.next() {
            Ok(message) => progress.note(&message),
            Err(_) if progress.is_over.load(Relaxed) => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

struct Reader {
    writer: TcpStream,
    reader: BufReader<TcpStream>,
    body: Vec<u8>,
    received: Received,
    unacknowledged: u32,
}

/// Of a message, what matters here.
struct Message {
    opcode: u8,
    vbucket: u16,
    /// Of those that have one.
    seqno: Option<u64>,
}

impl Reader {
    /// Agrees with the node on flow control.
    fn open(stream: TcpStream) -> Result<Self> {
        let mut writer = stream.try_clone()?;
        let mut open = 0_u32.to_be_bytes().to_vec();
        open.extend(PRODUCER.to_be_bytes());
        send(&mut writer, OPEN, 0, &open, b"benchmark", &[])?;
        // Collections, which the connection has agreed on, need it.
        send(&mut writer, CONTROL, 0, &[], b"enable_noop", b"true")?;
        let size = BUFFER_BYTES.to_string();
        send(&mut writer, CONTROL, 0, &[], b"connection_buffer_size", size.as_bytes())?;
        let reader = BufReader::with_capacity(1 << 20, stream);
        let received = Received::default();
        Ok(Self { writer, reader, body: Vec::new(), received, unacknowledged: 0 })
    }

    /// Asks for a vBucket from its beginning.
    fn ask(&mut self, vbucket: u16, flags: u32) -> Result<()> {
        let mut extras = flags.to_be_bytes().to_vec();
        extras.extend([0; 12]);
        extras.extend(u64::MAX.to_be_bytes());
        extras.extend([0; 24]);
        send(&mut self.writer, STREAM_REQUEST, vbucket, &extras, &[], &[])
    }

    /// The next message of a stream.
    fn next(&mut self) -> Result<Message> {
        loop {
            let mut header = [0; HEADER_SIZE];
            self.reader.read_exact(&mut header)?;
            let [magic, opcode] = [header[0], header[1]];
            let vbucket_or_status = u16::from_be_bytes([header[6], header[7]]);
            let size = u32::from_be_bytes([header[8], header[9], header[10], header[11]]);
            self.body.resize(size as usize, 0);
            self.reader.read_exact(&mut self.body)?;
            if magic == RESPONSE || magic == FRAMED_RESPONSE {
                let status = vbucket_or_status;
                ensure!(status == 0, "opcode {opcode:#x}: status {status:#x}");
                continue;
            }
            if opcode == NOOP {
                header[0] = RESPONSE;
                self.writer.write_all(&header)?;
                continue;
            }
            self.received.mutations += u64::from(opcode == MUTATION);
            self.acknowledge(HEADER_SIZE as u32 + size)?;
            let seqno = if SEQNO_FIRST.contains(&opcode) { self.body.first_chunk() } else { None };
            let seqno = seqno.copied().map(u64::from_be_bytes);
            return Ok(Message { opcode, vbucket: vbucket_or_status, seqno });
        }
    }

    /// Counts a message, and tells the node when it is a good part of the buffer.
    fn acknowledge(&mut self, bytes: u32) -> Result<()> {
        self.received.bytes += u64::from(bytes);
        self.unacknowledged += bytes;
        if self.unacknowledged > BUFFER_BYTES / 5 {
            let bytes = std::mem::take(&mut self.unacknowledged).to_be_bytes();
            send(&mut self.writer, BUFFER_ACK, 0, &bytes, &[], &[])?;
        }
        Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_the_highest_seqno_of_each_vbucket() {
        let progress = Progress::new(2);
        let read = |opcode, vbucket, seqno| progress.note(&Message { opcode, vbucket, seqno });
        read(MUTATION, 0, Some(5));
        read(DELETION, 1, Some(7));
        read(SEQNO_ADVANCED, 0, Some(9));
        read(EXPIRATION, 0, Some(6));
        read(STREAM_END, 1, None);
        read(MUTATION, 2, Some(100));
        assert_eq!((progress.items(), progress.seqnos()), (4, 16));
        assert_eq!(progress.ended_streams(), 1);
    }
}
