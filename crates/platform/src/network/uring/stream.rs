//! A stream that a loop with a ring looks after.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::sync::Arc;

use super::link::Link;
use super::operation::Place;
use super::state::Shared;
use crate::network::readiness::Token;

/// One connection of a loop. Dropping it closes the connection, after a try to send what was taken.
#[derive(Debug)]
pub struct Stream {
    shared: Shared,
    link: Arc<Link>,
    place: Place,
}

impl Stream {
    /// From now on the loop behind `shared` looks after the socket.
    pub(in crate::network) fn adopt(
        socket: mio::net::TcpStream,
        shared: &Shared,
        token: Token,
    ) -> Self {
        let link = Arc::new(Link::new(socket));
        let place = shared.lock().adopt(Arc::clone(&link), token);
        Self { shared: shared.clone(), link, place }
    }

    pub(in crate::network) fn socket(&self) -> &mio::net::TcpStream {
        &self.link.socket
    }

    pub(in crate::network) fn peer_address(&self) -> io::Result<SocketAddr> {
        self.link.socket.peer_addr()
    }

    #[inline]
    pub(in crate::network) fn read(&self, target: &mut [u8]) -> io::Result<usize> {
        self.shared.lock().read(self.place, target)
    }

    #[inline]
    pub(in crate::network) fn write(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.shared.lock().write(self.place, slices)
    }

    #[inline]
    pub(in crate::network) fn unread_bytes(&self) -> usize {
        self.link.unread_bytes()
    }

    #[inline]
    pub(in crate::network) fn unsent_bytes(&self) -> usize {
        self.link.unsent_bytes()
    }

    pub(in crate::network) fn has_sent(&self) -> bool {
        self.shared.lock().has_sent(self.place)
    }

    pub(in crate::network) fn allow_ahead(&self, is_allowed: bool) {
        self.shared.lock().allow_ahead(self.place, is_allowed);
    }

    pub(in crate::network) fn forget(&self) {
        self.shared.lock().forget(self.place);
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.shared.lock().close(self.place);
    }
}
