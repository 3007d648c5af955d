//! Frames, whole, cut and malformed.

use super::*;

const GET: &[u8] =
    b"\x80\x00\x00\x03\x00\x00\x00\x01\x00\x00\x00\x03\x01\x02\x03\x04\0\0\0\0\0\0\0\0\x08hi";
const DURABLE_SET: &[u8] = b"\x08\x01\x04\x03\x08\x01\x00\x07\x00\x00\x00\x11\0\0\0\x01\
    \0\0\0\0\0\0\0\x05\x13\x01\x0e\x10\xaa\xbb\xcc\xdd\0\0\0\x3c\x00keVV";

fn parse(bytes: &[u8]) -> Parsed<'_> {
    Frame::parse(bytes, FrameLimits::default().packet_size_max)
}

fn complete(bytes: &[u8]) -> Frame<'_> {
    match parse(bytes) {
        Parsed::Complete { frame, consumed } if consumed == bytes.len() => frame,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_specifications_example_is_a_get() {
    let frame = complete(GET);
    assert_eq!(frame.header.magic, Magic::ClientRequest);
    assert_eq!(frame.header.vbucket_or_status, 1);
    assert_eq!(frame.header.opaque, 0x0102_0304);
    assert_eq!(frame.key, b"\x08hi");
    assert!(frame.extras.is_empty() && frame.value.is_empty() && frame.framing_extras.is_empty());
}

#[test]
fn a_flexible_header_splits_byte_two() {
    let frame = complete(DURABLE_SET);
    assert_eq!(frame.framing_extras, b"\x13\x01\x0e\x10");
    assert_eq!(frame.extras, b"\xaa\xbb\xcc\xdd\0\0\0\x3c");
    assert_eq!(frame.key, b"\x00ke");
    assert_eq!(frame.value, b"VV");
    assert_eq!((frame.header.cas, frame.header.vbucket_or_status), (5, 7));
}

#[test]
fn every_prefix_is_incomplete_never_a_panic() {
    for whole in [GET, DURABLE_SET] {
        for end in 0..whole.len() {
            let wanted = if end < HEADER_SIZE { HEADER_SIZE } else { whole.len() };
            let expected = Parsed::Incomplete { needed_bytes: wanted };
            assert_eq!(parse(&whole[..end]), expected, "{end} bytes");
        }
    }
}

#[test]
fn the_value_may_be_read_elsewhere() {
    let value_offset = DURABLE_SET.len() - 2;
    for end in 0..=DURABLE_SET.len() {
        match Frame::parse_without_value(&DURABLE_SET[..end], 1 << 20) {
            Parsed::Complete { frame, consumed } => {
                assert!(end >= value_offset);
                assert_eq!(consumed, value_offset);
                assert_eq!((frame.key, frame.value), (&b"\x00ke"[..], &b""[..]));
                assert_eq!(frame.header.value_size(), 2);
            }
            Parsed::Incomplete { .. } => assert!(end < value_offset),
            Parsed::Malformed(error) => panic!("{error:?}"),
        }
    }
}

#[test]
fn frames_follow_each_other() {
    let stream = [GET, DURABLE_SET].concat();
    let Parsed::Complete { frame, consumed } = parse(&stream) else { panic!("a frame") };
    assert_eq!(frame, complete(GET));
    assert_eq!(complete(&stream[consumed..]), complete(DURABLE_SET));
}

#[test]
fn a_stream_that_cannot_go_on_says_why() {
    let limits = FrameLimits::default();
    let mut long_key = GET.to_vec();
    long_key[3] = 4;
    let mut framing_too_long = DURABLE_SET.to_vec();
    framing_too_long[2] = 7;
    let mut large = GET.to_vec();
    large[8..12].copy_from_slice(&0xffff_ffff_u32.to_be_bytes());
    let too_large = |size_max| FrameError::TooLarge { frame_size: 0x1_0000_0017, size_max };
    for (bytes, authenticated, expected) in [
        (&b"\x84"[..], true, FrameError::UnknownMagic(0x84)),
        (b"GET / HTTP/1.1", true, FrameError::UnknownMagic(b'G')),
        (&long_key, true, FrameError::SectionsExceedBody),
        (&framing_too_long, true, FrameError::SectionsExceedBody),
        (&large, true, too_large(30 << 20)),
        (&large, false, too_large(16 << 10)),
    ] {
        let parsed = Frame::parse(bytes, limits.size_max(authenticated));
        assert_eq!(parsed, Parsed::Malformed(expected));
    }
}

#[test]
fn the_limit_counts_the_header() {
    assert!(matches!(Frame::parse(GET, GET.len()), Parsed::Complete { .. }));
    assert!(matches!(Frame::parse(GET, GET.len() - 1), Parsed::Malformed(_)));
}

#[test]
fn headers_survive_a_round_trip() {
    for seed in platform::seeds::seeds(200) {
        let mut random = platform::Random::from_seed(seed);
        let mut bytes = [0; HEADER_SIZE];
        random.fill(&mut bytes);
        bytes[0] = [0x80, 0x81, 0x08, 0x18, 0x82, 0x83][usize::try_from(random.below(6)).unwrap()];
        bytes[8] = 1;
        let header = Header::parse(&bytes, usize::MAX).unwrap().unwrap();
        assert_eq!(header.encode(), bytes, "seed {seed}");
    }
}
