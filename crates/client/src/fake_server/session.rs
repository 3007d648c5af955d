//! One connection of the fake server.

use std::io::Write;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use auth::{Exchange, Outcome};
use document::Datatype;
use protocol::request::DocumentKey;
use protocol::response::encode_with_value;
use protocol::{Feature, FeatureSet, Frame, FrameInfos, Opcode, ResponseHead, Status, hello};

use super::{FakeDocument, State, lock};
use crate::receive_buffer::ReceiveBuffer;

/// Answers requests until the client hangs up or is hung up on.
pub(super) fn serve(mut stream: TcpStream, state: &Arc<State>) {
    let mut session = Session {
        state,
        features: FeatureSet::NONE,
        login: Exchange::default(),
        is_authenticated: state.users.is_none(),
        out: Vec::new(),
    };
    let mut received = ReceiveBuffer::new();
    loop {
        match received.fill_from(&mut stream) {
            Ok(filled) if filled.bytes > 0 => {}
            _ => return,
        }
        loop {
            match received.next_frame() {
                Ok(Some(frame)) if session.answer(&frame).is_some() => {}
                Ok(None) => break,
                _ => return,
            }
        }
        if stream.write_all(&session.out).is_err() {
            return;
        }
        session.out.clear();
    }
}

struct Session<'a> {
    state: &'a State,
    features: FeatureSet,
    login: Exchange,
    is_authenticated: bool,
    out: Vec<u8>,
}

/// What goes into a response.
#[derive(Default)]
struct Answer {
    extras: Vec<u8>,
    key: Vec<u8>,
    value: Vec<u8>,
    datatype: u8,
}

impl Session<'_> {
    /// Writes the answers to one request. `None`: hang up.
    fn answer(&mut self, frame: &Frame<'_>) -> Option<()> {
        let opcode = Opcode::from_byte(frame.header.opcode);
        let is_classic = self.state.options.is_classic;
        match opcode {
            Some(Opcode::Get | Opcode::Set) if !self.is_authenticated => {
                self.put(frame, Status::Eaccess, Answer::default());
            }
            Some(Opcode::Get | Opcode::Set) => self.document(frame)?,
            Some(Opcode::Stat) => self.statistics(frame),
            Some(Opcode::Noop) => self.put(frame, Status::Success, Answer::default()),
            Some(Opcode::Hello) if !is_classic => self.hello(frame),
            Some(Opcode::SaslAuth | Opcode::SaslStep) if !is_classic => self.log_in(frame),
            Some(Opcode::SaslListMechs) if !is_classic => {
                self.put_value(frame, Status::Success, auth::MECHANISMS.as_bytes().to_vec());
            }
            Some(Opcode::SelectBucket) if !is_classic => self.select_bucket(frame),
            Some(Opcode::GetClusterConfig) if !is_classic => match self.config() {
                Some(value) => self.put_value(frame, Status::Success, value),
                None => self.put(frame, Status::NoBucket, Answer::default()),
            },
            _ => self.put_value(frame, Status::UnknownCommand, b"Unknown command".to_vec()),
        }
        Some(())
    }

    fn hello(&mut self, frame: &Frame<'_>) {
        let Ok(agreement) = hello::negotiate(frame.value, Feature::ALL.iter().copied().collect())
        else {
            return self.put(frame, Status::Einval, Answer::default());
        };
        *lock(&self.state.requested) = agreement.granted;
        self.features = agreement.enabled;
        let mut value = Vec::new();
        agreement.granted.encode(&mut value);
        self.put_value(frame, Status::Success, value);
    }

    fn log_in(&mut self, frame: &Frame<'_>) {
        let Some(users) = &self.state.users else {
            return self.put(frame, Status::AuthError, Answer::default());
        };
        let mechanism = String::from_utf8_lossy(frame.key);
        let outcome = if frame.header.opcode == Opcode::SaslAuth.byte() {
            self.login.start(users, &mechanism, frame.value)
        } else {
            self.login.step(users, &mechanism, frame.value)
        };
        let (status, value) = match outcome {
            Outcome::Continue(challenge) => (Status::AuthContinue, challenge),
            Outcome::Check(attempt) => match attempt.run(users) {
                Some(_) => (Status::Success, vec![]),
                None => (Status::AuthError, vec![]),
            },
            Outcome::Done { server_final, .. } => (Status::Success, server_final),
            Outcome::Failed => (Status::AuthError, vec![]),
            Outcome::OutOfPlace(_) => (Status::Einval, vec![]),
        };
        self.is_authenticated |= status == Status::Success;
        self.put_value(frame, status, value);
    }

    fn select_bucket(&mut self, frame: &Frame<'_>) {
        let status = match frame.key {
            _ if !self.is_authenticated => Status::Eaccess,
            b"default" => Status::Success,
            _ => Status::KeyEnoent,
        };
        self.put(frame, status, Answer::default());
    }

    fn config(&self) -> Option<Vec<u8>> {
        lock(&self.state.config).as_ref().map(|config| config.json.clone().into_bytes())
    }

    fn statistics(&mut self, frame: &Frame<'_>) {
        let group = String::from_utf8_lossy(frame.key);
        let statistics = lock(&self.state.statistics).get(&*group).cloned();
        let Some(statistics) = statistics else {
            return self.put(frame, Status::KeyEnoent, Answer::default());
        };
        for (name, value) in statistics.into_iter().chain([Default::default()]) {
            let (key, value) = (name.into_bytes(), value.into_bytes());
            self.put(frame, Status::Success, Answer { key, value, ..Answer::default() });
        }
    }

    /// GET and SET. `None`: hang up.
    fn document(&mut self, frame: &Frame<'_>) -> Option<()> {
        let number = self.state.commands.fetch_add(1, Ordering::Relaxed);
        if number >= self.state.commands_max.load(Ordering::Relaxed) {
            return None;
        }
        let Ok(key) = DocumentKey::parse(frame.key, self.features) else {
            self.put(frame, Status::Einval, Answer::default());
            return Some(());
        };
        let vbucket = frame.header.vbucket_or_status;
        let failure = lock(&self.state.failures).pop_front();
        if let Some(status) = failure {
            self.put(frame, status, Answer::default());
        } else if !self.is_mine(vbucket) {
            let value = self.config().unwrap_or_default();
            self.put_value(frame, Status::NotMyVbucket, value);
        } else if frame.header.opcode == Opcode::Get.byte() {
            let found = lock(&self.state.documents).get(key.as_key().name()).cloned();
            match found {
                None => self.put(frame, Status::KeyEnoent, Answer::default()),
                Some(FakeDocument { value, extras, datatype, .. }) => {
                    let extras = extras.get(..4).unwrap_or_default().to_vec();
                    let answer = Answer { extras, value, datatype, key: Vec::new() };
                    self.put(frame, Status::Success, answer);
                }
            }
        } else {
            let infos = FrameInfos::parse(Opcode::Set, frame.framing_extras);
            let document = FakeDocument {
                value: frame.value.to_vec(),
                extras: frame.extras.to_vec(),
                datatype: frame.header.datatype,
                vbucket,
                is_durable: infos.is_ok_and(|infos| infos.durability.is_some()),
            };
            lock(&self.state.documents).insert(key.as_key().name().to_vec(), document);
            self.put(frame, Status::Success, Answer::default());
        }
        Some(())
    }

    fn is_mine(&self, vbucket: u16) -> bool {
        match &*lock(&self.state.config) {
            None => vbucket == 0,
            Some(config) => config.is_mine.get(usize::from(vbucket)).copied().unwrap_or(false),
        }
    }

    fn put_value(&mut self, frame: &Frame<'_>, status: Status, value: Vec<u8>) {
        self.put(frame, status, Answer { value, ..Answer::default() });
    }

    fn put(&mut self, frame: &Frame<'_>, status: Status, answer: Answer) {
        let head = ResponseHead {
            opcode: frame.header.opcode,
            status,
            datatype: Datatype::from_bits(answer.datatype).unwrap_or_default(),
            opaque: frame.header.opaque,
            cas: u64::from(status == Status::Success),
            server_duration: None,
            extras: &answer.extras,
            key: &answer.key,
            value_size: answer.value.len(),
        };
        encode_with_value(&mut self.out, &head, &answer.value);
    }
}
