//! One session beside its socket.

use std::cell::RefCell;
use std::io::{self, ErrorKind, IoSlice, Read, Write};

use rustls::pki_types::CertificateDer;
use rustls::{CertificateError, Connection, Error};

/// Bytes that a session holds while nothing is under way: its keys, and the buffer that records are
/// received into.
pub const SESSION_BYTES: usize = 12 << 10;
/// Bytes that are encrypted and not taken by the socket before no more are accepted.
const UNSENT_BYTES_MAX: usize = 64 << 10;
/// Reads of the socket in one go: whoever sends empty records keeps nobody else waiting.
const RECEIVES_MAX: usize = 64;
/// The plaintext of a record, and what encryption adds to it. Source: RFC 8446, section 5.
const RECORD_BYTES_MAX: usize = 16 << 10;
const RECORD_OVERHEAD_BYTES: usize = 22;

/// Encrypted bytes that are taken from a socket at a time: a burst of several records.
const RECEIVED_BYTES_MAX: usize = 64 << 10;
/// As many where there is room for fewer.
const RECEIVED_BYTES_MIN: usize = 4 << 10;

thread_local! {
    /// What a socket had, until the session has it. By itself that reads 4 KiB at a time.
    static RECEIVED: RefCell<Box<[u8]>> = RefCell::new(vec![0; RECEIVED_BYTES_MAX].into());
}

/// A session over a socket that never blocks. What it has encrypted and could not send it keeps,
/// bounded, until [`TlsStream::flush`] or the next write.
#[derive(Debug)]
pub struct TlsStream<S> {
    session: Connection,
    socket: S,
    /// Encrypted bytes that the session holds, about.
    unsent_bytes: usize,
    /// The socket has ended.
    is_socket_at_end: bool,
}

/// What a read has brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Bytes of plaintext.
    pub bytes: usize,
    /// More may be there without another edge of the socket.
    pub has_more: bool,
    /// The peer says no more. Then nothing came with it.
    pub is_end: bool,
}

/// How far a handshake has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handshake {
    /// The other end has to say more; an edge of the socket tells when.
    Waits,
    /// It may go on at once, behind others.
    GoesOn,
    /// It is done.
    Done,
}

/// What the socket had.
enum Received {
    /// Something, and so many bytes of plaintext in it that are taken.
    Something(usize),
    Nothing,
    End,
}

impl<S: Read + Write> TlsStream<S> {
    pub(crate) fn new(mut session: Connection, socket: S) -> Self {
        session.set_buffer_limit(Some(UNSENT_BYTES_MAX));
        Self { session, socket, unsent_bytes: 0, is_socket_at_end: false }
    }

    /// The socket.
    pub fn socket(&self) -> &S {
        &self.socket
    }

    /// The same, to be watched.
    pub fn socket_mut(&mut self) -> &mut S {
        &mut self.socket
    }

    /// Whether the handshake is not done yet. Until then nothing is read and written.
    pub fn is_shaking_hands(&self) -> bool {
        self.session.is_handshaking()
    }

    /// What the other end has shown, its own certificate first; verified.
    pub fn peer_chain(&self) -> &[CertificateDer<'static>] {
        self.session.peer_certificates().unwrap_or_default()
    }

    /// Encrypted bytes that wait for the socket, about.
    pub fn unsent_bytes(&self) -> usize {
        if self.session.wants_write() { self.unsent_bytes.max(1) } else { 0 }
    }

    /// Goes on with the handshake.
    ///
    /// # Errors
    /// The other end has left, or speaks something else, or nothing that is accepted here: the
    /// session is over, and it has been told as far as its socket takes it.
    pub fn shake_hands(&mut self) -> io::Result<Handshake> {
        for _ in 0..RECEIVES_MAX {
            if !self.session.is_handshaking() {
                return Ok(Handshake::Done);
            }
            match self.receive(&mut [])? {
                Received::Something(_) => {}
                Received::Nothing => return Ok(Handshake::Waits),
                Received::End => return Err(ErrorKind::UnexpectedEof.into()),
            }
        }
        Ok(Handshake::GoesOn)
    }

    /// Reads until `target` is full or nothing more is there.
    ///
    /// # Errors
    /// The socket is broken, or bytes on it were changed on their way. What came before has been
    /// returned by then.
    pub fn read(&mut self, target: &mut [u8]) -> io::Result<Arrival> {
        let mut bytes = 0;
        let mut has_more = true;
        for _ in 0..RECEIVES_MAX {
            let rest = target.get_mut(bytes..).unwrap_or_default();
            let taken = self.take_plaintext(rest)?;
            bytes += taken.bytes;
            if bytes == target.len() {
                break;
            }
            if taken.is_end {
                return Ok(Arrival { bytes, has_more: bytes > 0, is_end: bytes == 0 });
            }
            // An end may be right behind.
            if taken.bytes > 0 {
                continue;
            }
            let rest = target.get_mut(bytes..).unwrap_or_default();
            match self.receive(rest) {
                Ok(Received::Something(taken)) => bytes += taken,
                Ok(Received::End) => {}
                Ok(Received::Nothing) => {
                    has_more = false;
                    break;
                }
                // It is met again.
                Err(_) if bytes > 0 => break,
                Err(error) => return Err(error),
            }
        }
        assert!(bytes <= target.len(), "a read fills no more than its place");
        Ok(Arrival { bytes, has_more, is_end: false })
    }

    /// Sends what waits, as far as the socket takes it now.
    ///
    /// # Errors
    /// The socket is broken.
    pub fn flush(&mut self) -> io::Result<()> {
        while self.session.wants_write() {
            match self.session.write_tls(&mut self.socket) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(sent) => self.unsent_bytes = self.unsent_bytes.saturating_sub(sent),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        self.unsent_bytes = 0;
        Ok(())
    }

    /// Tells the other end that nothing more comes, as far as its socket takes that now.
    pub fn say_goodbye(&mut self) {
        self.session.send_close_notify();
        // Whoever does not take it meets the end of the socket.
        self.flush().ok();
    }

    /// Decrypted bytes that are there. Clean ends and others are the same to the caller: its own
    /// frames say whether something is missing.
    fn take_plaintext(&mut self, target: &mut [u8]) -> io::Result<Arrival> {
        let arrival = |bytes, is_end| Arrival { bytes, has_more: false, is_end };
        match self.session.reader().read(target) {
            Ok(0) => Ok(arrival(0, !target.is_empty())),
            Ok(bytes) => Ok(arrival(bytes, false)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                Ok(arrival(0, self.is_socket_at_end))
            }
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(arrival(0, true)),
            Err(error) => Err(error),
        }
    }

    /// Reads the socket once, takes what plaintext comes of it, and answers what it asks for. A
    /// session that has failed says so each time. The caller has taken all plaintext before.
    fn receive(&mut self, target: &mut [u8]) -> io::Result<Received> {
        let received = RECEIVED.with_borrow_mut(|buffer| -> io::Result<Received> {
            let bytes_max = target.len().clamp(RECEIVED_BYTES_MIN, buffer.len());
            let buffer = buffer.get_mut(..bytes_max).unwrap_or_default();
            match read_once(&mut self.socket, buffer)? {
                None => Ok(Received::Nothing),
                Some(0) => {
                    self.is_socket_at_end = true;
                    self.session.read_tls(&mut io::empty())?;
                    Ok(Received::End)
                }
                Some(count) => {
                    let encrypted = buffer.get(..count).unwrap_or_default();
                    Ok(Received::Something(self.decrypt(encrypted, target)?))
                }
            }
        })?;
        let processed = self.session.process_new_packets();
        // What it answers is an alert where it is an error.
        let flushed = self.flush();
        match processed {
            // What came before is read first; what is wrong is met again.
            _ if matches!(received, Received::Something(1..)) => {}
            Err(error) => return Err(self.refused(error)),
            Ok(_) => flushed?,
        }
        Ok(received)
    }

    /// Hands the session what has come, a part after the other, and takes plaintext between them:
    /// it holds that of one record.
    fn decrypt(&mut self, mut encrypted: &[u8], target: &mut [u8]) -> io::Result<usize> {
        let mut bytes = 0;
        while !encrypted.is_empty() {
            // Behind the peer's last word nothing counts. What is wrong is met again.
            if self.session.read_tls(&mut encrypted)? == 0
                || self.session.process_new_packets().is_err()
            {
                break;
            }
            let rest = target.get_mut(bytes..).unwrap_or_default();
            if !rest.is_empty() {
                bytes += self.take_plaintext(rest)?.bytes;
            }
        }
        Ok(bytes)
    }

    /// What a certificate has to be is said to whoever began the session: they are of one house.
    fn refused(&self, error: Error) -> io::Error {
        let error = match (&self.session, error) {
            (Connection::Client(_), Error::InvalidCertificate(why)) => {
                return io::Error::new(ErrorKind::InvalidData, refused_node(&why));
            }
            (_, error) => error,
        };
        io::Error::new(ErrorKind::InvalidData, error)
    }
}

/// What a socket has; `None` if that is nothing yet.
fn read_once(socket: &mut impl Read, buffer: &mut [u8]) -> io::Result<Option<usize>> {
    loop {
        match socket.read(buffer) {
            Ok(count) => return Ok(Some(count)),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
            Err(error) => return Err(error),
        }
    }
}

/// Why another node's certificate is not believed, and what it would have to be.
pub(crate) fn refused_node(why: &CertificateError) -> String {
    format!(
        "the node's certificate is refused: {why}; it has to count now, be for the host that the \
         map says, and be signed by an authority that --tls-node-ca names"
    )
}

impl<S: Read + Write> Write for TlsStream<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    /// Encrypts as much as may wait, and sends what the socket takes. What is accepted is as good
    /// as sent.
    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        assert!(!self.session.is_handshaking(), "nothing is said before it is known to whom");
        self.flush()?;
        let accepted = self.session.writer().write_vectored(slices)?;
        // The session holds as much as it may: the socket has to take some of that first.
        if accepted == 0 && slices.iter().any(|slice| !slice.is_empty()) {
            return Err(ErrorKind::WouldBlock.into());
        }
        let records = accepted.div_ceil(RECORD_BYTES_MAX);
        self.unsent_bytes += accepted + records * RECORD_OVERHEAD_BYTES;
        self.flush()?;
        Ok(accepted)
    }

    fn flush(&mut self) -> io::Result<()> {
        Self::flush(self)
    }
}

#[cfg(test)]
pub(crate) mod tests;
