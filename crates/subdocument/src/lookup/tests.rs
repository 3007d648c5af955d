//! What lookups answer.

use super::*;
use crate::testing::{ALL_RIGHTS, CAS, Sample, ShortSpec, multi, specs};

const BODY: &str = r#"{"a":1,"b":[true, {"c":"x"}],"d":{}}"#;

/// The results, as text.
fn look_up(
    head: RequestHead,
    sample: Option<&Sample>,
    rights: ClientRights,
    raw: &[ShortSpec<'_>],
) -> Result<Vec<Result<String, Failure>>, Failure> {
    let specs = specs(raw)?;
    let request = LookupRequest::new(head, &specs, rights)?;
    let stored = sample.map(Sample::stored);
    let clock = ClockFacts { seconds: 12, is_logical: true };
    let results = request.look_up(stored.as_ref(), clock)?;
    let text = |fragment: Fragment<'_>| String::from_utf8(fragment.bytes().to_vec()).unwrap();
    Ok(results.map(|result| result.map(text)).collect())
}

fn is(text: &str) -> Result<String, Failure> {
    Ok(text.to_owned())
}

#[test]
fn each_path_has_its_own_result() {
    let sample = Sample::new(&[], BODY);
    let results = look_up(
        multi(0),
        Some(&sample),
        ALL_RIGHTS,
        &[
            (0xc5, 0, "b[1].c", ""),
            (0xc6, 0, "d", ""),
            (0xd2, 0, "", ""),
            (0xd2, 0, "a", ""),
            (0xc5, 0, "x", ""),
            (0xc6, 0, "x", ""),
            (0xc5, 0, "a.b", ""),
            (0xc5, 0, "a..b", ""),
            (0x00, 0, "", ""),
        ],
    );
    let expected = vec![
        is("\"x\""),
        is(""),
        is("3"),
        Err(Failure::PathMismatch),
        Err(Failure::PathNotFound),
        Err(Failure::PathNotFound),
        Err(Failure::PathMismatch),
        Err(Failure::PathInvalid),
        is(BODY),
    ];
    assert_eq!(results, Ok(expected));
}

#[test]
fn attributes_of_several_keys_are_read_beside_the_body() {
    let binary = "\"cb-content-base64-encoded:aGk=\"";
    let sample = Sample::new(&[("txn", "{\"id\":[1,2]}"), ("_s", "7"), ("bin", binary)], "raw");
    let raw = [
        (0xc5, 4, "txn.id[0]", ""),
        (0xd2, 4, "txn.id", ""),
        (0xc5, 4, "txn", ""),
        (0xc6, 4, "no", ""),
        (0xc5, 4, "_s", ""),
        (0xc5, 0x24, "bin", ""),
        (0xc5, 0x24, "_s", ""),
        (0xc5, 4, "$XTOC", ""),
        (0xc5, 0, "a", ""),
        (0x00, 0, "", ""),
    ];
    let expected = vec![
        is("1"),
        is("2"),
        is("{\"id\":[1,2]}"),
        Err(Failure::PathNotFound),
        is("7"),
        is("hi"),
        Err(Failure::NotBinary),
        is("[\"txn\",\"_s\",\"bin\"]"),
        Err(Failure::NotJson),
        is("raw"),
    ];
    assert_eq!(look_up(multi(0), Some(&sample), ALL_RIGHTS, &raw), Ok(expected));
    let rights = ClientRights { reads_system_attributes: false, ..ALL_RIGHTS };
    let results = look_up(multi(0), Some(&sample), rights, &raw).unwrap();
    assert_eq!(results[4], Err(Failure::AccessDenied));
    assert_eq!(results[7], is("[\"txn\",\"bin\"]"));
}

#[test]
fn virtual_attributes_have_paths_too() {
    let sample = Sample::new(&[("_s", "7")], "{}");
    let results = look_up(
        multi(0),
        Some(&sample),
        ALL_RIGHTS,
        &[
            (0xc5, 4, "$document.exptime", ""),
            (0xc5, 4, "$document.value_bytes", ""),
            (0xc5, 4, "$document.datatype[1]", ""),
            (0xc5, 4, "$document.value_crc32c", ""),
            (0xc6, 4, "$document.deleted", ""),
            (0xd2, 4, "$document", ""),
            (0xc5, 4, "$document.x", ""),
            (0xc5, 4, "$vbucket.HLC", ""),
            (0xc5, 4, "$x", ""),
        ],
    );
    let expected = vec![
        is("99"),
        is("2"),
        is("\"xattr\""),
        is("\"0x297bd0aa\""),
        is(""),
        is("10"),
        Err(Failure::PathNotFound),
        is(r#"{"now":"12","mode":"logical"}"#),
        Err(Failure::UnknownVirtualAttribute),
    ];
    assert_eq!(results, Ok(expected));
}

#[test]
fn a_tombstone_is_seen_by_those_who_ask_for_it() {
    let sample = Sample::deleted(&[("_s", "7")]);
    let raw = [(0xc5, 4, "_s", "")];
    let hidden = look_up(multi(0), Some(&sample), ALL_RIGHTS, &raw);
    assert_eq!(hidden, Err(Failure::DocumentNotFound));
    assert_eq!(look_up(multi(4), Some(&sample), ALL_RIGHTS, &raw), Ok(vec![is("7")]));
    let body = look_up(multi(4), Some(&sample), ALL_RIGHTS, &[(0, 0, "", ""), (0xc5, 0, "a", "")]);
    assert_eq!(body, Ok(vec![Err(Failure::PathNotFound), Err(Failure::NotJson)]));
    let nothing = look_up(multi(4), None, ALL_RIGHTS, &raw);
    assert_eq!(nothing, Err(Failure::DocumentNotFound));
}

#[test]
fn another_version_is_another_document() {
    let sample = Sample::new(&[], BODY);
    let raw = [(0xc5, 0, "a", "")];
    let with_cas = |cas| RequestHead { cas, ..multi(0) };
    assert!(look_up(with_cas(CAS), Some(&sample), ALL_RIGHTS, &raw).is_ok());
    let other = look_up(with_cas(document::Cas(1)), Some(&sample), ALL_RIGHTS, &raw);
    assert_eq!(other, Err(Failure::DocumentExists));
}

#[test]
fn a_lying_section_has_neither_attributes_nor_body() {
    let stored = StoredDocument {
        value: b"\0\0\xff\xffabc",
        datatype: document::Datatype::XATTR.with(document::Datatype::JSON),
        ..Sample::new(&[], "").stored()
    };
    let specs = specs(&[(0xc5, 4, "a", ""), (0xc5, 0, "a", ""), (0, 0, "", "")]).unwrap();
    let request = LookupRequest::new(multi(0), &specs, ALL_RIGHTS).unwrap();
    let results = request.look_up(Some(&stored), ClockFacts::default()).unwrap();
    let failures: Vec<_> = results.map(Result::unwrap_err).collect();
    assert_eq!(failures, [Failure::PathNotFound, Failure::NotJson, Failure::PathNotFound]);
}
