//! A connection's socket, and what may be known of it without the loop's lock.

use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicU32, Ordering};

/// Shared by a stream and its slot; the socket is closed when neither needs it.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) socket: mio::net::TcpStream,
    /// Both are written under the lock of the loop's state, and bounded by what is received ahead
    /// or sent behind a write.
    unread_bytes: AtomicU32,
    unsent_bytes: AtomicU32,
}

impl Link {
    pub(super) fn new(socket: mio::net::TcpStream) -> Self {
        Self { socket, unread_bytes: AtomicU32::new(0), unsent_bytes: AtomicU32::new(0) }
    }

    pub(super) fn descriptor(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Bytes that were received and not read.
    pub(super) fn unread_bytes(&self) -> usize {
        self.unread_bytes.load(Ordering::Relaxed) as usize
    }

    /// Bytes that were written and that the system did not take at once.
    pub(super) fn unsent_bytes(&self) -> usize {
        self.unsent_bytes.load(Ordering::Relaxed) as usize
    }

    pub(super) fn set_unread(&self, bytes: usize) {
        self.unread_bytes.store(counted(bytes), Ordering::Relaxed);
    }

    pub(super) fn set_unsent(&self, bytes: usize) {
        self.unsent_bytes.store(counted(bytes), Ordering::Relaxed);
    }
}

/// As many as can be told; no connection has more than some MiB.
fn counted(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}
