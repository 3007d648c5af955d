//! How a connection to a producer begins: HELLO, login, bucket, OPEN, one request at a time.
//! Source: docs/specification/protocol.md, sections 20.2 and 20.15.

use auth::client::{Expected, ScramClient};
use auth::{HashAlgorithm, Mechanism};
use protocol::client::{Request, Response};
use protocol::dcp::{Envelope, Message, Open, OpenFlags};
use protocol::{Feature, FeatureSet, Opcode, Status};
use serde_json::Value;

use super::error::ConsumerError;
use super::names::ConsumerNames;
use super::negotiation::{Agreed, Negotiation};

/// What the consumer can read.
pub(super) const FEATURES: FeatureSet = FeatureSet::NONE
    .with(Feature::Xattr)
    .with(Feature::Xerror)
    .with(Feature::SelectBucket)
    .with(Feature::Snappy)
    .with(Feature::Json)
    .with(Feature::Collections);
const MECHANISM: Mechanism = Mechanism::Scram(HashAlgorithm::Sha512);
/// Where the beginning is.
enum Step {
    Hello,
    Login,
    LoginEnd(Expected),
    Select,
    Identify,
    Open,
}

/// The beginning of a connection.
pub(super) enum Opening {
    /// Up to OPEN.
    Login(Box<Login>),
    /// Behind it.
    Negotiation(Negotiation),
}

/// The beginning of a connection that this node makes, up to OPEN.
pub(super) struct Login {
    names: ConsumerNames,
    step: Step,
    scram: Option<ScramClient>,
    buffer_bytes: u32,
    features: FeatureSet,
}

impl Opening {
    /// Sends the first request on a connection that was just made.
    pub(super) fn begin(names: ConsumerNames, buffer_bytes: u32, out: &mut Vec<u8>) -> Self {
        Self::Login(Box::new(Login::begin(names, buffer_bytes, out)))
    }

    /// Goes on behind an answer. What was agreed on, once there is no more to do.
    pub(super) fn on_response(
        &mut self,
        response: &Response<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Option<Agreed>, ConsumerError> {
        let login = match self {
            Self::Negotiation(negotiation) => return negotiation.on_response(response, out),
            Self::Login(login) => login,
        };
        if login.on_response(response, out)? {
            let node = Some(login.names.node.as_str());
            let negotiation = Negotiation::begin(node, login.buffer_bytes, login.features, out);
            *self = Self::Negotiation(negotiation);
        }
        Ok(None)
    }
}

impl Login {
    fn begin(names: ConsumerNames, buffer_bytes: u32, out: &mut Vec<u8>) -> Self {
        let mut codes = Vec::new();
        FEATURES.encode(&mut codes);
        let key = names.connection.as_bytes();
        // A HELLO with a longer name is refused.
        let key = key.get(..protocol::hello::AGENT_SIZE_MAX).unwrap_or(key);
        Request { key, value: &codes, ..Request::new(Opcode::Hello) }.encode(out);
        let (user, password) = (&names.user, names.password.as_bytes());
        let scram = ScramClient::new(HashAlgorithm::Sha512, user, password, &names.entropy);
        let (step, features) = (Step::Hello, FeatureSet::NONE);
        Self { names, step, scram: Some(scram), buffer_bytes, features }
    }

    /// Goes on behind an answer. Whether the connection is open.
    fn on_response(
        &mut self,
        response: &Response<'_>,
        out: &mut Vec<u8>,
    ) -> Result<bool, ConsumerError> {
        let is_success = response.is_success();
        let refused = |what| ConsumerError::Refused { what, status: response.status_code };
        match &self.step {
            Step::Hello if is_success => {
                self.features = granted(response.value);
                let first = self.scram.as_ref().expect("nobody has logged in yet").first();
                self.step = say(Opcode::SaslAuth, MECHANISM.name(), &first, Step::Login, out);
            }
            Step::Login if response.status() == Some(Status::AuthContinue) => {
                let scram = self.scram.take().ok_or(ConsumerError::Login)?;
                let (answer, expected) =
                    scram.answer(response.value).map_err(|_| ConsumerError::Login)?;
                let next = Step::LoginEnd(expected);
                self.step = say(Opcode::SaslStep, MECHANISM.name(), &answer, next, out);
            }
            Step::LoginEnd(_) if is_success => {
                let Step::LoginEnd(expected) = std::mem::replace(&mut self.step, Step::Select)
                else {
                    return Err(ConsumerError::Login);
                };
                // The node proves that it knows the password, too, before anything is asked of it.
                expected.check(response.value).map_err(|_| ConsumerError::Login)?;
                self.step = say(Opcode::SelectBucket, &self.names.bucket, &[], Step::Select, out);
            }
            Step::Select if is_success && self.names.bucket_uuid.is_some() => {
                self.step = say(Opcode::GetClusterConfig, "", &[], Step::Identify, out);
            }
            Step::Select if is_success => self.open(out),
            Step::Identify if is_success => {
                if self.names.bucket_uuid != told_uuid(response.value) {
                    return Err(ConsumerError::AnotherBucket);
                }
                self.open(out);
            }
            Step::Open if is_success => return Ok(true),
            Step::Hello => return Err(refused("HELLO")),
            Step::Login | Step::LoginEnd(_) => return Err(refused("the login")),
            Step::Select => return Err(refused("the bucket")),
            Step::Identify => return Err(refused("its map")),
            Step::Open => return Err(refused("OPEN")),
        }
        Ok(false)
    }

    fn open(&mut self, out: &mut Vec<u8>) {
        let name = self.names.connection.as_bytes();
        let open = Open { flags: flags(), name, value: &[] };
        Message::Open(open).encode(Envelope::default(), out);
        self.step = Step::Open;
    }
}

/// The identity of the bucket that was selected, as the producer's map tells it.
fn told_uuid(map: &[u8]) -> Option<String> {
    let map: Value = serde_json::from_slice(map).ok()?;
    map.get("uuid")?.as_str().map(str::to_owned)
}

/// Sends a request, behind which comes `next`.
fn say(opcode: Opcode, key: &str, value: &[u8], next: Step, out: &mut Vec<u8>) -> Step {
    Request { key: key.as_bytes(), value, ..Request::new(opcode) }.encode(out);
    next
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
    // What was not asked for is not agreed on, whatever the node grants.
    codes.collect::<FeatureSet>().intersection(FEATURES)
}
