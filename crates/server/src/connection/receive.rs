//! Large values: read from the socket into the item that will hold them.

use document::limits::VALUE_SIZE_MAX;
use document::{ItemBuilder, ItemMeta, expiry};
use protocol::request::{DocumentKey, StoreExtras};
use protocol::{Class, Frame, FrameInfos, Opcode, Parsed, validate};

use super::state::Connection;
use super::turn::Turn;
use crate::commands::documents::limited_expiry;

/// Values of this many bytes and more go straight to their place.
pub(super) const RECEIVED_IN_PLACE_BYTES_MIN: usize = 32 << 10;

/// A store whose value is still arriving.
pub(crate) struct Receiving {
    /// Header, framing extras, extras and key of the request; the line of one that has one.
    pub(super) head: Vec<u8>,
    pub(super) builder: ItemBuilder,
    /// Bytes of the value that have arrived.
    pub(super) filled: usize,
}

impl Receiving {
    /// A store whose value begins with what has arrived.
    pub(super) fn begin(head: Vec<u8>, mut builder: ItemBuilder, arrived: &[u8]) -> Self {
        let size = builder.value().len();
        assert!(arrived.len() <= size, "what has arrived belongs to this value alone");
        builder.value_mut()[..arrived.len()].copy_from_slice(arrived);
        Self { head, builder, filled: arrived.len() }
    }

    /// Whether the whole value has arrived.
    pub(super) fn is_full(&self) -> bool {
        self.filled == self.builder.value().len()
    }

    /// Bytes that it holds.
    pub(super) fn held_bytes(&self) -> usize {
        self.head.capacity() + self.builder.value().len()
    }
}

impl Connection {
    /// Where the next bytes of a large value go, while one is arriving.
    pub(crate) fn receive_target(&mut self) -> Option<&mut [u8]> {
        let receiving = self.receiving.as_mut().filter(|receiving| !receiving.is_full())?;
        receiving.builder.value_mut().get_mut(receiving.filled..)
    }

    /// `count` bytes have arrived at [`Connection::receive_target`]. Executes the store when it is
    /// complete.
    pub(crate) fn received(&mut self, count: usize, turn: &mut Turn<'_>) {
        let mut receiving = self.receiving.take().expect("bytes arrive at a place that there is");
        receiving.filled += count;
        let size = receiving.builder.value().len();
        assert!(receiving.filled <= size, "a read fills no more than its place");
        // A line's value has an end behind it.
        if !receiving.is_full() || self.dialect.is_text() {
            self.receiving = Some(receiving);
            return;
        }
        self.execute_received(*receiving, turn);
    }

    /// Begins to receive the frame at the start of `bytes` in place, if it is one that can be.
    /// `bytes` hold a part of it and nothing else.
    pub(super) fn begin_receiving(&mut self, bytes: &[u8], turn: &Turn<'_>) -> bool {
        let size_max = self.frame_size_max(turn.shared.frame_limits());
        let parsed = Frame::parse_without_value(bytes, size_max);
        let Parsed::Complete { frame, consumed } = parsed else { return false };
        let Some(builder) = self.builder_for(&frame, turn) else { return false };
        assert!(self.receiving.is_none(), "a connection receives one value at a time");
        let (head, arrived) = bytes.split_at(consumed);
        self.receiving = Some(Box::new(Receiving::begin(head.to_vec(), builder, arrived)));
        true
    }

    /// The item that a large store will fill. Anything unusual takes the ordinary way, where it
    /// gets its proper answer.
    fn builder_for(&self, frame: &Frame<'_>, turn: &Turn<'_>) -> Option<ItemBuilder> {
        let opcode = Opcode::from_byte(frame.header.opcode)?;
        let is_store = matches!(opcode.loud(), Opcode::Set | Opcode::Add | Opcode::Replace);
        let value_size = frame.header.value_size();
        let is_usual = is_store
            && self.parked_count == 0
            && opcode.info().class != Class::Retired
            && frame.header.magic.is_client_request()
            && (RECEIVED_IN_PLACE_BYTES_MIN..=VALUE_SIZE_MAX).contains(&value_size)
            && !is_compressed(frame)
            && self.bucket.is_some()
            && self.is_authenticated();
        if !is_usual || validate::request(opcode, frame, self.features).is_err() {
            return None;
        }
        let infos = FrameInfos::parse(opcode, frame.framing_extras).ok()?;
        let key = DocumentKey::parse(frame.key, self.features).ok()?;
        let extras = StoreExtras::parse(frame.extras)?;
        let bucket = &self.bucket.as_ref()?.bucket;
        let seconds = turn.now.wall.seconds();
        let expiry = expiry::absolute(extras.expiry, seconds)?;
        let expiry = limited_expiry(bucket, key.as_key().collection(), expiry, seconds);
        let meta = ItemMeta { flags: extras.flags, expiry, ..ItemMeta::default() };
        let level = infos.durability.map(|durability| durability.level);
        let operation = bucket.operation_of(level);
        Some(ItemBuilder::with_room(key.as_key(), meta, operation, value_size))
    }
}

fn is_compressed(frame: &Frame<'_>) -> bool {
    frame.header.datatype & document::Datatype::SNAPPY.bits() != 0
}
