//! What is granted, and who asks.

use super::*;

fn everything() -> FeatureSet {
    Feature::ALL.iter().copied().collect()
}

fn value(codes: &[u16]) -> Vec<u8> {
    codes.iter().flat_map(|code| code.to_be_bytes()).collect()
}

fn granted(codes: &[u16], supported: FeatureSet) -> Option<Vec<u16>> {
    let agreement = negotiate(&value(codes), supported).ok()?;
    Some(agreement.granted.iter().map(Feature::code).collect())
}

#[test]
fn the_c_clients_request_is_granted() {
    let requested = [
        0x02, 0x06, 0x0b, 0x0c, 0x1f, 0x1d, 0x1e, 0x08, 0x07, 0x03, 0x0a, 0x13, 0x04, 0x0f, 0x12,
        0x10, 0x11, 0x0e, 0x17, 0x14,
    ];
    let mut expected = requested[1..].to_vec();
    expected.sort_unstable();
    assert_eq!(granted(&requested, everything()), Some(expected));
}

#[test]
fn what_is_unknown_unsupported_or_repeated_is_left_out() {
    assert_eq!(granted(&[], everything()), Some(vec![]));
    assert_eq!(granted(&[0x01, 0x09, 0x16, 0x777, 0x02, 0x05], everything()), Some(vec![]));
    assert_eq!(granted(&[0x0b, 0x0b], everything()), Some(vec![0x0b]));
    let without_duplex = everything().without(Feature::Duplex);
    assert_eq!(granted(&[0x0c, 0x1f, 0x07], without_duplex), Some(vec![0x07]));
}

#[test]
fn a_feature_needs_others_in_any_order() {
    for (codes, needed) in [
        (&[0x0d][..], &[0x0c][..]),
        (&[0x1f], &[0x0c]),
        (&[0x15], &[0x06]),
        (&[0x18], &[0x06]),
        (&[0x22], &[0x06]),
        (&[0x24], &[0x06, 0x0b, 0x13]),
    ] {
        assert_eq!(granted(codes, everything()), None, "{codes:x?}");
        let mut expected = [codes, needed].concat();
        assert!(granted(&expected, everything()).is_some());
        expected.sort_unstable();
        assert_eq!(granted(&[codes, needed].concat(), everything()), Some(expected));
    }
}

#[test]
fn an_odd_value_is_refused() {
    assert!(negotiate(b"\x00\x0b\x00", everything()).is_err());
}

#[test]
fn snappy_everywhere_switches_snappy_on() {
    let agreement = negotiate(&value(&[0x13]), everything()).unwrap();
    assert!(agreement.enabled.contains(Feature::Snappy));
    assert!(!agreement.granted.contains(Feature::Snappy));
    let mut bytes = Vec::new();
    agreement.granted.encode(&mut bytes);
    assert_eq!(bytes, b"\x00\x13");
}

#[test]
fn agents_introduce_themselves_in_two_ways() {
    let agent = |key: &[u8]| {
        let agent = Agent::parse(key).unwrap();
        (agent.name, agent.connection_id)
    };
    let pair = |name: &str, id: &str| (name.to_owned(), id.to_owned());
    assert_eq!(agent(br#"{"a":"go/2.9","i":"0a/0b"}"#), pair("go/2.9", "0a/0b"));
    assert_eq!(agent(br#"{"i":"0a/0b","a":"x"}"#), pair("x", "0a/0b"));
    assert_eq!(agent(b"rust/1.1.0 (linux)"), pair("rust/1.1.0 (linux)", ""));
    assert_eq!(agent(b"{\"a\":1}"), pair("{\"a\":1}", ""));
    assert_eq!(agent(b"a\nb\xff"), pair("a?b\u{fffd}", ""));
    assert_eq!(agent(b""), pair("", ""));
    assert!(Agent::parse(&[b'a'; 251]).is_err());
}
