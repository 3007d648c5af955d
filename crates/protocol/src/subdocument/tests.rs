//! The bytes of requests and responses about parts of a document.

use super::*;

#[test]
fn extras_have_as_many_fields_as_they_have_bytes() {
    let document = PathDocumentExtras::default();
    let (expiry, flags) = (Some(0x0102_0304), Some([5, 6, 7, 8]));
    for (bytes, expected) in [
        (&[][..], document),
        (&[9], PathDocumentExtras { document_flags: 9, ..document }),
        (&[1, 2, 3, 4], PathDocumentExtras { expiry, ..document }),
        (&[1, 2, 3, 4, 9], PathDocumentExtras { expiry, flags: None, document_flags: 9 }),
        (&[1, 2, 3, 4, 5, 6, 7, 8], PathDocumentExtras { expiry, flags, document_flags: 0 }),
        (&[1, 2, 3, 4, 5, 6, 7, 8, 9], PathDocumentExtras { expiry, flags, document_flags: 9 }),
    ] {
        assert_eq!(PathDocumentExtras::parse(bytes), Some(expected));
        let single = [&[0x01, 0x02, 4], bytes].concat();
        let expected = PathExtras { path_size: 0x102, path_flags: 4, document: expected };
        assert_eq!(PathExtras::parse(&single), Some(expected));
    }
    for size in [2, 3, 6, 7, 10] {
        assert_eq!(PathDocumentExtras::parse(&vec![0; size]), None, "{size}");
        assert_eq!(PathExtras::parse(&vec![0; size + 3]), None, "{size}");
    }
    assert_eq!(PathExtras::parse(&[0, 1]), None);
}

#[test]
fn one_path_is_the_beginning_of_the_value() {
    let extras = PathExtras { path_size: 3, path_flags: 0, document: Default::default() };
    assert_eq!(extras.split(b"a.b12"), Some((&b"a.b"[..], &b"12"[..])));
    assert_eq!(extras.split(b"a.b"), Some((&b"a.b"[..], &b""[..])));
    assert_eq!(extras.split(b"a."), None);
}

#[test]
fn paths_are_read_as_they_were_written() {
    let get = PathSpec { opcode: 0xc5, path_flags: 4, path: b"a.b", value: b"" };
    let add = PathSpec { opcode: 0xc7, path_flags: 1, path: b"c", value: b"{\"d\":1}" };
    let mut value = Vec::new();
    get.encode(PathSpecForm::Lookup, &mut value);
    assert_eq!(value, b"\xc5\x04\x00\x03a.b");
    get.encode(PathSpecForm::Lookup, &mut value);
    let read: Vec<_> = path_specs(PathSpecForm::Lookup, &value).collect();
    assert_eq!(read, [Some(get), Some(get)]);

    let mut value = Vec::new();
    add.encode(PathSpecForm::Mutation, &mut value);
    assert_eq!(value, b"\xc7\x01\x00\x01\x00\x00\x00\x07c{\"d\":1}");
    get.encode(PathSpecForm::Mutation, &mut value);
    let read: Vec<_> = path_specs(PathSpecForm::Mutation, &value).collect();
    assert_eq!(read, [Some(add), Some(get)]);
}

#[test]
fn every_path_that_is_cut_off_is_the_last() {
    let add = PathSpec { opcode: 0xc7, path_flags: 0, path: b"ab", value: b"12" };
    for form in [PathSpecForm::Lookup, PathSpecForm::Mutation] {
        let spec = match form {
            PathSpecForm::Lookup => PathSpec { value: b"", ..add },
            PathSpecForm::Mutation => add,
        };
        let mut value = Vec::new();
        spec.encode(form, &mut value);
        let size = value.len();
        spec.encode(form, &mut value);
        for cut in size + 1..value.len() {
            let read: Vec<_> = path_specs(form, &value[..cut]).collect();
            assert_eq!(read, [Some(spec), None], "{form:?} {cut}");
        }
        assert_eq!(path_specs(form, &[]).count(), 0);
    }
}

#[test]
fn results_follow_each_other() {
    let mut value = Vec::new();
    put_lookup_result(&mut value, Status::Success, b"12");
    put_lookup_result(&mut value, Status::SubdocPathEnoent, b"");
    assert_eq!(value, b"\x00\x00\x00\x00\x00\x0212\x00\xc0\x00\x00\x00\x00");
    let mut value = Vec::new();
    put_mutation_result(&mut value, 3, b"-5");
    assert_eq!(value, b"\x03\x00\x00\x00\x00\x00\x02-5");
    assert_eq!(mutation_failure(7, Status::SubdocPathEexists), *b"\x07\x00\xc9");
}
