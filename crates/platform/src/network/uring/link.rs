//! A connection's socket, and what may be known of it without the loop's lock.

use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Shared by a stream and its slot; the socket is closed when neither needs it.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) socket: mio::net::TcpStream,
    /// Written under the lock of the loop's state.
    unread_bytes: AtomicUsize,
    unsent_bytes: AtomicUsize,
}

impl Link {
    pub(super) fn new(socket: mio::net::TcpStream) -> Self {
        Self { socket, unread_bytes: AtomicUsize::new(0), unsent_bytes: AtomicUsize::new(0) }
    }

    pub(super) fn descriptor(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Bytes that were received and not read.
    pub(super) fn unread_bytes(&self) -> usize {
        self.unread_bytes.load(Ordering::Relaxed)
    }

    /// Bytes that were written and that the system did not take at once.
    pub(super) fn unsent_bytes(&self) -> usize {
        self.unsent_bytes.load(Ordering::Relaxed)
    }

    pub(super) fn set_unread(&self, bytes: usize) {
        self.unread_bytes.store(bytes, Ordering::Relaxed);
    }

    pub(super) fn set_unsent(&self, bytes: usize) {
        self.unsent_bytes.store(bytes, Ordering::Relaxed);
    }
}
