//! Doors.

use crate::client_memory::Holder;

/// Through which door a connection came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entrance {
    /// The data port: everybody says who they are.
    Data,
    /// The same behind TLS, where a certificate may say it.
    Tls,
    /// The memcached port, for clients that cannot: they are let in, to the bucket.
    Memcached,
}

impl Entrance {
    /// As whom those hold something who come through it, once they are let in.
    pub(crate) fn holder(self) -> Holder {
        match self {
            Self::Data | Self::Tls => Holder::Client,
            Self::Memcached => Holder::Guest,
        }
    }
}
