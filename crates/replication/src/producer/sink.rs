//! Where a producer writes.

use document::Item;

/// Where messages go. The owner of the connection has it.
pub trait MessageSink {
    /// Bytes that are sent in order.
    fn buffer(&mut self) -> &mut Vec<u8>;

    /// Sends the value of an item behind what is in the buffer now.
    fn push_value(&mut self, item: Item);

    /// Whether there is no room for another message.
    fn is_full(&self) -> bool;
}
