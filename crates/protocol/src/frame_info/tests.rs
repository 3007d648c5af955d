//! Frame infos, and how durations are encoded.

use super::*;

fn parse(opcode: Opcode, bytes: &[u8]) -> Result<FrameInfos<'_>, Status> {
    FrameInfos::parse(opcode, bytes).map_err(|invalid| invalid.status)
}

fn durable(level: DurabilityLevel, timeout_ms: Option<u16>) -> FrameInfos<'static> {
    let durability = Some(DurabilityRequirement { level, timeout_ms });
    FrameInfos { durability, ..FrameInfos::default() }
}

#[test]
fn clients_requests_are_understood() {
    let majority = durable(DurabilityLevel::Majority, Some(3600));
    let transaction = FrameInfos { preserve_ttl: true, ..majority };
    let barrier = FrameInfos { barrier: true, ..FrameInfos::default() };
    let stream = FrameInfos { dcp_stream_id: Some(258), ..FrameInfos::default() };
    for (opcode, bytes, infos) in [
        (Opcode::Set, &b""[..], FrameInfos::default()),
        (Opcode::Set, b"\x13\x01\x0e\x10", majority),
        (Opcode::SubdocMultiMutation, b"\x50\x13\x01\x0e\x10", transaction),
        (Opcode::Delete, b"\x11\x03", durable(DurabilityLevel::PersistToMajority, None)),
        (Opcode::Get, b"\x00", barrier),
        (Opcode::DcpMutation, b"\x22\x01\x02", stream),
        (Opcode::Get, b"\x32ab", FrameInfos::default()),
        (Opcode::Get, b"\x43bob", FrameInfos { impersonate: Some("bob"), ..Default::default() }),
    ] {
        assert_eq!(parse(opcode, bytes), Ok(infos), "{opcode:?} {bytes:x?}");
    }
}

#[test]
fn malformed_infos_hear_why() {
    for (opcode, bytes, status) in [
        (Opcode::Get, &b"\x11\x01"[..], Status::Einval),
        (Opcode::SetQ, b"\x11\x01", Status::Einval),
        (Opcode::Set, b"\x11", Status::Einval),
        (Opcode::Set, b"\x10", Status::Einval),
        (Opcode::Set, b"\x12\x01\x02", Status::Einval),
        (Opcode::Set, b"\x11\x00", Status::DurabilityInvalidLevel),
        (Opcode::Set, b"\x11\x04", Status::DurabilityInvalidLevel),
        (Opcode::Set, b"\x13\x01\x00\x00", Status::DurabilityInvalidLevel),
        (Opcode::Set, b"\x13\x01\xff\xff", Status::DurabilityInvalidLevel),
        (Opcode::Add, b"\x50", Status::NotSupported),
        (Opcode::Get, b"\x50", Status::NotSupported),
        (Opcode::Set, b"\x51x", Status::Einval),
        (Opcode::Get, b"\x01x", Status::Einval),
        (Opcode::Get, b"\x22\0\0", Status::Einval),
        (Opcode::Get, b"\x40", Status::Einval),
        (Opcode::Get, b"\x41\xff", Status::Einval),
        (Opcode::Get, b"\x60", Status::UnknownFrameInfo),
        (Opcode::Get, b"\xf0\x01", Status::UnknownFrameInfo),
        (Opcode::Get, b"\xf0", Status::Einval),
        (Opcode::Get, b"\x0f", Status::Einval),
        (Opcode::Get, b"\x4f\x05short", Status::Einval),
    ] {
        assert_eq!(parse(opcode, bytes), Err(status), "{opcode:?} {bytes:x?}");
    }
}

#[test]
fn what_is_encoded_is_understood() {
    let name = "a-user-with-a-long-name";
    for infos in [
        FrameInfos::default(),
        FrameInfos { barrier: true, impersonate: Some(name), ..FrameInfos::default() },
        FrameInfos { preserve_ttl: true, ..durable(DurabilityLevel::Majority, None) },
        durable(DurabilityLevel::MajorityAndPersistOnMaster, Some(1)),
    ] {
        let mut bytes = Vec::new();
        infos.encode(&mut bytes);
        assert_eq!(parse(Opcode::Set, &bytes), Ok(infos));
    }
}

#[test]
fn durations_are_less_than_half_a_percent_off() {
    for micros in (4_000..1_000_000).step_by(7).chain((1_000_000..=120_125_042).step_by(997)) {
        let error = decode_duration(encode_duration(micros)).abs_diff(micros);
        assert!(error * 200 <= micros, "{micros} is off by {error}");
    }
    for micros in 0..4_000_u64 {
        let error = decode_duration(encode_duration(micros)).abs_diff(micros);
        assert!(error <= 12 + micros / 250, "{micros} is off by {error}");
    }
}

#[test]
fn durations_have_the_specified_encoding() {
    for (micros, encoded) in [(0, 0), (1, 1), (2, 2), (100, 21), (120_125_042, 65_535)] {
        assert_eq!(encode_duration(micros), encoded, "{micros}");
    }
    assert_eq!(encode_duration(u64::MAX), 65_535);
    assert_eq!(decode_duration(65_535), 120_125_042);
}

#[test]
fn responses_carry_the_duration_among_other_infos() {
    let info = server_duration_info(0x1234);
    assert_eq!(info, [0x02, 0x12, 0x34]);
    assert_eq!(find_server_duration(&info), Some(0x1234));
    assert_eq!(find_server_duration(&[&[0x12, 0, 1][..], &info].concat()), Some(0x1234));
    assert_eq!(find_server_duration(&[0x02, 0x12]), None);
    assert_eq!(find_server_duration(&[]), None);
}
