//! Our client against our server, and against the RFCs.

use super::*;
use crate::credentials::{Credentials, HashedPassword};
use crate::scram::{ClientFirst, ServerScram};
use crate::users::Login;
use platform::Entropy;

/// A conversation out of an RFC, word by word.
struct Vector {
    algorithm: HashAlgorithm,
    client_nonce: &'static str,
    server_nonce: &'static str,
    salt: &'static str,
    messages: [&'static str; 4],
}

/// RFC 5802, section 5.
const RFC_5802: Vector = Vector {
    algorithm: HashAlgorithm::Sha1,
    client_nonce: "fyko+d2lbbFgONRv9qkxdawL",
    server_nonce: "3rfcNHYJY1ZVvWVs7j",
    salt: "QSXCR+Q6sek8bf92",
    messages: [
        "n,,n=user,r=fyko+d2lbbFgONRv9qkxdawL",
        "r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4096",
        "c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=",
        "v=rmF9pqV8S7suAoZWja4dJRkFsKQ=",
    ],
};

/// RFC 7677, section 3.
const RFC_7677: Vector = Vector {
    algorithm: HashAlgorithm::Sha256,
    client_nonce: "rOprNGfwEbeRWgbNEkqO",
    server_nonce: "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0",
    salt: "W22ZaJ0SNY7soEsUEjb6gQ==",
    messages: [
        "n,,n=user,r=rOprNGfwEbeRWgbNEkqO",
        "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
        "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
         p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
        "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
    ],
};

#[test]
fn both_sides_speak_the_rfcs_conversations() {
    for vector in [RFC_5802, RFC_7677] {
        let Vector { algorithm, client_nonce, server_nonce, salt, messages } = vector;
        let salt = STANDARD.decode(salt).unwrap();
        let hashed = HashedPassword::new(algorithm, b"pencil", salt, 4096);
        let known = Some(std::sync::Arc::new(Credentials::new(b"pencil", 4096, &Entropy::real())));
        let client = ScramClient::with_nonce(algorithm, "user", b"pencil", client_nonce);

        let first = client.first();
        assert_eq!(first, messages[0].as_bytes());
        let first = ClientFirst::parse(&first).unwrap();
        let (server, challenge) = ServerScram::begin(&first, Login { hashed, known }, server_nonce);
        assert_eq!(challenge, messages[1].as_bytes());
        let (client_final, expected) = client.answer(&challenge).unwrap();
        assert_eq!(client_final, messages[2].as_bytes());
        let (user, server_final) = server.finish(&client_final, |_, _| true).unwrap();
        assert_eq!(server_final, messages[3].as_bytes());
        assert_eq!(user, "user");
        assert_eq!(expected.check(&server_final), Ok(()));
    }
}

#[test]
fn a_dubious_challenge_ends_the_login() {
    let answer = |challenge: &str| {
        let client = ScramClient::with_nonce(HashAlgorithm::Sha1, "user", b"pencil", "abc");
        client.answer(challenge.as_bytes()).map(|(answer, _)| answer).err()
    };
    for (challenge, error) in [
        ("", ScramClientError::Malformed),
        ("r=abcd", ScramClientError::Malformed),
        ("r=abc,s=QSXC,i=4096", ScramClientError::Malformed),
        ("r=xbcd,s=QSXC,i=4096", ScramClientError::Malformed),
        ("r=abcd,s=QS?C,i=4096", ScramClientError::Malformed),
        ("r=abcd,s=QSXC,i=many", ScramClientError::Malformed),
        ("m=x,r=abcd,s=QSXC,i=4096", ScramClientError::Malformed),
        ("r=abcd,s=QSXC,i=4095", ScramClientError::Iterations(4095)),
        ("r=abcd,s=QSXC,i=4000000000", ScramClientError::Iterations(4_000_000_000)),
    ] {
        assert_eq!(answer(challenge), Some(error), "{challenge}");
    }
    assert_eq!(answer("r=abcd,s=QSXC,i=4096"), None);
}

#[test]
fn a_server_without_the_password_is_found_out() {
    let expected = || Expected(vec![1, 2, 3]);
    assert_eq!(expected().check(b"v=AQID"), Ok(()));
    assert_eq!(expected().check(b"v=AQIE"), Err(ScramClientError::WrongServerSignature));
    assert_eq!(expected().check(b"v="), Err(ScramClientError::WrongServerSignature));
    assert_eq!(expected().check(b"e=other-error"), Err(ScramClientError::Malformed));
}

#[test]
fn cached_keys_serve_one_user_and_salt_only() {
    let mut cache = KeyCache::default();
    let mut challenge = |password: &[u8], salt: &str| {
        let nonce = RFC_5802.client_nonce;
        let client = ScramClient::with_nonce(HashAlgorithm::Sha1, "user", password, nonce);
        let challenge = format!("r={nonce}3rfc,s={salt},i=4096");
        client.answer_with(&mut cache, challenge.as_bytes()).unwrap().0
    };
    let first = challenge(b"pencil", RFC_5802.salt);
    assert_eq!(challenge(b"pencil", RFC_5802.salt), first);
    let other_password = challenge(b"pen", RFC_5802.salt);
    assert_ne!(other_password, first);
    let other_salt = challenge(b"pen", RFC_7677.salt);
    assert_ne!(other_salt, other_password);
    assert_eq!(challenge(b"pencil", RFC_5802.salt), first);
    assert_eq!(cache.0.len(), 3, "the keys of each of them are kept");
}

#[test]
fn a_cache_forgets_the_keys_that_were_used_longest_ago() {
    let mut cache = KeyCache::default();
    let salts: Vec<String> = (0..=CACHED_KEYS_MAX).map(|salt| format!("salt {salt}")).collect();
    for salt in &salts {
        let salt = salt.clone().into_bytes();
        cache.keys(HashAlgorithm::Sha1, b"pencil", salt, ITERATIONS_MIN);
    }
    let kept = cache.0.iter().map(|cached| cached.salt.as_slice());
    assert!(kept.eq(salts[1..].iter().rev().map(String::as_bytes)));
}
