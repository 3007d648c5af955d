//! The client's promises, against a server that fails on demand.

use std::time::Duration;

use client::fake_server::FakeOptions;
use client::{
    ClientError, ClusterClient, Connection, ConnectionOptions, FakeServer, Login, ServerAddress,
};
use document::{CollectionId, Vbid};
use protocol::client::{Request, store_extras};
use protocol::request::StoreExtras;
use protocol::{Feature, FeatureSet, Opcode, Status};

const EXTRAS: [u8; 8] = [0; 8];

fn set(value: &[u8]) -> Request<'_> {
    Request { extras: &EXTRAS, value, ..Request::new(Opcode::Set) }
}

fn options(login: Option<Login>) -> ConnectionOptions {
    let bucket = Some("default".to_owned());
    ConnectionOptions { login, bucket, ..ConnectionOptions::new("client-test") }
}

fn start(login: Option<(&str, &str)>, vbucket_count: u16) -> FakeServer {
    let login = login.map(|(user, password)| (user.to_owned(), password.to_owned()));
    let options = FakeOptions { login, vbucket_count, ..FakeOptions::default() };
    FakeServer::start(options).expect("loopback has a free port")
}

#[test]
fn every_mechanism_logs_in_and_a_wrong_password_does_not() {
    let server = start(Some(("bob", "secret")), 0);
    for mechanism in ["SCRAM-SHA512", "SCRAM-SHA256", "SCRAM-SHA1", "PLAIN"] {
        let login = |password| Login::new("bob", password).with_mechanism(mechanism);
        let good = options(login("secret"));
        for _ in 0..2 {
            let mut connection = Connection::open(&server.node(), &good).unwrap();
            assert!(connection.call(&Request::new(Opcode::Noop)).unwrap().is_success());
            assert_eq!(connection.features(), good.features);
        }
        let error = Connection::open(&server.node(), &options(login("wrong"))).unwrap_err();
        assert_eq!(error.refusal(), Some(Status::AuthError), "{mechanism}: {error}");
    }
}

#[test]
fn what_the_server_refuses_says_why() {
    let server = start(Some(("bob", "secret")), 0);
    let error = Connection::open(&server.node(), &options(None)).unwrap_err();
    assert_eq!(error.refusal(), Some(Status::Eaccess));
    let bucket = Some("other".to_owned());
    let other = ConnectionOptions { bucket, ..options(Some(Login::new("bob", "secret"))) };
    let error = Connection::open(&server.node(), &other).unwrap_err();
    let text = error.to_string();
    assert_eq!(text, format!("{} refused SELECT_BUCKET: KEY_ENOENT", server.node()));
}

#[test]
fn a_classic_server_is_used_without_extensions() {
    let server =
        FakeServer::start(FakeOptions { is_classic: true, ..FakeOptions::default() }).unwrap();
    for is_classic in [false, true] {
        let options = ConnectionOptions { is_classic, ..options(None) };
        let mut client = ClusterClient::connect(&server.node(), options).unwrap();
        assert!(client.call(b"name", &set(b"value")).unwrap().is_success());
        let response = client.call(b"name", &Request::new(Opcode::Get)).unwrap();
        assert_eq!(response.value(), b"value");
        assert_eq!(client.routing().vbucket_count(), 1);
    }
    assert_eq!(server.documents()[&b"name"[..]].vbucket, 0);
    assert_eq!(server.requested_features(), FeatureSet::NONE);
}

#[test]
fn a_document_is_followed_to_the_node_that_owns_it_now() {
    let (first, second) = (start(None, 16), start(None, 16));
    let mut client = ClusterClient::connect(&first.node(), options(None)).unwrap();
    assert!(client.call(b"hello", &set(b"1")).unwrap().is_success());
    let vbucket = Vbid::of_name(b"hello", 16);
    assert_eq!(first.documents()[&b"hello"[..]].vbucket, vbucket.0);

    let mut owners = [0; 16];
    owners[usize::from(vbucket.0)] = 1;
    let nodes = [first.node(), second.node()];
    first.set_map(2, &nodes, &owners);
    second.set_map(2, &nodes, &owners);
    assert!(client.call(b"hello", &set(b"2")).unwrap().is_success());
    assert_eq!(client.routing().nodes(), nodes);
    assert_eq!(first.documents()[&b"hello"[..]].value, b"1");
    assert_eq!(second.documents()[&b"hello"[..]].value, b"2");
}

#[test]
fn a_document_that_nobody_owns_is_an_answer_and_no_endless_loop() {
    let server = start(None, 4);
    let mut client = ClusterClient::connect(&server.node(), options(None)).unwrap();
    let nobody = ServerAddress::new("127.0.0.1", 1);
    server.set_map(2, &[server.node(), nobody], &[7; 4]);
    let response = client.call(b"hello", &Request::new(Opcode::Get)).unwrap();
    assert_eq!(response.status(), Some(Status::NotMyVbucket));
}

#[test]
fn requests_are_pipelined_and_answered_in_order() {
    let server = start(None, 0);
    let mut connection = Connection::open(&server.node(), &options(None)).unwrap();
    assert!(connection.features().contains(Feature::Collections));
    let extras = store_extras(StoreExtras { flags: [0; 4], expiry: 0 });
    for opaque in 0..100 {
        let name = format!("document {opaque}");
        let mut key = Vec::new();
        connection.encode_name(CollectionId::DEFAULT, name.as_bytes(), &mut key);
        connection.send(&Request { opaque, key: &key, extras: &extras, ..set(name.as_bytes()) });
    }
    connection.flush().unwrap();
    for opaque in 0..100 {
        let response = connection.receive().unwrap();
        assert_eq!((response.opaque(), response.is_success()), (opaque, true));
    }
    assert_eq!(server.documents().len(), 100);
}

#[test]
fn statistics_come_as_pairs_and_an_unknown_group_is_refused() {
    let server = start(None, 0);
    server.set_statistics("vbucket 3", &[("vb_3", "active"), ("vb_3:empty", "")]);
    let mut connection = Connection::open(&server.node(), &options(None)).unwrap();
    let statistics = connection.statistics("vbucket 3").unwrap();
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(statistics, [pair("vb_3", "active"), pair("vb_3:empty", "")]);
    let error = connection.statistics("no such group").unwrap_err();
    assert_eq!(error.refusal(), Some(Status::KeyEnoent));
    assert!(connection.call(&Request::new(Opcode::Noop)).unwrap().is_success());
}

#[test]
fn losses_and_silence_are_told_apart() {
    let server = start(None, 0);
    let mut connection = Connection::open(&server.node(), &options(None)).unwrap();
    server.close_after(0);
    let error = connection.call(&Request { key: b"\0k", ..Request::new(Opcode::Get) });
    assert!(matches!(error, Err(ClientError::Lost { .. })), "{error:?}");

    let silent = platform::network::listen_standard("127.0.0.1:0".parse().unwrap()).unwrap();
    let port = silent.local_addr().unwrap().port();
    let timeout = Duration::from_millis(50);
    let options = ConnectionOptions { timeout, ..options(None) };
    let error = Connection::open(&ServerAddress::new("127.0.0.1", port), &options);
    assert!(matches!(error, Err(ClientError::TimedOut { .. })), "{error:?}");
    drop(silent);
    let error = Connection::open(&ServerAddress::new("127.0.0.1", port), &options);
    assert!(matches!(error, Err(ClientError::Unreachable { .. })), "{error:?}");
}
