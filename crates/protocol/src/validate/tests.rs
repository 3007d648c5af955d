//! Requests that have not the form of their command.

use super::*;
use crate::client::Request;
use crate::frame::Parsed;

fn check(request: Request<'_>, features: &[Feature]) -> Result<(), Status> {
    let mut bytes = Vec::new();
    request.encode(&mut bytes);
    let Parsed::Complete { frame, consumed } = Frame::parse(&bytes, 1 << 20) else {
        panic!("{request:?} is no frame")
    };
    assert_eq!(consumed, bytes.len());
    let features = features.iter().copied().collect();
    super::request(request.opcode, &frame, features).map_err(|invalid| invalid.status)
}

#[test]
fn wellformed_requests_pass() {
    use Feature::{Collections, Json, Snappy};
    let long = [b'k'; 251];
    let get = Request::new(Opcode::Get);
    let set = Request { key: b"k", extras: &[0; 8], value: b"v", ..Request::new(Opcode::Set) };
    let features = [Json, Snappy];
    for (request, features) in [
        (Request { key: b"k", ..get }, &[][..]),
        (Request { key: &long[..250], ..get }, &[]),
        (Request { key: &long, ..get }, &[Collections]),
        (Request { cas: 5, ..set }, &[]),
        (Request { value: b"", ..set }, &[]),
        (Request { datatype: 3, ..set }, &features),
        (Request::new(Opcode::Noop), &[]),
        (Request { key: b"k", ..Request::new(Opcode::GetLocked) }, &[]),
        (Request { key: b"k", extras: &[0; 4], ..Request::new(Opcode::GetLocked) }, &[]),
        (Request { key: b"k", cas: 1, ..Request::new(Opcode::UnlockKey) }, &[]),
        (Request { extras: &[0; 16], ..Request::new(Opcode::GetClusterConfig) }, &[]),
        (Request { datatype: 1, value: b"{}", ..Request::new(Opcode::RangeScanCreate) }, &[Json]),
        (Request { key: b"k", ..Request::new(Opcode::SubdocMultiLookup) }, &[]),
        (
            Request {
                key: b"k",
                extras: &[0; 31],
                datatype: 7,
                ..Request::new(Opcode::DcpMutation)
            },
            &[Json, Snappy, Feature::Xattr],
        ),
    ] {
        assert_eq!(check(request, features), Ok(()), "{request:?}");
    }
}

#[test]
fn malformed_requests_hear_why() {
    use Feature::{Collections, Json};
    let long = [b'k'; 252];
    let get = Request { key: b"k", ..Request::new(Opcode::Get) };
    let set = Request { key: b"k", extras: &[0; 8], ..Request::new(Opcode::Set) };
    for (request, features) in [
        (Request { key: b"", ..get }, &[][..]),
        (Request { key: &long[..251], ..get }, &[]),
        (Request { key: &long, ..get }, &[Collections]),
        (Request { key: b"k", ..get }, &[Collections]),
        (Request { extras: b"x", ..get }, &[]),
        (Request { value: b"v", ..get }, &[]),
        (Request { cas: 1, ..get }, &[]),
        (Request { datatype: 1, ..get }, &[Json]),
        (Request { extras: &[0; 7], ..set }, &[]),
        (Request { datatype: 1, ..set }, &[]),
        (Request { datatype: 2, ..set }, &[Json]),
        (Request { datatype: 4, ..set }, &[Feature::Xattr]),
        (Request { datatype: 8, ..set }, &[]),
        (Request { opcode: Opcode::Add, cas: 1, ..set }, &[]),
        (Request { opcode: Opcode::UnlockKey, ..get }, &[]),
        (Request { key: b"k", ..Request::new(Opcode::Noop) }, &[]),
        (Request::new(Opcode::SelectBucket), &[]),
        (Request::new(Opcode::GetErrorMap), &[]),
        (Request { vbucket: 1, value: b"\0\x02", ..Request::new(Opcode::GetErrorMap) }, &[]),
        (Request { key: b"c", extras: &[0; 20], cas: 1, ..Request::new(Opcode::Increment) }, &[]),
        (Request { key: b"c", extras: &[0; 25], ..Request::new(Opcode::SetWithMeta) }, &[]),
    ] {
        assert_eq!(check(request, features), Err(Status::Einval), "{request:?}");
    }
}

#[test]
fn retired_commands_are_not_supported_whatever_they_look_like() {
    for &opcode in Opcode::ALL {
        if opcode.info().class == Class::Retired {
            let request = Request { extras: b"xyz", ..Request::new(opcode) };
            assert_eq!(check(request, &[]), Err(Status::NotSupported), "{opcode:?}");
        }
    }
}
