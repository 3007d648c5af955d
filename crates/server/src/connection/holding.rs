//! What a connection holds beside its socket, and what it refuses to hold.

use protocol::{Feature, Header, Status};

use super::state::Connection;
use super::turn::Turn;
use crate::client_memory::Holder;
use crate::completed::Completed;
use crate::connection::ParkedRequest;
use crate::statistics::count;

/// Requests of more bytes need room in the node's budget before more of them is received.
pub(super) const LARGE_REQUEST_BYTES_MIN: usize = 64 << 10;
/// The rest of a request of which at least so much is held may not be waited for for ever.
const BEGUN_REQUEST_BYTES_MIN: usize = 4 << 10;

impl Connection {
    /// Bytes that it holds of what its client sent, and of answers that wait for it.
    pub(crate) fn held_bytes(&self) -> usize {
        let receiving = self.receiving.as_ref().map_or(0, |receiving| receiving.held_bytes());
        let exchange = self.exchange.as_ref().map_or(0, |exchange| exchange.held_bytes());
        self.input.capacity() + receiving + self.parked_bytes + self.completed_bytes() + exchange
    }

    /// Bytes of what has come for its requests and waits for its reader.
    fn completed_bytes(&self) -> usize {
        self.completed.iter().map(|(_, completed)| completed.held_bytes()).sum()
    }

    /// Whether it has begun a request that takes memory, and nothing but the rest of it is missing.
    pub(crate) fn awaits_rest(&self) -> bool {
        // Room for a whole frame is taken when its header is there. An idle one has no memory.
        let is_begun = self.receiving.is_some() || self.input.capacity() >= BEGUN_REQUEST_BYTES_MIN;
        // What waits for an earlier one may be whole.
        is_begun && self.parked_count == 0 && self.completed.is_empty()
    }

    /// As whom it holds them.
    pub(crate) fn holder(&self) -> Holder {
        match (self.is_authenticated(), self.is_anonymous && !self.has_logged_in) {
            (true, false) => Holder::Client,
            (true, true) => Holder::Guest,
            (false, _) => Holder::Stranger,
        }
    }

    /// Takes the bytes off that belong to a refused request.
    pub(super) fn skip<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let count = self.skipped_bytes_left.min(bytes.len());
        self.skipped_bytes_left -= count;
        &bytes[count..]
    }

    /// Whether the request that begins `bytes`, and nothing else is in them, is refused because the
    /// node holds too much for its clients already. What is still to come of it is then skipped.
    pub(super) fn refuses(&mut self, bytes: &[u8], turn: &mut Turn<'_>) -> bool {
        let size_max = self.frame_size_max(turn.shared.frame_limits());
        let Ok(Some(header)) = Header::parse(bytes, size_max) else { return false };
        let size = header.frame_size();
        // Answers keep their order: one that may not overtake others is not refused before them.
        let must_wait =
            self.parked_count > 0 && !self.features.contains(Feature::UnorderedExecution);
        // What a producer sends is bounded by what it may send ahead, and must not be passed over.
        let is_relayed = self.relay.is_some();
        if self.is_admitted || size < LARGE_REQUEST_BYTES_MIN || must_wait || is_relayed {
            return false;
        }
        if turn.shared.client_memory.has_room_for(self.holder(), size) {
            self.is_admitted = true;
            return false;
        }
        count(&turn.counters.refused_large_requests);
        assert_eq!(self.skipped_bytes_left, 0, "what is skipped ends before a request begins");
        assert!(bytes.len() < size, "a request that has come whole is executed");
        self.skipped_bytes_left = size - bytes.len();
        let context = "the node holds too much for its clients; try again";
        self.reply(header.opcode, header.opaque).fail(turn, Status::Etmpfail, context);
        true
    }

    /// Whether room for a whole request of `size` bytes may be taken before it is there.
    pub(super) fn may_reserve(&self, size: usize) -> bool {
        self.is_admitted || size < LARGE_REQUEST_BYTES_MIN
    }

    /// What a parked request waited for has come. It is answered when the client takes answers.
    pub(crate) fn on_completion(
        &mut self,
        parked: ParkedRequest,
        completion: Completed,
        turn: &mut Turn<'_>,
    ) {
        // What waits behind it may be carried out, which was let in by rights that may be gone.
        self.renew_rights(turn);
        if turn.is_output_full() {
            let has_room = self.completed_bytes() < turn.unsent_bytes_max;
            let kept = if has_room { completion } else { completion.without_document() };
            self.completed.push_back((parked, kept));
        } else {
            self.finish_parked(&parked, completion, turn);
        }
    }

    /// Goes on with what waited for the reader: completed requests, then what was received.
    pub(crate) fn on_room(&mut self, turn: &mut Turn<'_>) {
        while !turn.is_output_full() {
            let Some((parked, completion)) = self.completed.pop_front() else { break };
            self.finish_parked(&parked, completion, turn);
        }
        let parked_max = turn.shared.options.limits.parked_requests_max;
        if self.has_input() && !self.is_waiting(parked_max) {
            turn.read_clocks();
            self.on_kept(turn);
        }
    }
}
