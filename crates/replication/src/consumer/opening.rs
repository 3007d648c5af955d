//! How a connection to a producer begins: HELLO, login, bucket, OPEN, and what is negotiated after
//! it, one request at a time. Source: docs/specification/protocol.md, sections 20.2 and 20.15.

use auth::client::{Expected, ScramClient};
use auth::{HashAlgorithm, Mechanism};
use protocol::client::{Request, Response};
use protocol::dcp::{Envelope, Message, Open, OpenFlags};
use protocol::{Feature, FeatureSet, Opcode, Status};

use super::error::ConsumerError;
use super::names::ConsumerNames;

/// What the consumer can read.
const FEATURES: FeatureSet = FeatureSet::NONE
    .with(Feature::Xattr)
    .with(Feature::Xerror)
    .with(Feature::SelectBucket)
    .with(Feature::Snappy)
    .with(Feature::Json)
    .with(Feature::Collections);
const MECHANISM: Mechanism = Mechanism::Scram(HashAlgorithm::Sha512);
/// Seconds between two signs of life of a producer that has nothing else to say.
const NOOP_INTERVAL: &str = "1";

/// What a refusal of a request to negotiate means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IfRefused {
    Disconnect,
    GoOn,
}

/// Where the beginning is.
enum Step {
    Hello,
    Login,
    LoginEnd(Expected),
    Select,
    Open,
    Control(usize),
}

/// The beginning of a connection.
pub(super) struct Opening {
    step: Step,
    scram: Option<ScramClient>,
    controls: Vec<(&'static str, String, IfRefused)>,
    features: FeatureSet,
}

impl Opening {
    /// Sends the first request.
    pub(super) fn begin(names: &ConsumerNames, buffer_bytes: u32, out: &mut Vec<u8>) -> Self {
        let mut codes = Vec::new();
        FEATURES.encode(&mut codes);
        let key = names.connection.as_bytes();
        let key = key.get(..protocol::hello::AGENT_SIZE_MAX).unwrap_or(key);
        Request { key, value: &codes, ..Request::new(Opcode::Hello) }.encode(out);
        let (user, password) = (&names.user, names.password.as_bytes());
        let scram = ScramClient::new(HashAlgorithm::Sha512, user, password, &names.entropy);
        Self {
            step: Step::Hello,
            scram: Some(scram),
            controls: controls(names, buffer_bytes),
            features: FeatureSet::NONE,
        }
    }

    /// Goes on behind an answer. The features that were agreed on, once there is no more to do.
    pub(super) fn on_response(
        &mut self,
        response: &Response<'_>,
        names: &ConsumerNames,
        out: &mut Vec<u8>,
    ) -> Result<Option<FeatureSet>, ConsumerError> {
        let is_success = response.is_success();
        let refused = |what| ConsumerError::Refused { what, status: response.status_code };
        match &self.step {
            Step::Hello if is_success => {
                self.features = granted(response.value);
                let first = self.scram.as_ref().expect("nobody has logged in yet").first();
                self.say(Opcode::SaslAuth, MECHANISM.name(), &first, Step::Login, out);
            }
            Step::Login if response.status() == Some(Status::AuthContinue) => {
                let scram = self.scram.take().ok_or(ConsumerError::Login)?;
                let (answer, expected) =
                    scram.answer(response.value).map_err(|_| ConsumerError::Login)?;
                let next = Step::LoginEnd(expected);
                self.say(Opcode::SaslStep, MECHANISM.name(), &answer, next, out);
            }
            Step::LoginEnd(_) if is_success => {
                let Step::LoginEnd(expected) = std::mem::replace(&mut self.step, Step::Select)
                else {
                    return Err(ConsumerError::Login);
                };
                expected.check(response.value).map_err(|_| ConsumerError::Login)?;
                self.say(Opcode::SelectBucket, &names.bucket, &[], Step::Select, out);
            }
            Step::Select if is_success => {
                let open = Open { flags: flags(), name: names.connection.as_bytes(), value: &[] };
                Message::Open(open).encode(Envelope::default(), out);
                self.step = Step::Open;
            }
            Step::Open if is_success => return Ok(self.control(0, out)),
            Step::Control(index) => {
                let index = *index;
                let (what, _, if_refused) = &self.controls[index];
                if !is_success && *if_refused == IfRefused::Disconnect {
                    return Err(refused(what));
                }
                return Ok(self.control(index + 1, out));
            }
            Step::Hello => return Err(refused("HELLO")),
            Step::Login | Step::LoginEnd(_) => return Err(refused("the login")),
            Step::Select => return Err(refused("the bucket")),
            Step::Open => return Err(refused("OPEN")),
        }
        Ok(None)
    }

    fn say(&mut self, opcode: Opcode, key: &str, value: &[u8], next: Step, out: &mut Vec<u8>) {
        Request { key: key.as_bytes(), value, ..Request::new(opcode) }.encode(out);
        self.step = next;
    }

    fn control(&mut self, index: usize, out: &mut Vec<u8>) -> Option<FeatureSet> {
        assert!(index <= self.controls.len(), "one control follows another");
        let Some((key, value, _)) = self.controls.get(index) else { return Some(self.features) };
        let control = Message::Control { key: key.as_bytes(), value: value.as_bytes() };
        control.encode(Envelope::default(), out);
        self.step = Step::Control(index);
        None
    }
}

/// What is negotiated, in this order.
fn controls(names: &ConsumerNames, buffer_bytes: u32) -> Vec<(&'static str, String, IfRefused)> {
    use IfRefused::{Disconnect, GoOn};
    let flag = || "true".to_owned();
    vec![
        ("enable_noop", flag(), Disconnect),
        ("set_noop_interval", NOOP_INTERVAL.to_owned(), Disconnect),
        ("set_priority", "high".to_owned(), Disconnect),
        ("supports_cursor_dropping_vulcan", flag(), Disconnect),
        ("supports_hifi_MFU", flag(), Disconnect),
        ("send_stream_end_on_client_close_stream", flag(), Disconnect),
        ("enable_expiry_opcode", flag(), Disconnect),
        ("enable_sync_writes", flag(), GoOn),
        ("consumer_name", names.node.clone(), GoOn),
        ("include_deleted_user_xattrs", flag(), GoOn),
        ("v7_dcp_status_codes", flag(), GoOn),
        ("max_marker_version", "2.2".to_owned(), GoOn),
        // Changes of collections have no other form.
        ("flatbuffers_system_events", flag(), GoOn),
        ("connection_buffer_size", buffer_bytes.to_string(), Disconnect),
    ]
}

/// What a replica needs of documents: all of them.
fn flags() -> OpenFlags {
    OpenFlags::PRODUCER
        .with(OpenFlags::XATTRS)
        .with(OpenFlags::DELETE_TIMES)
        .with(OpenFlags::DELETED_USER_XATTRS)
}

fn granted(value: &[u8]) -> FeatureSet {
    let (codes, _) = value.as_chunks::<2>();
    let codes = codes.iter().filter_map(|code| Feature::from_code(u16::from_be_bytes(*code)));
    codes.collect::<FeatureSet>().intersection(FEATURES)
}
