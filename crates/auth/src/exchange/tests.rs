//! Logins, message by message.

use super::*;
use crate::client::{ScramClient, plain};
use crate::users::UsersConfig;
use platform::Entropy;

const PASSWORD: &[u8] = b"pass,word=1";

fn users() -> Users {
    let users =
        Users::new(UsersConfig { iterations: 4096, verified_max: 8, ..UsersConfig::default() });
    users.set_password("bob,=", PASSWORD);
    users
}

fn name(algorithm: HashAlgorithm) -> &'static str {
    Mechanism::Scram(algorithm).name()
}

/// Logs in with SCRAM; `tamper` may change client-final on its way.
fn login(
    users: &Users,
    algorithm: HashAlgorithm,
    user: &str,
    password: &[u8],
    tamper: impl Fn(String) -> String,
) -> Outcome {
    let mut exchange = Exchange::default();
    let client = ScramClient::new(algorithm, user, password, &Entropy::real());
    let Outcome::Continue(challenge) = exchange.start(users, name(algorithm), &client.first())
    else {
        panic!("every wellformed beginning is challenged")
    };
    assert!(exchange.is_running());
    let (client_final, expected) = client.answer(&challenge).unwrap();
    let client_final = tamper(String::from_utf8(client_final).unwrap());
    let outcome = exchange.step(users, name(algorithm), client_final.as_bytes());
    if let Outcome::Done { server_final, .. } = &outcome {
        assert_eq!(expected.check(server_final), Ok(()));
    }
    assert!(!exchange.is_running());
    outcome
}

#[test]
fn server_and_client_agree_with_every_hash() {
    let users = users();
    for algorithm in HashAlgorithm::ALL {
        let outcome = login(&users, algorithm, "bob,=", PASSWORD, |text| text);
        assert!(matches!(outcome, Outcome::Done { user, .. } if user == "bob,="));
        assert!(login(&users, algorithm, "bob,=", b"wrong", |text| text) == Outcome::Failed);
        assert!(login(&users, algorithm, "eve", PASSWORD, |text| text) == Outcome::Failed);
    }
}

#[test]
fn a_message_that_was_tampered_with_fails() {
    let users = users();
    let tampered: [fn(String) -> String; 8] = [
        |text| text.replace("c=biws", "c=eSws"),
        |text| text.replace("c=biws,", ""),
        |text| text.replace("r=", "r=x"),
        |text| text.replace(",p=", ",m=x,p="),
        |text| text.replace(",p=", ",x=y,p="),
        |text| text.replace(",p=", ",p=AA"),
        |text| text.split_once(",p=").unwrap().0.to_owned(),
        |_| String::new(),
    ];
    for (index, tamper) in tampered.into_iter().enumerate() {
        let outcome = login(&users, HashAlgorithm::Sha256, "bob,=", PASSWORD, tamper);
        assert!(outcome == Outcome::Failed, "case {index}");
    }
}

#[test]
fn a_failed_step_leaves_no_second_guess() {
    let users = users();
    let client = ScramClient::new(HashAlgorithm::Sha1, "bob,=", PASSWORD, &Entropy::real());
    let first = client.first();
    let mut exchange = Exchange::default();
    let Outcome::Continue(challenge) = exchange.start(&users, "SCRAM-SHA1", &first) else {
        panic!("a challenge")
    };
    let (client_final, _) = client.answer(&challenge).unwrap();
    let mut wrong = client_final.clone();
    let last = wrong.len() - 2;
    wrong[last - 1] = if wrong[last - 1] == b'A' { b'B' } else { b'A' };
    assert!(exchange.step(&users, "SCRAM-SHA1", &wrong) == Outcome::Failed);
    assert!(matches!(exchange.step(&users, "SCRAM-SHA1", &client_final), Outcome::OutOfPlace(_)));
}

#[test]
fn a_password_that_changes_while_a_login_is_under_way_ends_it() {
    type Change = fn(&Users);
    let changes: [(Change, bool); 3] = [
        (|users| users.set_password("bob,=", b"new"), false),
        (|users| users.set_password("bob,=", PASSWORD), false),
        (|users| users.set_password("eve", b"new"), true),
    ];
    for (index, (change, is_let_in)) in changes.into_iter().enumerate() {
        let users = users();
        let client = ScramClient::new(HashAlgorithm::Sha1, "bob,=", PASSWORD, &Entropy::real());
        let mut exchange = Exchange::default();
        let Outcome::Continue(challenge) = exchange.start(&users, "SCRAM-SHA1", &client.first())
        else {
            panic!("a challenge")
        };
        let (client_final, _) = client.answer(&challenge).unwrap();
        change(&users);
        let outcome = exchange.step(&users, "SCRAM-SHA1", &client_final);
        assert_eq!(matches!(outcome, Outcome::Done { .. }), is_let_in, "case {index}");
    }
}

#[test]
fn plain_is_checked_once_and_then_remembered() {
    let users = users();
    let mut exchange = Exchange::default();
    let message = plain("bob,=", PASSWORD);
    let Outcome::Check(attempt) = exchange.start(&users, "plain", &message) else {
        panic!("a password to check")
    };
    assert_eq!(attempt.run(&users).as_deref(), Some("bob,="));
    let done = Outcome::Done { user: "bob,=".to_owned(), server_final: Vec::new() };
    assert!(exchange.start(&users, "PLAIN", &message) == done);
    for (user, password) in [("bob,=", &b"wrong"[..]), ("eve", PASSWORD)] {
        let Outcome::Check(attempt) = exchange.start(&users, "PLAIN", &plain(user, password))
        else {
            panic!("a password to check")
        };
        assert_eq!(attempt.run(&users), None);
    }
    users.set_password("bob,=", b"new");
    assert!(matches!(exchange.start(&users, "PLAIN", &message), Outcome::Check(_)));
}

#[test]
fn messages_out_of_place_end_the_login() {
    let users = users();
    let first = b"n,,n=u,r=abc";
    let mut exchange = Exchange::default();
    assert!(matches!(exchange.step(&users, "SCRAM-SHA1", b"c=biws"), Outcome::OutOfPlace(_)));
    assert!(matches!(exchange.start(&users, "SCRAM-SHA1", b""), Outcome::OutOfPlace(_)));
    assert!(exchange.start(&users, "OAUTHBEARER", first) == Outcome::Failed);
    assert!(exchange.start(&users, "SCRAM-SHA1", b"p=x,,n=u,r=abc") == Outcome::Failed);
    assert!(exchange.start(&users, "PLAIN", b"nonsense") == Outcome::Failed);

    assert!(matches!(exchange.start(&users, "SCRAM-SHA1", first), Outcome::Continue(_)));
    assert!(matches!(exchange.start(&users, "SCRAM-SHA1", first), Outcome::OutOfPlace(_)));
    assert!(!exchange.is_running());
    assert!(matches!(exchange.start(&users, "SCRAM-SHA1", first), Outcome::Continue(_)));
    assert!(matches!(exchange.step(&users, "SCRAM-SHA256", b"c=biws"), Outcome::OutOfPlace(_)));
    assert!(!exchange.is_running());
}

#[test]
fn a_message_has_a_bound_before_anything_of_it_is_kept() {
    let users = users();
    let scram = name(HashAlgorithm::Sha512);
    for (nonce_bytes, is_challenged) in [(4000, true), (5000, false)] {
        let first = format!("n,,n=bob=2C=3D,r={}", "x".repeat(nonce_bytes));
        let mut exchange = Exchange::default();
        let outcome = exchange.start(&users, scram, first.as_bytes());
        assert_eq!(matches!(outcome, Outcome::Continue(_)), is_challenged, "{nonce_bytes}");
        let last = format!("c=biws,r={}", "x".repeat(5000));
        assert!(matches!(exchange.step(&users, scram, last.as_bytes()), Outcome::OutOfPlace(_)));
    }
    let password = format!("\0bob,=\0{}", "x".repeat(5000));
    let outcome = Exchange::default().start(&users, "PLAIN", password.as_bytes());
    assert!(matches!(outcome, Outcome::OutOfPlace(_)));
}
