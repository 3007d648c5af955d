//! Sessions over a socket that gives and takes as little as the test says.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use platform::{Clock, WallTime};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, HandshakeKind, RootCertStore};

use super::*;
use crate::acceptor::{Acceptor, Claim, Material};
use crate::client_auth::{ClientAuthState, ClientCertificates, NamePath, NameRule};
use crate::self_signed::{Authority, hosts_of};

const NOW: WallTime = WallTime(1_700_000_000_000_000_000);
const BUDGET: usize = 1 << 20;

/// One direction of a connection.
#[derive(Default)]
struct Way {
    bytes: VecDeque<u8>,
    /// Bytes that may be on it.
    room: usize,
    is_closed: bool,
}

/// One end of a connection. Gives and takes at most `step` bytes a call.
pub(crate) struct End {
    incoming: Rc<RefCell<Way>>,
    outgoing: Rc<RefCell<Way>>,
    step: usize,
}

pub(crate) fn connection(step: usize, room: usize) -> (End, End) {
    let way = || Rc::new(RefCell::new(Way { room, ..Way::default() }));
    let (to, from) = (way(), way());
    let theirs = End { incoming: Rc::clone(&from), outgoing: Rc::clone(&to), step };
    (End { incoming: to, outgoing: from, step }, theirs)
}

impl Read for End {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        let mut way = self.incoming.borrow_mut();
        let count = target.len().min(self.step).min(way.bytes.len());
        if count == 0 && !way.is_closed {
            return Err(ErrorKind::WouldBlock.into());
        }
        for (place, byte) in target.iter_mut().zip(way.bytes.drain(..count)) {
            *place = byte;
        }
        Ok(count)
    }
}

impl Write for End {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut way = self.outgoing.borrow_mut();
        let count = bytes.len().min(self.step).min(way.room - way.bytes.len());
        if count == 0 {
            return Err(ErrorKind::WouldBlock.into());
        }
        way.bytes.extend(bytes.iter().take(count));
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// An acceptor, and whom it believes.
struct Place {
    authority: Authority,
    acceptor: Acceptor,
}

impl Place {
    fn asking(state: ClientAuthState) -> Self {
        let authority = Authority::generate("of the test", NOW).unwrap();
        let pem = authority.issue(hosts_of("localhost"), NOW).unwrap().into_bytes();
        let rule = NameRule {
            path: NamePath::CommonName,
            prefix: "user-".to_owned(),
            delimiter: String::new(),
        };
        let material = Material {
            chain: pem.clone(),
            key: pem,
            client_authorities: authority.pem.clone().into_bytes(),
            clients: ClientCertificates { state, prefixes: vec![rule] },
            ..Material::default()
        };
        let acceptor = Acceptor::new(Clock::simulated(NOW), &material).unwrap();
        Self { authority, acceptor }
    }

    /// A client that trusts the place, and shows a certificate in this name.
    fn client(
        &self,
        named: Option<&str>,
        version: &'static rustls::SupportedProtocolVersion,
    ) -> ClientConnection {
        client_of(&self.client_config(named, version))
    }

    fn client_config(
        &self,
        named: Option<&str>,
        version: &'static rustls::SupportedProtocolVersion,
    ) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.authority.pem.as_bytes()).unwrap()).unwrap();
        let builder = ClientConfig::builder_with_provider(ring::default_provider().into())
            .with_protocol_versions(&[version])
            .unwrap()
            .with_root_certificates(roots);
        Arc::new(match named {
            None => builder.with_no_client_auth(),
            Some(name) => {
                let pem = self.authority.issue_to_client(name, NOW).unwrap();
                let chain = CertificateDer::pem_slice_iter(pem.as_bytes());
                let chain = chain.collect::<Result<Vec<_>, _>>().unwrap();
                let key = PrivateKeyDer::from_pem_slice(pem.as_bytes()).unwrap();
                builder.with_client_auth_cert(chain, key).unwrap()
            }
        })
    }
}

fn client_of(config: &Arc<ClientConfig>) -> ClientConnection {
    let name = ServerName::try_from("localhost").unwrap();
    ClientConnection::new(Arc::clone(config), name).unwrap()
}

/// Moves what the client has to say, and what it is told.
fn move_client(client: &mut ClientConnection, end: &mut End) -> Result<(), Error> {
    while client.wants_write() && client.write_tls(end).is_ok() {}
    while client.read_tls(end).is_ok_and(|count| count > 0) {
        client.process_new_packets()?;
    }
    Ok(())
}

/// Shakes hands. The error is the server's, or else the client's.
fn shake_hands(
    stream: &mut TlsStream<End>,
    client: &mut ClientConnection,
    end: &mut End,
) -> Result<(), String> {
    for _ in 0..BUDGET {
        move_client(client, end).map_err(|error| error.to_string())?;
        if !stream.is_shaking_hands() && !client.is_handshaking() {
            return Ok(());
        }
        if stream.is_shaking_hands() {
            stream.shake_hands().map_err(|error| error.to_string())?;
        } else {
            stream.flush().unwrap();
        }
    }
    panic!("the handshake does not end");
}

const VERSIONS: [&rustls::SupportedProtocolVersion; 2] =
    [&rustls::version::TLS12, &rustls::version::TLS13];

#[test]
fn bytes_arrive_whole_in_whatever_pieces_and_version() {
    let pieces = [(1, 3000), (7, 3000), (5000, 3000), (usize::MAX, 3000), (usize::MAX, 50_000)];
    let cases = VERSIONS.into_iter().flat_map(|version| pieces.map(|piece| (version, piece)));
    for (version, (step, target_bytes)) in cases {
        let place = Place::asking(ClientAuthState::Disable);
        let (ours, mut end) = connection(step, 64 << 10);
        let mut stream = place.acceptor.accept(ours).unwrap();
        let mut client = place.client(None, version);
        shake_hands(&mut stream, &mut client, &mut end).unwrap();
        let sent: Vec<u8> = (0..20_000_u32).flat_map(u32::to_le_bytes).collect();
        let (mut given, mut received, mut answered) = (0, Vec::new(), Vec::new());
        let mut target = vec![0; target_bytes];
        let mut replied = 0;
        while answered.len() < sent.len() {
            given += client.writer().write(&sent[given..]).unwrap();
            move_client(&mut client, &mut end).unwrap();
            loop {
                let arrival = stream.read(&mut target).unwrap();
                received.extend_from_slice(&target[..arrival.bytes]);
                assert!(!arrival.is_end);
                if !arrival.has_more {
                    break;
                }
            }
            match stream.write(&received[replied..]) {
                Ok(count) => replied += count,
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
            }
            move_client(&mut client, &mut end).unwrap();
            while let Ok(count) = client.reader().read(&mut target) {
                answered.extend_from_slice(&target[..count]);
            }
        }
        assert_eq!(received, sent);
        assert_eq!(answered, sent);
    }
}

#[test]
fn a_read_that_says_that_nothing_more_is_there_has_drained_session_and_socket() {
    let place = Place::asking(ClientAuthState::Disable);
    let (ours, mut end) = connection(usize::MAX, usize::MAX);
    let mut stream = place.acceptor.accept(ours).unwrap();
    let mut client = place.client(None, VERSIONS[1]);
    shake_hands(&mut stream, &mut client, &mut end).unwrap();
    let sizes = [1, 100, 4096, 16_384, 60_000];
    for (size, target_bytes) in sizes.into_iter().flat_map(|size| [(size, 1000), (size, 20_000)]) {
        client.writer().write_all(&vec![7; size]).unwrap();
        move_client(&mut client, &mut end).unwrap();
        let (mut target, mut got) = (vec![0; target_bytes], 0);
        loop {
            let arrival = stream.read(&mut target).unwrap();
            got += arrival.bytes;
            if !arrival.has_more {
                break;
            }
        }
        assert_eq!(got, size);
        assert!(end.outgoing.borrow().bytes.is_empty());
    }
}

#[test]
fn who_reads_nothing_has_a_bounded_part_of_a_large_value_waiting() {
    let place = Place::asking(ClientAuthState::Disable);
    let (ours, mut end) = connection(usize::MAX, 100_000);
    let mut stream = place.acceptor.accept(ours).unwrap();
    let mut client = place.client(None, VERSIONS[1]);
    shake_hands(&mut stream, &mut client, &mut end).unwrap();
    let value = vec![7; 20 << 20];
    let mut sent = 0;
    let mut received = 0;
    let mut target = vec![0; 64 << 10];
    while received < value.len() {
        loop {
            match stream.write(&value[sent..]) {
                Ok(0) => break,
                Ok(count) => sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => panic!("{error}"),
            }
        }
        assert!(stream.unsent_bytes() <= UNSENT_BYTES_MAX + 4 * RECORD_OVERHEAD_BYTES);
        assert!(sent - received <= 100_000 + UNSENT_BYTES_MAX + (64 << 10));
        // The client reads a little.
        move_client(&mut client, &mut end).unwrap();
        while let Ok(count) = client.reader().read(&mut target) {
            received += count;
        }
    }
    assert_eq!(received, value.len());
    stream.flush().unwrap();
    assert_eq!(stream.unsent_bytes(), 0);
}

#[test]
fn a_goodbye_is_an_end_behind_what_was_said_before() {
    let place = Place::asking(ClientAuthState::Disable);
    for is_polite in [true, false] {
        let (ours, mut end) = connection(usize::MAX, usize::MAX);
        let mut stream = place.acceptor.accept(ours).unwrap();
        let mut client = place.client(None, VERSIONS[1]);
        shake_hands(&mut stream, &mut client, &mut end).unwrap();
        client.writer().write_all(b"last words").unwrap();
        if is_polite {
            client.send_close_notify();
        }
        move_client(&mut client, &mut end).unwrap();
        end.outgoing.borrow_mut().is_closed = !is_polite;
        let mut target = [0; 100];
        let first = stream.read(&mut target).unwrap();
        assert_eq!(&target[..first.bytes], b"last words");
        assert!(first.has_more, "no edge tells of the end");
        let second = stream.read(&mut target).unwrap();
        assert_eq!(second, Arrival { bytes: 0, has_more: false, is_end: true });
        // The other direction is open.
        assert_eq!(stream.write(b"answer").unwrap(), 6);
        stream.say_goodbye();
        move_client(&mut client, &mut end).unwrap();
        let mut answer = Vec::new();
        client.reader().read_to_end(&mut answer).unwrap();
        assert_eq!(answer, b"answer");
    }
}

#[test]
fn garbage_ends_a_handshake_with_an_alert_and_no_harm() {
    let place = Place::asking(ClientAuthState::Disable);
    for garbage in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        &[0; 600],
        &[0x16, 3, 1, 0xff, 0xff, 1],
        &[0x17, 3, 3, 0, 1, 0],
    ] {
        let (ours, end) = connection(usize::MAX, usize::MAX);
        let mut stream = place.acceptor.accept(ours).unwrap();
        end.outgoing.borrow_mut().bytes.extend(garbage);
        assert!(stream.shake_hands().is_err(), "{garbage:?}");
        let told: Vec<u8> = end.incoming.borrow_mut().bytes.drain(..).collect();
        assert_eq!(told.first(), Some(&0x15), "{garbage:?}");
    }
}

#[test]
fn a_half_handshake_waits_and_its_end_is_met() {
    let place = Place::asking(ClientAuthState::Disable);
    let (ours, mut end) = connection(usize::MAX, usize::MAX);
    let mut stream = place.acceptor.accept(ours).unwrap();
    let mut hello = Vec::new();
    place.client(None, VERSIONS[1]).write_tls(&mut hello).unwrap();
    end.write_all(&hello[..hello.len() / 2]).unwrap();
    for _ in 0..3 {
        assert_eq!(stream.shake_hands().unwrap(), Handshake::Waits);
    }
    end.outgoing.borrow_mut().is_closed = true;
    assert_eq!(stream.shake_hands().unwrap_err().kind(), ErrorKind::UnexpectedEof);
}

#[test]
fn a_bit_that_was_turned_ends_the_session_behind_what_came_whole() {
    let place = Place::asking(ClientAuthState::Disable);
    let (ours, mut end) = connection(usize::MAX, usize::MAX);
    let mut stream = place.acceptor.accept(ours).unwrap();
    let mut client = place.client(None, VERSIONS[1]);
    shake_hands(&mut stream, &mut client, &mut end).unwrap();
    client.writer().write_all(b"whole").unwrap();
    move_client(&mut client, &mut end).unwrap();
    let mut target = [0; 100];
    assert_eq!(stream.read(&mut target).unwrap().bytes, 5);
    client.writer().write_all(b"turned").unwrap();
    move_client(&mut client, &mut end).unwrap();
    *end.outgoing.borrow_mut().bytes.back_mut().unwrap() ^= 1;
    assert!(stream.read(&mut target).is_err());
    assert!(stream.read(&mut target).is_err(), "it is met again");
}

#[test]
fn a_client_is_whom_its_certificate_names() {
    for (state, named, expected) in [
        (ClientAuthState::Disable, Some("user-bob"), Ok(Claim::None)),
        (ClientAuthState::Enable, None, Ok(Claim::None)),
        (ClientAuthState::Enable, Some("user-bob"), Ok(Claim::User("bob".to_owned()))),
        (ClientAuthState::Enable, Some("bob"), Ok(Claim::None)),
        (ClientAuthState::Mandatory, Some("user-bob"), Ok(Claim::User("bob".to_owned()))),
        (ClientAuthState::Mandatory, Some("bob"), Ok(Claim::Nameless)),
        (ClientAuthState::Mandatory, None, Err(())),
    ] {
        for version in VERSIONS {
            let place = Place::asking(state);
            let (ours, mut end) = connection(usize::MAX, usize::MAX);
            let mut stream = place.acceptor.accept(ours).unwrap();
            let mut client = place.client(named, version);
            let shaken = shake_hands(&mut stream, &mut client, &mut end);
            let claim = shaken.map(|()| place.acceptor.claim_of(stream.peer_chain()));
            assert_eq!(claim.map_err(drop), expected, "{state:?} {named:?}");
        }
    }
}

#[test]
fn who_is_asked_for_a_certificate_shows_it_each_time() {
    for (state, again) in [
        (ClientAuthState::Disable, HandshakeKind::Resumed),
        (ClientAuthState::Enable, HandshakeKind::Full),
        (ClientAuthState::Mandatory, HandshakeKind::Full),
    ] {
        for version in VERSIONS {
            let place = Place::asking(state);
            let config = place.client_config(Some("user-bob"), version);
            for expected in [HandshakeKind::Full, again] {
                let (ours, mut end) = connection(usize::MAX, usize::MAX);
                let mut stream = place.acceptor.accept(ours).unwrap();
                let mut client = client_of(&config);
                shake_hands(&mut stream, &mut client, &mut end).unwrap();
                assert_eq!(client.handshake_kind(), Some(expected), "{state:?} {version:?}");
                // Tickets come behind the handshake.
                stream.flush().unwrap();
                move_client(&mut client, &mut end).unwrap();
            }
        }
    }
}

#[test]
fn a_certificate_of_a_strange_authority_is_refused() {
    let (place, other) =
        (Place::asking(ClientAuthState::Enable), Place::asking(ClientAuthState::Enable));
    let mut client = Place { authority: other.authority, ..place }.client(None, VERSIONS[1]);
    let place = Place::asking(ClientAuthState::Enable);
    let (ours, mut end) = connection(usize::MAX, usize::MAX);
    let mut stream = place.acceptor.accept(ours).unwrap();
    let error = shake_hands(&mut stream, &mut client, &mut end).unwrap_err();
    assert!(error.contains("UnknownIssuer"), "{error}");
}
