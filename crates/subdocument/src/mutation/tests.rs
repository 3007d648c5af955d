//! What requests make of documents.

use document::Seqno;

use super::*;
use crate::testing::{ALL_RIGHTS, CAS, Sample, ShortSpec, multi, shown, single, specs};

fn mutate(
    head: RequestHead,
    sample: Option<&Sample>,
    raw: &[ShortSpec<'_>],
) -> Result<Mutated, MutationFailure> {
    let specs = specs(raw)?;
    let request = MutationRequest::new(head, &specs, ALL_RIGHTS)?;
    request.mutate(sample.map(Sample::stored).as_ref())
}

/// Attributes and body of the outcome.
fn outcome(
    flags: u8,
    sample: Option<&Sample>,
    raw: &[ShortSpec<'_>],
) -> Result<String, MutationFailure> {
    mutate(multi(flags), sample, raw).map(|mutated| shown(&mutated.value, mutated.datatype))
}

fn is(text: &str) -> Result<String, MutationFailure> {
    Ok(text.to_owned())
}

fn fails<T>(index: impl Into<Option<u8>>, failure: Failure) -> Result<T, MutationFailure> {
    Err(MutationFailure { index: index.into(), failure })
}

#[test]
fn each_path_sees_what_the_ones_before_it_did() {
    let sample = Sample::new(&[], "{\"a\":1}");
    let mutated = mutate(
        multi(0),
        Some(&sample),
        &[(0xc7, 0, "b", "[]"), (0xcb, 0, "b", "1"), (0xcf, 0, "a", "4"), (0xcf, 0, "b[0]", "-3")],
    )
    .unwrap();
    assert_eq!(mutated.value, b"{\"a\":5,\"b\":[-2]}");
    assert_eq!(mutated.numbers, [(2, 5), (3, -2)]);
    assert_eq!(mutated.datatype, Datatype::JSON);
    assert_eq!(mutated.storing, Storing::Replace(CAS));
    assert!(!mutated.is_deleted && !mutated.is_about_deleted);
}

#[test]
fn the_first_failure_is_told_and_nothing_else() {
    let sample = Sample::new(&[], "{\"a\":1}");
    let raw = [(0xc7, 0, "b", "1"), (0xc7, 0, "a", "1"), (0xc9, 0, "x", "")];
    assert_eq!(outcome(0, Some(&sample), &raw), fails(1, Failure::PathExists));
    let raw = [(0xc7, 0, "b..c", "1")];
    assert_eq!(outcome(0, Some(&sample), &raw), fails(0, Failure::PathInvalid));
    let sample = Sample::new(&[], "no json");
    assert_eq!(outcome(0, Some(&sample), &raw), fails(0, Failure::NotJson));
}

#[test]
fn one_attribute_is_made_changed_and_deleted_in_one_request() {
    let sample = Sample::new(&[("u", "1")], "{}");
    let raw = [
        (0xc8, 5, "txn.id", "{\"a\":1}"),
        (0xc8, 0x24, "txn.bin", "hi"),
        (0xc9, 4, "txn.id.a", ""),
        (0xcb, 5, "list", "1,2"),
        (0xc9, 4, "u", ""),
        (0xc7, 0, "b", "2"),
    ];
    let expected =
        "txn={\"id\":{},\"bin\":\"cb-content-base64-encoded:aGk=\"} list=[1,2]|{\"b\":2}";
    assert_eq!(outcome(0, Some(&sample), &raw), is(expected));
    let sample = Sample::new(&[], "not json");
    assert_eq!(outcome(0, Some(&sample), &raw[..1]), is("txn={\"id\":{\"a\":1}}|not json"));
}

#[test]
fn the_section_goes_with_its_last_attribute() {
    let sample = Sample::new(&[("u", "1")], "{}");
    let mutated = mutate(multi(0), Some(&sample), &[(0xc9, 4, "u", "")]).unwrap();
    assert_eq!((mutated.value, mutated.datatype), (b"{}".to_vec(), Datatype::JSON));
}

#[test]
fn a_missing_document_is_made_if_the_request_says_so() {
    let add = [(0xc7, 0, "a.b", "1")];
    assert_eq!(outcome(0, None, &add), fails(None, Failure::DocumentNotFound));
    assert_eq!(outcome(1, None, &add), is("|{\"a\":{\"b\":1}}"));
    assert_eq!(outcome(2, None, &add), is("|{\"a\":{\"b\":1}}"));
    assert_eq!(mutate(multi(2), None, &add).unwrap().storing, Storing::Add);
    assert_eq!(outcome(1, None, &[(0xcb, 0, "", "1")]), is("|[1]"));
    assert_eq!(outcome(1, None, &[(0xcd, 0, "[0]", "1")]), fails(None, Failure::InvalidArgument));
    assert_eq!(outcome(2, None, &[(0xcd, 0, "[0]", "1")]), is("|[1]"));
    assert_eq!(outcome(1, None, &[(0xcb, 4, "a", "1")]), is("a=[1]|{}"));
    let both = [(0xcb, 4, "a", "1"), (0xcb, 0, "", "1")];
    assert_eq!(outcome(1, None, &both), fails(1, Failure::PathMismatch));
    let record = [(0xc7, 4, "a", "{}"), (0x01, 0, "", "\0")];
    assert_eq!(outcome(1, None, &record), is("a={}|\0"));
    let with_cas = RequestHead { cas: CAS, ..multi(1) };
    assert_eq!(mutate(with_cas, None, &add), fails(None, Failure::DocumentNotFound));
}

#[test]
fn a_document_that_is_there_is_changed_unless_there_must_be_none() {
    let sample = Sample::new(&[], "{}");
    let add = [(0xc7, 0, "a.b", "1")];
    assert_eq!(outcome(0, Some(&sample), &add), fails(0, Failure::PathNotFound));
    assert_eq!(outcome(1, Some(&sample), &add), is("|{\"a\":{\"b\":1}}"));
    assert_eq!(outcome(2, Some(&sample), &add), fails(None, Failure::DocumentExists));
    let other = RequestHead { cas: Cas(1), ..multi(0) };
    assert_eq!(mutate(other, Some(&sample), &add), fails(None, Failure::DocumentExists));
}

#[test]
fn a_document_can_be_born_deleted() {
    let raw = [(0xc7, 4, "txn", "{}")];
    let mutated = mutate(multi(0x0e), None, &raw).unwrap();
    assert_eq!(shown(&mutated.value, mutated.datatype), "txn={}|");
    assert!(mutated.is_deleted && mutated.is_about_deleted);
    assert_eq!(mutated.storing, Storing::Add);
    let body = [(0xc7, 0, "a", "1")];
    assert_eq!(outcome(0x0e, None, &body), fails(0, Failure::NotJson));
    let tombstone = Sample::deleted(&[("_s", "1")]);
    assert_eq!(outcome(0x0e, Some(&tombstone), &raw), fails(None, Failure::DocumentExists));
    assert_eq!(outcome(0x0a, Some(&tombstone), &raw), is("txn={}|"));
    assert!(mutate(single(0x0a), None, &raw).unwrap().is_deleted);
}

#[test]
fn a_tombstone_is_changed_by_those_who_ask_for_it() {
    let tombstone = Sample::deleted(&[("_s", "1")]);
    let raw = [(0xca, 4, "_s", "2")];
    assert_eq!(outcome(0, Some(&tombstone), &raw), fails(None, Failure::DocumentNotFound));
    let mutated = mutate(multi(4), Some(&tombstone), &raw).unwrap();
    assert_eq!(shown(&mutated.value, mutated.datatype), "_s=2|");
    assert!(mutated.is_deleted && mutated.is_about_deleted);
    assert_eq!(mutated.storing, Storing::Replace(CAS));
    let live = Sample::new(&[("_s", "1")], "{}");
    let mutated = mutate(multi(4), Some(&live), &raw).unwrap();
    assert!(!mutated.is_deleted && !mutated.is_about_deleted);
}

#[test]
fn a_tombstone_of_a_known_version_stays_one_for_who_would_create_it_deleted() {
    let tombstone = Sample::deleted(&[("_s", "1")]);
    let raw = [(0xc8, 4, "txn", "{}")];
    let known = RequestHead { cas: CAS, ..multi(0x0c) };
    let mutated = mutate(known, Some(&tombstone), &raw).unwrap();
    assert!(mutated.is_deleted && mutated.is_about_deleted);
    assert_eq!(mutated.storing, Storing::Replace(CAS));
    assert_eq!(mutate(known, None, &raw), fails(None, Failure::DocumentNotFound));
    let other = RequestHead { cas: Cas(1), ..known };
    assert_eq!(mutate(other, Some(&tombstone), &raw), fails(None, Failure::DocumentExists));
}

#[test]
fn a_tombstone_is_revived_with_what_was_staged() {
    let staged = "{\"op\":{\"stgd\":{\"a\": 1}}}";
    let tombstone = Sample::deleted(&[("txn", staged)]);
    let raw = [(0xd3, 4, "txn.op.stgd", ""), (0xc9, 4, "txn", "")];
    let mutated = mutate(multi(0x14), Some(&tombstone), &raw).unwrap();
    assert_eq!(shown(&mutated.value, mutated.datatype), "|{\"a\": 1}");
    assert_eq!((mutated.datatype, mutated.storing), (Datatype::JSON, Storing::Revive));
    assert!(!mutated.is_deleted && !mutated.is_about_deleted);
    assert_eq!(outcome(4, Some(&tombstone), &raw), fails(None, Failure::DeletedHasBody));
    let live = Sample::new(&[("txn", staged)], "old");
    assert_eq!(outcome(0x14, Some(&live), &raw), fails(None, Failure::DocumentIsAlive));
    assert_eq!(outcome(0, Some(&live), &raw), is("|{\"a\": 1}"));
    let missing = [(0xd3, 4, "no", "")];
    assert_eq!(outcome(0, Some(&live), &missing), fails(0, Failure::PathNotFound));
}

#[test]
fn a_body_can_come_from_bytes_in_an_attribute() {
    let sample = Sample::new(&[("b", "\"cb-content-base64-encoded:AQI=\""), ("n", "1")], "{}");
    let mutated = mutate(multi(0), Some(&sample), &[(0xd3, 0x24, "b", "")]).unwrap();
    assert!(mutated.value.ends_with(b"\x01\x02"));
    assert_eq!(mutated.datatype, Datatype::XATTR);
    let other = outcome(0, Some(&sample), &[(0xd3, 0x24, "n", "")]);
    assert_eq!(other, fails(0, Failure::NotBinary));
}

#[test]
fn a_deletion_keeps_the_attributes_of_the_system() {
    let sample = Sample::new(&[("u", "1"), ("_s", "2")], "{}");
    let raw = [(0xc7, 4, "_t", "3"), (0xc7, 4, "v", "4"), (0x04, 0, "", "")];
    let mutated = mutate(multi(0), Some(&sample), &raw).unwrap();
    assert_eq!(shown(&mutated.value, mutated.datatype), "_s=2 _t=3|");
    assert!(mutated.is_deleted && !mutated.is_about_deleted);
    let plain = Sample::new(&[("u", "1")], "{}");
    let mutated = mutate(multi(0), Some(&plain), &[(0x04, 0, "", "")]).unwrap();
    assert_eq!((mutated.value, mutated.datatype), (Vec::new(), Datatype::RAW));
}

#[test]
fn a_tombstone_that_is_revived_and_deleted_stays_one() {
    let tombstone = Sample::deleted(&[("_s", "1")]);
    let raw = [(0xc9, 4, "_s", ""), (0x04, 0, "", "")];
    let mutated = mutate(multi(0x14), Some(&tombstone), &raw).unwrap();
    assert_eq!(mutated.storing, Storing::Replace(CAS));
    assert!(mutated.is_deleted && mutated.is_about_deleted);
}

#[test]
fn a_whole_body_may_be_anything_and_be_changed_further() {
    let sample = Sample::new(&[("u", "1")], "{}");
    assert_eq!(outcome(0, Some(&sample), &[(0x01, 0, "", "text")]), is("u=1|text"));
    let raw = [(0x01, 0, "", "[1]"), (0xcb, 0, "", "2")];
    let mutated = mutate(multi(0), Some(&sample), &raw).unwrap();
    assert_eq!(shown(&mutated.value, mutated.datatype), "u=1|[1,2]");
    assert!(mutated.datatype.contains(Datatype::JSON));
}

#[test]
fn macros_stand_for_what_the_change_becomes() {
    let sample = Sample::new(&[], "{\"a\":1}");
    let mut mutated = mutate(
        multi(0),
        Some(&sample),
        &[
            (0xc8, 0x15, "m.cas", "\"${Mutation.CAS}\""),
            (0xc8, 0x15, "m.seqno", "\"${Mutation.seqno}\""),
            (0xc8, 0x15, "m.crc", "\"${Mutation.value_crc32c}\""),
            (0xc8, 0x15, "m.exp", "\"${$document.exptime}\""),
            (0xcc, 0x15, "n", "\"${Mutation.CAS}\""),
            (0xc7, 5, "m.a", "1"),
            (0xc9, 4, "m.seqno", ""),
            (0xc7, 0, "b", "2"),
        ],
    )
    .unwrap();
    assert!(!mutated.placeholders.is_empty());
    let crc = crc32c::crc32c(b"{\"a\":1,\"b\":2}");
    let expected = |cas: &str| {
        format!(
            "m={{\"cas\":\"0x{cas}\",\"crc\":\"0x{crc:08x}\",\"exp\":99,\"a\":1}} \
             n=[\"0x{cas}\"]|{{\"a\":1,\"b\":2}}"
        )
    };
    assert_eq!(shown(&mutated.value, mutated.datatype), expected("0000000000000000"));
    let cas = Cas(0x1234_0000_0000_00ab);
    mutated.placeholders.fill(&mut mutated.value, cas, Seqno(5));
    assert_eq!(shown(&mutated.value, mutated.datatype), expected("ab00000000003412"));
}

#[test]
fn a_mark_that_becomes_the_body_is_a_string() {
    let raw = [(0xc8, 0x14, "m", "\"${Mutation.seqno}\""), (0xd3, 4, "m", "")];
    let sample = Sample::new(&[], "{}");
    let expected = "m=\"0x0000000000000000\"|\"0x0000000000000000\"";
    assert_eq!(outcome(0, Some(&sample), &raw), is(expected));
}

#[test]
fn attributes_of_the_system_are_for_those_who_may_change_them() {
    let rights = ClientRights { writes_system_attributes: false, ..ALL_RIGHTS };
    let specs = specs(&[(0xc8, 4, "u", "1"), (0xc8, 4, "_s", "1")]).unwrap();
    let request = MutationRequest::new(multi(0), &specs, rights).unwrap();
    let sample = Sample::new(&[], "{}");
    let outcome = request.mutate(Some(&sample.stored()));
    assert_eq!(outcome, fails(1, Failure::AccessDenied));
}

#[test]
fn documents_and_attributes_have_limits() {
    let sample = Sample::new(&[], "{}");
    let text = |size: usize| format!("\"{}\"", "x".repeat(size));
    let set = |flags, path, value: &str| {
        mutate(multi(0), Some(&sample), &[(0xc8, flags, path, value)]).map(|_| ())
    };
    let system = SYSTEM_XATTR_SIZE_MAX - "\0\0\0\0_s\0\"\"\0".len();
    assert_eq!(set(4, "_s", &text(system)), Ok(()));
    assert_eq!(set(4, "_s", &text(system + 1)), fails(None, Failure::TooBig));
    let user = VALUE_SIZE_MAX - "\0\0\0\0u\0\"\"\0{}".len();
    assert_eq!(set(4, "u", &text(user)), Ok(()));
    assert_eq!(set(4, "u", &text(user + 1)), fails(None, Failure::TooBig));
    let body = VALUE_SIZE_MAX - "{\"a\":\"\"}".len();
    assert_eq!(set(0, "a", &text(body)), Ok(()));
    assert_eq!(set(0, "a", &text(body + 1)), fails(None, Failure::TooBig));
}
