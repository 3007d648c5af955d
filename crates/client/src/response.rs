//! A response that outlives the receive buffer.

use protocol::Status;
use protocol::client::Response;

/// A response with its own memory. The sections are those of [`Response`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedResponse {
    opcode: u8,
    status_code: u16,
    datatype: u8,
    opaque: u32,
    cas: u64,
    server_duration: Option<u16>,
    extras: Vec<u8>,
    key: Vec<u8>,
    value: Vec<u8>,
}

impl OwnedResponse {
    pub(crate) fn new(response: &Response<'_>) -> Self {
        Self {
            opcode: response.opcode,
            status_code: response.status_code,
            datatype: response.datatype,
            opaque: response.opaque,
            cas: response.cas,
            server_duration: response.server_duration,
            extras: response.extras.to_vec(),
            key: response.key.to_vec(),
            value: response.value.to_vec(),
        }
    }

    /// The response, to read fields from.
    pub fn view(&self) -> Response<'_> {
        Response {
            opcode: self.opcode,
            status_code: self.status_code,
            datatype: self.datatype,
            opaque: self.opaque,
            cas: self.cas,
            server_duration: self.server_duration,
            extras: &self.extras,
            key: &self.key,
            value: &self.value,
        }
    }

    /// The outcome on the wire.
    pub fn status_code(&self) -> u16 {
        self.status_code
    }

    /// The outcome, unless it is newer than this version.
    pub fn status(&self) -> Option<Status> {
        Status::from_code(self.status_code)
    }

    /// Whether the request succeeded.
    pub fn is_success(&self) -> bool {
        self.view().is_success()
    }

    /// What the response repeats of its request.
    pub fn opaque(&self) -> u32 {
        self.opaque
    }

    /// The document's version.
    pub fn cas(&self) -> u64 {
        self.cas
    }

    /// The key, of the few commands that return one.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// What the command returns beside key and value, as its own layout has it.
    pub fn extras(&self) -> &[u8] {
        &self.extras
    }

    /// The value.
    pub fn value(&self) -> &[u8] {
        &self.value
    }
}
