//! Changes of texts, as a table.

use super::*;
use crate::command::Command::*;

/// Command, whether parents are made, path, value, document, and what becomes of it.
type Case<'a> = (Command, bool, &'a str, &'a str, &'a str, Result<&'a str, Failure>);

fn run(cases: &[Case<'_>]) {
    for case in cases {
        let (command, creates_parents, path, value, document, expected) = *case;
        let mut text = document.as_bytes().to_vec();
        let outcome = Path::parse(path.as_bytes()).and_then(|path| {
            let value = value.as_bytes();
            let change = Edit { command, path: &path, value, is_mark: false, creates_parents };
            edit(&mut text, &change)
        });
        let text = String::from_utf8(text).unwrap();
        assert_eq!(outcome.map(|_| text.as_str()), expected, "{case:?}");
        if outcome.is_err() {
            assert_eq!(text, document, "a failure changes nothing: {case:?}");
        } else {
            assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok(), "{case:?}: {text}");
        }
    }
}

#[test]
fn names_are_put_into_objects() {
    run(&[
        (DictAdd, false, "a", "1", "{}", Ok("{\"a\":1}")),
        (DictAdd, false, "a", "1", " { } ", Ok(" {\"a\":1 } ")),
        (DictAdd, false, "b", "[1, 2]", "{\"a\":1 }", Ok("{\"a\":1,\"b\":[1, 2] }")),
        (DictAdd, false, "a.`b.c`", "null", "{\"a\":{}}", Ok("{\"a\":{\"b.c\":null}}")),
        (DictAdd, false, "`x``y`", "0", "{}", Ok("{\"x`y\":0}")),
        (DictAdd, false, "a[1].b", "1", "{\"a\":[0,{}]}", Ok("{\"a\":[0,{\"b\":1}]}")),
        (DictAdd, false, "a", "1", "{\"a\":2}", Err(Failure::PathExists)),
        (DictAdd, false, "a.b", "1", "{}", Err(Failure::PathNotFound)),
        (DictAdd, false, "a[0]", "1", "{\"a\":[]}", Err(Failure::PathInvalid)),
        (DictAdd, false, "", "1", "{}", Err(Failure::PathInvalid)),
        (DictAdd, false, "a.b", "1", "{\"a\":[]}", Err(Failure::PathMismatch)),
        (DictAdd, false, "a", "1,2", "{}", Err(Failure::CannotInsert)),
        (DictAdd, false, "a", "1,\"b\":2", "{}", Err(Failure::CannotInsert)),
        (DictUpsert, false, "a", "\"x\"", "{\"a\" : 12 , \"b\":0}", {
            Ok("{\"a\" : \"x\" , \"b\":0}")
        }),
        (DictUpsert, false, "b", "1", "{\"a\":2}", Ok("{\"a\":2,\"b\":1}")),
        (DictUpsert, false, "a[-1]", "1", "{\"a\":[0]}", Err(Failure::PathInvalid)),
    ]);
}

#[test]
fn missing_objects_are_made() {
    run(&[
        (DictAdd, true, "a.b.c", "1", "{}", Ok("{\"a\":{\"b\":{\"c\":1}}}")),
        (DictUpsert, true, "a.b", "1", "{\"a\":{\"x\":0}}", Ok("{\"a\":{\"x\":0,\"b\":1}}")),
        (DictUpsert, true, "a.b[0]", "1", "{}", Err(Failure::PathInvalid)),
        (DictUpsert, true, "a[0].b", "1", "{}", Err(Failure::PathNotFound)),
        (DictUpsert, true, "a[0].b", "1", "{\"a\":[]}", Err(Failure::PathNotFound)),
        (DictUpsert, true, "a.b", "1", "{\"a\":1}", Err(Failure::PathMismatch)),
        (ArrayPushLast, true, "a.b", "1,2", "{}", Ok("{\"a\":{\"b\":[1,2]}}")),
        (ArrayPushFirst, true, "a", "1", "{\"x\":0}", Ok("{\"x\":0,\"a\":[1]}")),
        (ArrayAddUnique, true, "a", "1", "{}", Ok("{\"a\":[1]}")),
        (Counter, true, "a.b", "-5", "{}", Ok("{\"a\":{\"b\":-5}}")),
    ]);
}

#[test]
fn values_are_deleted_with_one_comma() {
    run(&[
        (Delete, false, "a", "", "{\"a\":1}", Ok("{}")),
        (Delete, false, "a", "", "{ \"a\":1 , \"b\":2 }", Ok("{ \"b\":2 }")),
        (Delete, false, "b", "", "{ \"a\":1 , \"b\":2 }", Ok("{ \"a\":1 }")),
        (Delete, false, "b", "", "{\"a\":1,\"b\":{},\"c\":3}", Ok("{\"a\":1,\"c\":3}")),
        (Delete, false, "[0]", "", "[1, 2]", Ok("[2]")),
        (Delete, false, "[-1]", "", "[1, 2]", Ok("[1]")),
        (Delete, false, "[0][0]", "", "[[ 7 ]]", Ok("[[  ]]")),
        (Delete, false, "x", "", "{\"a\":1}", Err(Failure::PathNotFound)),
        (Delete, false, "[1]", "", "[1]", Err(Failure::PathNotFound)),
        (Delete, false, "", "", "{}", Err(Failure::CannotInsert)),
    ]);
}

#[test]
fn values_are_replaced() {
    run(&[
        (Replace, false, "a", "{}", "{\"a\": 1}", Ok("{\"a\": {}}")),
        (Replace, false, "[-1]", "9", "[1,2]", Ok("[1,9]")),
        (Replace, false, "[0].a", "9", "[{\"a\":true}]", Ok("[{\"a\":9}]")),
        (Replace, false, "b", "1", "{\"a\":1}", Err(Failure::PathNotFound)),
        (Replace, false, "[2]", "1", "[1,2]", Err(Failure::PathNotFound)),
        (Replace, false, "[0]", "1,2", "[1]", Err(Failure::CannotInsert)),
        (Replace, false, "[0]", "x", "[1]", Err(Failure::CannotInsert)),
    ]);
}

#[test]
fn arrays_grow_at_both_ends_and_between() {
    run(&[
        (ArrayPushLast, false, "", "1", "[]", Ok("[1]")),
        (ArrayPushLast, false, "", "3,4", "[ 1, 2 ]", Ok("[ 1, 2,3,4 ]")),
        (ArrayPushFirst, false, "", "0", "[ ]", Ok("[0 ]")),
        (ArrayPushFirst, false, "a", "-1,0", "{\"a\":[1]}", Ok("{\"a\":[-1,0,1]}")),
        (ArrayPushLast, false, "a", "1", "{}", Err(Failure::PathNotFound)),
        (ArrayPushLast, false, "a", "1", "{\"a\":{}}", Err(Failure::PathMismatch)),
        (ArrayPushLast, true, "[0]", "1", "[]", Err(Failure::PathNotFound)),
        (ArrayPushLast, false, "", "1,", "[]", Err(Failure::CannotInsert)),
        (ArrayInsert, false, "[0]", "0", "[1]", Ok("[0,1]")),
        (ArrayInsert, false, "[1]", "1", "[0, 2]", Ok("[0, 1,2]")),
        (ArrayInsert, false, "[2]", "2,3", "[0,1]", Ok("[0,1,2,3]")),
        (ArrayInsert, false, "[0]", "0", "[]", Ok("[0]")),
        (ArrayInsert, false, "a.b[0]", "0", "{\"a\":{\"b\":[]}}", Ok("{\"a\":{\"b\":[0]}}")),
        (ArrayInsert, false, "[3]", "0", "[0,1]", Err(Failure::PathNotFound)),
        (ArrayInsert, false, "[-1]", "0", "[0,1]", Err(Failure::PathInvalid)),
        (ArrayInsert, false, "a", "0", "{}", Err(Failure::PathInvalid)),
        (ArrayInsert, false, "a[0]", "0", "{}", Err(Failure::PathNotFound)),
        (ArrayInsert, false, "[0]", "0", "{}", Err(Failure::PathMismatch)),
    ]);
}

#[test]
fn unique_values_are_added_once() {
    run(&[
        (ArrayAddUnique, false, "", "3", "[1,2]", Ok("[1,2,3]")),
        (ArrayAddUnique, false, "", " \"a\" ", "[ \"b\" ]", Ok("[ \"b\", \"a\"  ]")),
        (ArrayAddUnique, false, "", "null", "[]", Ok("[null]")),
        (ArrayAddUnique, false, "", " 2", "[1, 2 ]", Err(Failure::PathExists)),
        (ArrayAddUnique, false, "", "3", "[1,[]]", Err(Failure::PathMismatch)),
        (ArrayAddUnique, false, "", "3", "{}", Err(Failure::PathMismatch)),
        (ArrayAddUnique, false, "a", "3", "{}", Err(Failure::PathNotFound)),
        (ArrayAddUnique, false, "", "[]", "[]", Err(Failure::CannotInsert)),
        (ArrayAddUnique, false, "", "1,2", "[]", Err(Failure::CannotInsert)),
    ]);
}

#[test]
fn counters_count() {
    run(&[
        (Counter, false, "a", "5", "{\"a\": 10 }", Ok("{\"a\": 15 }")),
        (Counter, false, "a", "-11", "{\"a\":10}", Ok("{\"a\":-1}")),
        (Counter, false, "[0]", "1", "[-0]", Ok("[1]")),
        (Counter, false, "b", "7", "{\"a\":10}", Ok("{\"a\":10,\"b\":7}")),
        (Counter, false, "a.b", "7", "{}", Err(Failure::PathNotFound)),
        (Counter, false, "a[0]", "7", "{\"a\":[]}", Err(Failure::PathNotFound)),
        (Counter, false, "a", "1", "{\"a\":\"1\"}", Err(Failure::PathMismatch)),
        (Counter, false, "a", "1", "{\"a\":1.5}", Err(Failure::PathMismatch)),
        (Counter, false, "a", "1", "{\"a\":1e3}", Err(Failure::PathMismatch)),
        (Counter, false, "a", "1", "{\"a\":9223372036854775807}", Err(Failure::CannotInsert)),
        (Counter, false, "a", "-1", "{\"a\":-9223372036854775808}", Err(Failure::CannotInsert)),
        (Counter, false, "a", "-1", "{\"a\":9223372036854775808}", Err(Failure::NumberOutOfRange)),
        (Counter, false, "a", "-9223372036854775808", "{}", Ok("{\"a\":-9223372036854775808}")),
    ]);
    for delta in ["0", "-0", "+1", "01", "1.0", "1e3", " 1", "x", "\"1\"", "9223372036854775808"] {
        run(&[(Counter, false, "a", delta, "{\"a\":1}", Err(Failure::DeltaInvalid))]);
    }
}

#[test]
fn a_counter_tells_its_number() {
    let path = Path::parse(b"a").unwrap();
    let change = Edit {
        command: Counter,
        path: &path,
        value: b"-3",
        is_mark: false,
        creates_parents: false,
    };
    assert_eq!(edit(&mut b"{\"a\":1}".to_vec(), &change), Ok(Some(-2)));
    assert_eq!(edit(&mut b"{}".to_vec(), &change), Ok(Some(-3)));
}

#[test]
fn nothing_is_nested_beyond_the_limit() {
    let nested = |depth: usize| ["[".repeat(depth), "]".repeat(depth)].concat();
    let fits = nested(DEPTH_MAX - 1);
    let deeper = nested(DEPTH_MAX);
    let with = |value: &str| format!("{{\"a\":{value}}}");
    run(&[
        (DictAdd, false, "a", &fits, "{}", Ok(&with(&fits))),
        (DictAdd, false, "a", &deeper, "{}", Err(Failure::ValueTooDeep)),
        (DictUpsert, false, "a", &deeper, "{\"a\":1}", Err(Failure::ValueTooDeep)),
        (Replace, false, "a", &deeper, "{\"a\":1}", Err(Failure::ValueTooDeep)),
        (ArrayPushLast, false, "", &fits, "[]", Ok(&nested(DEPTH_MAX))),
        (ArrayPushLast, false, "", &deeper, "[]", Err(Failure::ValueTooDeep)),
        (ArrayPushLast, true, "a", &fits, "{}", Err(Failure::ValueTooDeep)),
        (ArrayInsert, false, "[0]", &deeper, "[]", Err(Failure::ValueTooDeep)),
    ]);
}

#[test]
fn pieces_of_any_size_are_exchanged() {
    for (range, text, expected) in [
        (0..0, "ab", "ab01234"),
        (5..5, "ab", "01234ab"),
        (1..3, "", "034"),
        (1..3, "x", "0x34"),
        (1..3, "xyz", "0xyz34"),
        (0..5, "", ""),
    ] {
        let mut document = b"01234".to_vec();
        Splice { range, text: text.into() }.apply(&mut document);
        assert_eq!(document, expected.as_bytes());
    }
}
