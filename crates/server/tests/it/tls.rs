//! The data port behind TLS.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use ::tls::{
    Acceptor, Authority, ClientAuthState, ClientCertificates, Material, NamePath, NameRule,
};
use platform::Clock;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::support::{Port, frame, get, set};

type Session = StreamOwned<ClientConnection, TcpStream>;

/// A server with a door for TLS, and whom both sides trust.
struct Place {
    port: Port,
    authority: Authority,
}

impl Place {
    fn new(workers: usize, state: ClientAuthState) -> Self {
        let now = Clock::real().wall_time();
        let authority = Authority::generate("of the test", now).unwrap();
        let pem = authority.issue(vec!["localhost".to_owned()], now).unwrap().into_bytes();
        let rule = NameRule {
            path: NamePath::CommonName,
            prefix: String::new(),
            delimiter: String::new(),
        };
        let material = Material {
            chain: pem.clone(),
            key: pem,
            client_authorities: authority.pem.clone().into_bytes(),
            clients: ClientCertificates { state, prefixes: vec![rule] },
            ..Material::default()
        };
        let acceptor = Acceptor::new(Clock::real(), &material).unwrap();
        Self { port: Port::with_tls(workers, Arc::new(acceptor)), authority }
    }

    fn socket(&self) -> TcpStream {
        platform::network::connect(self.port.tls_address.unwrap()).unwrap()
    }

    fn connect(&self, user: Option<&str>) -> Session {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.authority.pem.as_bytes()).unwrap()).unwrap();
        let builder = ClientConfig::builder_with_provider(ring::default_provider().into())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let config = match user {
            None => builder.with_no_client_auth(),
            Some(user) => {
                let now = Clock::real().wall_time();
                let pem = self.authority.issue_to_client(user, now).unwrap();
                let chain = CertificateDer::pem_slice_iter(pem.as_bytes());
                let chain = chain.collect::<Result<Vec<_>, _>>().unwrap();
                let key = PrivateKeyDer::from_pem_slice(pem.as_bytes()).unwrap();
                builder.with_client_auth_cert(chain, key).unwrap()
            }
        };
        let name = ServerName::try_from("localhost").unwrap();
        let client = ClientConnection::new(config.into(), name).unwrap();
        StreamOwned::new(client, self.socket())
    }
}

/// Status and value of the answer to a request.
fn ask(session: &mut Session, request: &[u8]) -> (u16, Vec<u8>) {
    session.write_all(request).unwrap();
    answer(session)
}

fn answer(session: &mut Session) -> (u16, Vec<u8>) {
    let mut header = [0; 24];
    session.read_exact(&mut header).unwrap();
    let size = u32::from_be_bytes(header[8..12].try_into().unwrap());
    let mut body = vec![0; size.try_into().unwrap()];
    session.read_exact(&mut body).unwrap();
    let before_value =
        usize::from(header[4]) + usize::from(u16::from_be_bytes([header[2], header[3]]));
    (u16::from_be_bytes([header[6], header[7]]), body.split_off(before_value))
}

fn log_in(session: &mut Session) {
    let login = frame(0x21).key(b"PLAIN").value(b"\0user\0password");
    assert_eq!(ask(session, &login.bytes()).0, 0);
    assert_eq!(ask(session, &frame(0x89).key(b"default").bytes()).0, 0);
}

#[test]
fn clients_log_in_and_exchange_documents_of_all_sizes() {
    for workers in [1, 4] {
        let place = Place::new(workers, ClientAuthState::Disable);
        let mut sessions: Vec<Session> = (0..6).map(|_| place.connect(None)).collect();
        for session in &mut sessions {
            log_in(session);
        }
        for (number, size) in
            [0, 1, 4095, 4096, 20_000, 70_000, 5 << 20, 20 << 20].into_iter().enumerate()
        {
            let value = vec![u8::try_from(number).unwrap(); size];
            let session = &mut sessions[number % 6];
            assert_eq!(ask(session, &set(b"k", &value).bytes()).0, 0, "{size}");
            let other = &mut sessions[(number + 1) % 6];
            let (status, got) = ask(other, &get(b"k").bytes());
            assert_eq!(status, 0);
            assert!(got == value, "{size}");
        }
    }
}

#[test]
fn a_pipeline_that_is_read_late_is_answered_whole() {
    for workers in [1, 4] {
        let place = Place::new(workers, ClientAuthState::Disable);
        let mut session = place.connect(None);
        log_in(&mut session);
        let value = vec![7; 100_000];
        assert_eq!(ask(&mut session, &set(b"k", &value).bytes()).0, 0);
        let requests: Vec<u8> = (0..300).flat_map(|_| get(b"k").bytes()).collect();
        session.write_all(&requests).unwrap();
        place.port.wait_for("the server pauses", |it| it.slow_reader_pauses > 0);
        for _ in 0..300 {
            assert!(answer(&mut session) == (0, value.clone()));
        }
    }
}

#[test]
fn who_shows_a_users_certificate_needs_no_other_login() {
    for (workers, state) in [(1, ClientAuthState::Enable), (4, ClientAuthState::Mandatory)] {
        let place = Place::new(workers, state);
        let mut session = place.connect(Some("user"));
        assert_eq!(ask(&mut session, &frame(0x89).key(b"default").bytes()).0, 0);
        assert_eq!(ask(&mut session, &set(b"k", b"v").bytes()).0, 0);
        assert_eq!(ask(&mut session, &get(b"k").bytes()), (0, b"v".to_vec()));
    }
}

#[test]
fn who_shows_a_certificate_and_says_hello_has_no_bucket_before_it_selects_one() {
    const KEY_ENOENT: u16 = 0x01;
    const NO_BUCKET: u16 = 0x08;
    let place = Place::new(1, ClientAuthState::Enable);
    let mut classic = place.connect(Some("user"));
    assert_eq!(ask(&mut classic, &get(b"k").bytes()).0, KEY_ENOENT, "it lands in the default one");

    let mut session = place.connect(Some("user"));
    let (xerror, select_bucket) = ([0, 0x07], [0, 0x08]);
    let hello = frame(0x1f).value(&[xerror, select_bucket].concat());
    assert_eq!(ask(&mut session, &hello.bytes()).0, 0);
    assert_eq!(ask(&mut session, &frame(0xb5).bytes()), (0, b"{\"global\":true}".to_vec()));
    assert_eq!(ask(&mut session, &get(b"k").bytes()).0, NO_BUCKET);
    assert_eq!(ask(&mut session, &frame(0x89).key(b"default").bytes()).0, 0);
    assert_eq!(ask(&mut session, &hello.bytes()).0, 0);
    assert_eq!(ask(&mut session, &frame(0xb5).bytes()), (0, b"{\"rev\":1}".to_vec()));
}

#[test]
fn the_certificate_of_nobody_ends_the_connection() {
    let place = Place::new(1, ClientAuthState::Enable);
    let mut session = place.connect(Some("nobody"));
    let mut byte = [0];
    let ended = session.write_all(&get(b"k").bytes()).and_then(|()| session.read(&mut byte));
    assert!(matches!(ended, Ok(0) | Err(_)));
    place.port.wait_for("it is counted", |it| it.auth_errors == 1 && it.curr_connections == 0);
}

#[test]
fn garbage_and_half_handshakes_leave_nothing_behind() {
    for workers in [1, 4] {
        let place = Place::new(workers, ClientAuthState::Disable);
        for garbage in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0; 5000], &[0x16, 3, 1, 2, 0, 1, 0]] {
            let mut socket = place.socket();
            socket.write_all(garbage).unwrap();
            // The node may have closed it already.
            socket.shutdown(std::net::Shutdown::Write).ok();
            let mut rest = Vec::new();
            drop(socket.read_to_end(&mut rest));
        }
        place.port.wait_for("all are gone", |it| it.curr_connections == 0);
        assert_eq!(place.port.counter("tls_failures"), 3);
        let mut session = place.connect(None);
        log_in(&mut session);
    }
}

#[test]
fn a_client_that_says_goodbye_gets_the_answers_before() {
    let place = Place::new(1, ClientAuthState::Disable);
    let mut session = place.connect(None);
    log_in(&mut session);
    session.write_all(&set(b"k", b"v").bytes()).unwrap();
    session.write_all(&get(b"k").bytes()).unwrap();
    session.conn.send_close_notify();
    session.flush().unwrap();
    assert_eq!(answer(&mut session).0, 0);
    assert_eq!(answer(&mut session), (0, b"v".to_vec()));
    let mut rest = Vec::new();
    assert_eq!(session.read_to_end(&mut rest).unwrap(), 0, "the server says goodbye, too");
}
