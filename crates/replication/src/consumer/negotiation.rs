//! What is agreed on behind OPEN, one request at a time. Source: docs/specification/protocol.md,
//! section 20.15.

use protocol::FeatureSet;
use protocol::client::Response;
use protocol::dcp::{Envelope, Message};

use super::error::ConsumerError;

/// Seconds between two signs of life of a producer that has nothing else to say.
const NOOP_INTERVAL: &str = "1";

/// What a refusal of a request to negotiate means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IfRefused {
    Disconnect,
    GoOn,
}

/// What a connection may do once it is open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Agreed {
    /// What HELLO has agreed on.
    pub(super) features: FeatureSet,
    /// Answers about streams have statuses of their own.
    pub(super) has_v7_statuses: bool,
}

/// The requests that follow OPEN, and how far they are.
pub(super) struct Negotiation {
    controls: Vec<Control>,
    index: usize,
    agreed: Agreed,
}

struct Control {
    key: &'static str,
    value: String,
    if_refused: IfRefused,
}

impl Negotiation {
    /// Sends the first request. `node` is the name under which prepares are acknowledged, if they
    /// are.
    pub(super) fn begin(
        node: Option<&str>,
        buffer_bytes: u32,
        features: FeatureSet,
        out: &mut Vec<u8>,
    ) -> Self {
        let agreed = Agreed { features, has_v7_statuses: false };
        let negotiation = Self { controls: controls(node, buffer_bytes), index: 0, agreed };
        negotiation.ask(out);
        negotiation
    }

    /// Goes on behind an answer. What was agreed on, once there is no more to do.
    pub(super) fn on_response(
        &mut self,
        response: &Response<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Option<Agreed>, ConsumerError> {
        let Some(control) = self.controls.get(self.index) else { return Ok(Some(self.agreed)) };
        let is_success = response.is_success();
        if !is_success && control.if_refused == IfRefused::Disconnect {
            let (what, status) = (control.key, response.status_code);
            return Err(ConsumerError::Refused { what, status });
        }
        if control.key == "v7_dcp_status_codes" {
            self.agreed.has_v7_statuses = is_success;
        }
        self.index += 1;
        self.ask(out);
        Ok((self.index == self.controls.len()).then_some(self.agreed))
    }

    /// Has prepares acknowledged under this name, which came late. Whether that is still possible.
    pub(super) fn name_node(&mut self, node: &str) -> bool {
        if self.controls.iter().any(|control| control.key == "consumer_name") {
            return false;
        }
        // The request before that place is under way, and the next answer is taken for its own.
        let next = (self.index + 1).min(self.controls.len());
        self.controls.splice(next..next, sync_writes(node));
        true
    }

    fn ask(&self, out: &mut Vec<u8>) {
        assert!(self.index <= self.controls.len(), "one control follows another");
        let Some(control) = self.controls.get(self.index) else { return };
        let (key, value) = (control.key.as_bytes(), control.value.as_bytes());
        Message::Control { key, value }.encode(Envelope::default(), out);
    }
}

/// What is negotiated, in this order.
fn controls(node: Option<&str>, buffer_bytes: u32) -> Vec<Control> {
    use IfRefused::{Disconnect, GoOn};
    let flag = |key, if_refused| Control { key, value: "true".to_owned(), if_refused };
    let set = |key, value: String, if_refused| Control { key, value, if_refused };
    let mut controls = vec![
        flag("enable_noop", Disconnect),
        set("set_noop_interval", NOOP_INTERVAL.to_owned(), Disconnect),
        set("set_priority", "high".to_owned(), Disconnect),
        flag("supports_cursor_dropping_vulcan", Disconnect),
        flag("supports_hifi_MFU", Disconnect),
        flag("send_stream_end_on_client_close_stream", Disconnect),
        flag("enable_expiry_opcode", Disconnect),
    ];
    controls.extend(node.into_iter().flat_map(sync_writes));
    controls.extend([
        flag("include_deleted_user_xattrs", GoOn),
        flag("v7_dcp_status_codes", GoOn),
        set("max_marker_version", "2.2".to_owned(), GoOn),
        // Changes of collections have no other form.
        flag("flatbuffers_system_events", GoOn),
        set("connection_buffer_size", buffer_bytes.to_string(), Disconnect),
    ]);
    controls
}

/// Prepares are sent, and acknowledged under this name.
fn sync_writes(node: &str) -> [Control; 2] {
    let if_refused = IfRefused::GoOn;
    [
        Control { key: "enable_sync_writes", value: "true".to_owned(), if_refused },
        Control { key: "consumer_name", value: node.to_owned(), if_refused },
    ]
}
