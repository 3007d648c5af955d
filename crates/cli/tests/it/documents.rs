//! `get` and `set` against a server that fails on demand.

use std::process::ExitCode;

use protocol::Status;

use crate::{couchbase_like, run, start};

const BOB: &str = "--user bob --password secret --bucket default";

#[test]
fn what_is_set_is_stored_with_flags_that_say_what_it_is() {
    let server = couchbase_like();
    for (line, value, flags, datatype) in [
        ("set a {\"b\":1}", "{\"b\":1}", [2, 0, 0, 0], 1),
        ("set a hello --expiry 7", "hello", [4, 0, 0, 0], 0),
        ("set a -5", "-5", [2, 0, 0, 0], 1),
    ] {
        let code = run(&server, &format!("{line} {BOB}")).unwrap();
        assert_eq!(code, ExitCode::SUCCESS, "{line}");
        let document = &server.documents()[&b"a"[..]];
        assert_eq!(document.value, value.as_bytes(), "{line}");
        assert_eq!(document.extras[..4], flags, "{line}");
        assert_eq!(document.datatype, datatype, "{line}");
        assert!(!document.is_durable, "{line}");
    }
    run(&server, &format!("set a x --expiry 7 --durability majority {BOB}")).unwrap();
    let document = &server.documents()[&b"a"[..]];
    assert_eq!((document.is_durable, &document.extras[4..]), (true, &[0, 0, 0, 7][..]));
    assert_eq!(run(&server, &format!("get a -o json {BOB}")).unwrap(), ExitCode::SUCCESS);
}

#[test]
fn a_document_that_is_missing_is_an_exit_code_and_a_refusal_says_what_to_do() {
    let server = couchbase_like();
    assert_eq!(run(&server, &format!("get a {BOB}")).unwrap(), ExitCode::FAILURE);
    for (line, status, expected) in [
        ("get a", Status::Etmpfail, "\"a\": ETMPFAIL: "),
        ("get a", Status::Eaccess, "--user and --password"),
        ("set a b --cas 5", Status::KeyEexists, "\"a\" has another version"),
        ("set a b", Status::Locked, "wait until the lock ends"),
    ] {
        server.fail_next([status]);
        let error = run(&server, &format!("{line} {BOB}")).unwrap_err();
        assert!(format!("{error:#}").contains(expected), "{line}: {error:#}");
    }
    let key = "k".repeat(251);
    let error = run(&server, &format!("get {key} {BOB}")).unwrap_err();
    assert_eq!(error.to_string(), "a key has 1 to 250 bytes, not 251");
}

#[test]
fn what_only_couchbases_servers_have_is_refused_by_others() {
    let classic = start(client::fake_server::FakeOptions {
        is_classic: true,
        ..client::fake_server::FakeOptions::default()
    });
    assert_eq!(run(&classic, "set a b --memcached").unwrap(), ExitCode::SUCCESS);
    for (line, expected) in [
        ("set a b --memcached --durability majority", "leave out --durability"),
        ("get a --memcached --collection s.c", "leave --collection out"),
    ] {
        let error = run(&classic, line).unwrap_err().to_string();
        assert!(error.contains(expected), "{line}: {error}");
    }
}
