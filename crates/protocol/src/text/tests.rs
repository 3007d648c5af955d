//! Tests of the reader and of the answers' lines.

use super::answer::{Facts, MetaHead, Recaching, TextOutcome, meta_line, statistic, value_head};
use super::exptime::Exptime;
use super::key::Name;
use super::meta::{Meta, MetaOptions, MetaVerb};
use super::reader::{Step, Taken, TextPlace, read, read_block_end, read_line};
use super::request::{Count, Reply, Request, Retrieval, StoreLine, StoreVerb, TextError};

/// Everything that `bytes` say, up to where more are needed, and how many that takes.
fn steps(bytes: &[u8]) -> (Vec<Step<'_>>, usize) {
    let (mut steps, mut at, mut place) = (Vec::new(), 0, TextPlace::default());
    loop {
        let step = read(place, &bytes[at..]);
        let (taken, swallowed) = match &step {
            Step::Incomplete | Step::Begun { .. } => return (steps, at),
            Step::Skipped(taken) | Step::Request { taken, .. } => (*taken, 0),
            Step::Wrong { taken, swallowed, .. } => (*taken, *swallowed),
        };
        assert!(taken.size > 0 || taken.next != place, "a step leads on: {step:?}");
        at = (at + taken.size + swallowed).min(bytes.len());
        place = taken.next;
        if !matches!(step, Step::Skipped(_)) {
            steps.push(step);
        }
    }
}

/// The requests and errors in `bytes`, which are whole.
fn requests(bytes: &[u8]) -> Vec<Result<(Request<'_>, &[u8]), TextError>> {
    let (steps, size) = steps(bytes);
    assert_eq!(size, bytes.len(), "nothing is left of {:?}", bytes.escape_ascii().to_string());
    let told = |step| match step {
        Step::Request { request, block, .. } => Ok((request, block)),
        Step::Wrong { error, .. } => Err(error),
        step => panic!("{step:?} tells nothing"),
    };
    steps.into_iter().map(told).collect()
}

fn only(bytes: &[u8]) -> Result<(Request<'_>, &[u8]), TextError> {
    let mut requests = requests(bytes);
    assert_eq!(requests.len(), 1, "{}", bytes.escape_ascii());
    requests.remove(0)
}

fn meta(line: &[u8]) -> Meta<'_> {
    match only(line) {
        Ok((Request::Meta(meta), _)) => meta,
        other => panic!("{} is {other:?}", line.escape_ascii()),
    }
}

#[test]
fn commands_are_read() {
    let store = |verb, reply| StoreLine {
        verb,
        key: b"k",
        flags: 7,
        exptime: Exptime(-3),
        cas: None,
        reply,
    };
    let wanted = Reply::Wanted;
    for (bytes, request, block) in [
        (&b"set k 7 -3 2\r\nhi\r\n"[..], Request::Store(store(StoreVerb::Set, wanted)), "hi"),
        (b"add k 7 -3 0\r\n\r\n", Request::Store(store(StoreVerb::Add, wanted)), ""),
        (
            b"replace k 7 -3 2\r\n\r\n\r\n",
            Request::Store(store(StoreVerb::Replace, wanted)),
            "\r\n",
        ),
        (b"append k 7 -3 1\nx\r\n", Request::Store(store(StoreVerb::Append, wanted)), "x"),
        (
            b"prepend k 7 -3 1 noreply\r\nx\r\n",
            Request::Store(store(StoreVerb::Prepend, Reply::Unwanted)),
            "x",
        ),
        (
            b"cas k 7 -3 1 18446744073709551615\r\nx\r\n",
            Request::Store(StoreLine { cas: Some(u64::MAX), ..store(StoreVerb::Set, wanted) }),
            "x",
        ),
        (b"delete k\r\n", Request::Delete(b"k", wanted), ""),
        (b"delete k 0\r\n", Request::Delete(b"k", wanted), ""),
        (b"delete k 0 noreply\r\n", Request::Delete(b"k", Reply::Unwanted), ""),
        (b"touch k 5\r\n", Request::Touch(b"k", Exptime(5), wanted), ""),
        (b"stats\r\n", Request::Stats(b""), ""),
        (b"stats key k 0\r\n", Request::Stats(b"key k 0"), ""),
        (b"version\r\n", Request::Version, ""),
        (b"verbosity 1\r\n", Request::Verbosity(wanted), ""),
        (b"flush_all\r\n", Request::Flush(Exptime(0), wanted), ""),
        (b"flush_all noreply\r\n", Request::Flush(Exptime(0), Reply::Unwanted), ""),
        (b"flush_all 9 noreply\r\n", Request::Flush(Exptime(9), Reply::Unwanted), ""),
        (b"verbosity noreply\r\n", Request::Verbosity(Reply::Unwanted), ""),
        (b"quit\r\n", Request::Quit, ""),
        (b"mn\r\n", Request::Noop, ""),
    ] {
        assert_eq!(only(bytes), Ok((request, block.as_bytes())), "{}", bytes.escape_ascii());
    }
    for (line, is_increment, delta) in
        [(&b"incr k 1\r\n"[..], true, 1), (b"decr k 20\r\n", false, 20)]
    {
        let count = Count { key: b"k", is_increment, delta, reply: wanted };
        assert_eq!(only(line), Ok((Request::Count(count), &b""[..])));
    }
}

#[test]
fn each_key_of_a_retrieval_is_a_request() {
    let keys = |bytes| -> Vec<_> {
        requests(bytes).into_iter().map(|request| request.map(|(request, _)| request)).collect()
    };
    let plain = Retrieval { with_cas: false, touch: None };
    let get = |key| Ok(Request::Get(key, plain));
    let end = Ok(Request::EndOfKeys);
    assert_eq!(keys(b"get a\r\n"), [get(b"a"), end.clone()]);
    assert_eq!(keys(b"  get  a   b \r\n"), [get(b"a"), get(b"b"), end.clone()]);
    assert_eq!(keys(b"get a b\nmn\r\n"), [get(b"a"), get(b"b"), end.clone(), Ok(Request::Noop)]);
    let touching = Retrieval { with_cas: true, touch: Some(Exptime(9)) };
    assert_eq!(keys(b"gats 9 a\r\n"), [Ok(Request::Get(b"a", touching)), end.clone()]);
    assert_eq!(keys(b"gat 1\r\n"), [end]);
    for line in [&b"get\r\n"[..], b"gets  \r\n", b"gat\r\n"] {
        assert_eq!(only(line), Err(TextError::UnknownCommand));
    }
    assert_eq!(only(b"gat x a b\r\n"), Err(TextError::BadExptime));
}

#[test]
fn blanks_alone_part_the_words_of_every_command() {
    for (line, request) in [
        (&b"delete  \tk\r\n"[..], Request::Delete(b"\tk", Reply::Wanted)),
        (b"touch \tk 5\r\n", Request::Touch(b"\tk", Exptime(5), Reply::Wanted)),
        (b"stats \tk\r\n", Request::Stats(b"\tk")),
        (b"delete \r\r\n", Request::Delete(b"\r", Reply::Wanted)),
    ] {
        assert_eq!(only(line), Ok((request, &b""[..])), "{}", line.escape_ascii());
    }
    let retrieval = Retrieval { with_cas: false, touch: None };
    for (line, key) in [(&b"get  \tk\r\n"[..], &b"\tk"[..]), (b"get \r\r\n", b"\r")] {
        let got = requests(line).remove(0);
        assert_eq!(got, Ok((Request::Get(key, retrieval), &b""[..])), "{}", line.escape_ascii());
    }
    assert_eq!(meta(b"mg \tk\r\n").key, b"\tk");
    for line in [&b"\tmn\r\n"[..], b"mn\t\r\n", b"\tdelete k\r\n"] {
        assert_eq!(only(line), Err(TextError::UnknownCommand), "{}", line.escape_ascii());
    }
    assert_eq!(only(b"incr k \t1\r\n"), Err(TextError::BadDelta));
}

#[test]
fn a_retrieval_has_any_number_of_keys() {
    let mut line = b"get".to_vec();
    for number in 0..50_000 {
        line.extend_from_slice(format!(" key-{number}").as_bytes());
    }
    line.extend_from_slice(b"\r\n");
    assert_eq!(requests(&line).len(), 50_001);
}

#[test]
fn what_is_wrong_is_told_and_passed_over() {
    let long = "k".repeat(251);
    for (bytes, error) in [
        ("\r\n", TextError::UnknownCommand),
        ("bogus\r\n", TextError::UnknownCommand),
        ("GET a\r\n", TextError::UnknownCommand),
        ("cache_memlimit 5\r\n", TextError::UnknownCommand),
        ("set\r\n", TextError::UnknownCommand),
        ("set a b c d\r\n", TextError::BadFormat),
        ("set a 0 0 -1\r\n", TextError::BadFormat),
        ("set a 0 0 2147483646\r\n", TextError::BadFormat),
        ("set a x 0 1\r\nx\r\n", TextError::BadFormat),
        ("set a 4294967296 0 1\r\nx\r\n", TextError::BadFormat),
        ("cas a 0 0 1 x\r\nx\r\n", TextError::BadFormat),
        (&format!("set {long} 0 0 1\r\nx\r\n"), TextError::BadFormat),
        (&format!("delete {long}\r\n"), TextError::BadFormat),
        (&format!("get {long} a\r\n"), TextError::BadFormat),
        ("set a 0 0 2\r\nabc\r\n", TextError::BadChunk),
        ("incr a\r\n", TextError::UnknownCommand),
        ("incr a b\r\n", TextError::BadDelta),
        ("incr a -1\r\n", TextError::BadDelta),
        ("touch a x\r\n", TextError::BadExptime),
        ("delete a 5\r\n", TextError::BadDelete),
        ("flush_all x\r\n", TextError::BadExptime),
        ("verbosity\r\n", TextError::UnknownCommand),
        ("verbosity x\r\n", TextError::BadFormat),
        ("verbosity 1 2 3\r\n", TextError::UnknownCommand),
        ("quit now\r\n", TextError::UnknownCommand),
        ("touch a 1 noreply x\r\n", TextError::UnknownCommand),
        ("delete a 0 noreply x\r\n", TextError::UnknownCommand),
        ("incr a 1 2 3\r\n", TextError::UnknownCommand),
        ("flush_all 1 noreply x\r\n", TextError::UnknownCommand),
        ("mg\r\n", TextError::UnknownCommand),
        ("ms a\r\n", TextError::BadFormat),
        ("ms a v\r\n", TextError::BadFormat),
        ("ms a 1 y\r\nx\r\n", TextError::InvalidFlag),
        ("ms a 1 MX\r\nx\r\n", TextError::InvalidMode),
        ("ms a 1 Cx\r\nx\r\n", TextError::BadToken),
        ("ma a MA\r\n", TextError::InvalidMode),
        ("mg a v v\r\n", TextError::DuplicateFlag),
        ("mg a y\r\n", TextError::InvalidFlag),
        ("mg a \u{e9}\r\n", TextError::InvalidFlag),
        ("mg a E5\r\n", TextError::UnsupportedFlag),
        ("md a E5\r\n", TextError::UnsupportedFlag),
        ("mg !!! b\r\n", TextError::BadEncoding),
        (&format!("mg {long}\r\n"), TextError::BadFormat),
        ("mg a O123456789012345678901234567890123\r\n", TextError::OpaqueTooLong),
    ] {
        let and_more = format!("{bytes}mn\r\n");
        let told = requests(and_more.as_bytes());
        assert_eq!(told, [Err(error), Ok((Request::Noop, &b""[..]))], "{bytes:?}");
    }
}

#[test]
fn a_value_that_is_too_large_is_swallowed() {
    let size = document::limits::VALUE_SIZE_MAX + 1;
    for (line, reply) in [
        (format!("set a 0 0 {size} noreply\r\n"), Reply::Unwanted),
        (format!("ms a {size} q\r\n"), Reply::Wanted),
    ] {
        let taken = Taken { size: line.len(), next: TextPlace::Line };
        let error = TextError::TooLarge;
        let expected = Step::Wrong { error, reply, taken, swallowed: size + 2 };
        assert_eq!(read(TextPlace::Line, line.as_bytes()), expected);
    }
}

#[test]
fn lines_that_do_not_end_are_ended() {
    for start in [&b"x"[..], b"set ", b"get  ", b"gat 1"] {
        let mut line = start.to_vec();
        line.resize(3000, if start == b"get  " { b' ' } else { b'y' });
        let Step::Wrong { error, taken, .. } = read(TextPlace::Line, &line) else {
            panic!("{} is too long", start.escape_ascii())
        };
        assert_eq!((error, taken.next), (TextError::LineTooLong, TextPlace::RestOfLine));
    }
    assert_eq!(
        read(TextPlace::RestOfLine, b"yy"),
        Step::Skipped(Taken { size: 2, next: TextPlace::RestOfLine })
    );
    assert_eq!(
        read(TextPlace::RestOfLine, b"y\nmn"),
        Step::Skipped(Taken { size: 2, next: TextPlace::Line })
    );
    let keys = TextPlace::Keys(Retrieval { with_cas: false, touch: None });
    assert_eq!(read(keys, b"   "), Step::Skipped(Taken { size: 3, next: keys }));
    assert_eq!(read(keys, b"\r"), Step::Incomplete);
    let Step::Wrong { error, .. } = read(keys, &[b'k'; 252]) else { panic!("no key is so long") };
    assert_eq!(error, TextError::BadFormat);
}

#[test]
fn every_prefix_says_the_beginning_of_what_the_whole_says() {
    let whole =
        b"get a bc\r\nset k 0 0 4\r\na\r\nb\r\nmg k v\r\ngat 5 x\r\nms k 1\r\ny\r\nquit\r\n";
    let (all, _) = steps(whole);
    for size in 0..whole.len() {
        let (some, _) = steps(&whole[..size]);
        assert_eq!(some[..], all[..some.len()], "the first {size} bytes");
    }
}

#[test]
fn a_data_block_may_be_received_apart_from_its_line() {
    let bytes = b"set k 0 0 100000\r\nabc";
    let Step::Begun { line_size, block_size, .. } = read(TextPlace::Line, bytes) else {
        panic!("a block has begun")
    };
    assert_eq!((line_size, block_size), (18, 100_000));
    let Some(Request::Store(store)) = read_line(&bytes[..line_size]) else { panic!("a store") };
    assert_eq!(store.key, b"k");
    assert_eq!(read_block_end(b"", Reply::Wanted), Step::Incomplete);
    assert_eq!(read_block_end(b"\r", Reply::Wanted), Step::Incomplete);
    assert_eq!(
        read_block_end(b"\r\nmn", Reply::Wanted),
        Step::Skipped(Taken { size: 2, next: TextPlace::Line })
    );
    assert!(matches!(
        read_block_end(b"x\r\n", Reply::Wanted),
        Step::Wrong { error: TextError::BadChunk, .. }
    ));
    assert_eq!(read_line(b"bogus\r\n"), None);
    assert_eq!(read_line(b"mn"), None);
}

#[test]
fn flags_of_meta_commands_are_read() {
    let get = meta(b"mg k v q c f h l k t s u N30 R-5 T60 O123 P/x Lx\r\n");
    assert_eq!((get.verb, get.name.as_bytes(), get.key), (MetaVerb::Get, &b"k"[..], &b"k"[..]));
    let options = MetaOptions {
        is_quiet: true,
        wants_value: true,
        vivify: Some(Exptime(30)),
        recache_seconds: Some(-5),
        exptime: Some(Exptime(60)),
        ..MetaOptions::default()
    };
    assert_eq!(get.options, options);
    let encoded = meta(b"mg YWJj b k\r\n");
    assert_eq!((encoded.name.as_bytes(), encoded.key), (&b"abc"[..], &b"YWJj"[..]));
    assert!(matches!(encoded.name, Name::Decoded(_)));
    let store = meta(b"ms k 1 C5 F9 I MA T-1\r\nx\r\n").options;
    let wanted = (Some(5), 9, true, StoreVerb::Append, Some(Exptime(-1)));
    let MetaOptions { cas, client_flags, invalidates, store_verb, exptime, .. } = store;
    assert_eq!((cas, client_flags, invalidates, store_verb, exptime), wanted);
    let count = meta(b"ma k MD D7 J3 N0\r\n").options;
    assert_eq!((count.is_decrement, count.delta, count.initial), (true, 7, 3));
    assert_eq!((count.vivify, count.exptime), (Some(Exptime(0)), None));
    let delete = meta(b"md k x I T5\r\n").options;
    assert!(delete.removes_value && delete.invalidates);
}

#[test]
fn answers_have_the_flags_that_were_asked_for_in_their_order() {
    let facts = Facts { cas: 9, flags: 5, size: 3, ttl_seconds: None };
    let line = |request, head, facts, recaching| {
        let mut out = Vec::new();
        meta_line(&mut out, head, &meta(request), facts, recaching);
        String::from_utf8(out).expect("text")
    };
    let nothing = Recaching::default();
    let request = b"mg a s v f h l c t k O123 q\r\n";
    assert_eq!(
        line(request, MetaHead::Value(3), Some(facts), nothing),
        "VA 3 s3 f5 c9 t-1 ka O123\r\n"
    );
    assert_eq!(line(request, MetaHead::Code("EN"), None, nothing), "EN ka O123\r\n");
    let facts = Facts { ttl_seconds: Some(20), ..facts };
    let recaching = Recaching { has_won: true, is_stale: true, is_taken: false };
    let head = MetaHead::Code(TextOutcome::Ok.code());
    assert_eq!(line(b"mg a t\r\n", head, Some(facts), recaching), "HD t20 X W\r\n");
    let recaching = Recaching { has_won: false, is_stale: true, is_taken: true };
    assert_eq!(line(b"mg YQ== k b\r\n", head, Some(facts), recaching), "HD kYQ== b Z X\r\n");
}

#[test]
fn flags_of_other_commands_are_passed_over() {
    let facts = Facts { cas: 9, flags: 5, size: 3, ttl_seconds: None };
    for request in [
        &b"mg k I F9 MA D7 J3 x\r\n"[..],
        b"ms k 1 v f t h l u N5 R5 D7 J3 x\r\nx\r\n",
        b"md k c f s t v N5 R5 MI D7 F9\r\n",
        b"ma k f s h l u I R5 F9 x\r\n",
        b"me k v c Tx I x\r\n",
    ] {
        let read = meta(request);
        let wanted = MetaOptions { vivify: read.options.vivify, ..MetaOptions::default() };
        assert_eq!(read.options, wanted, "{}", request.escape_ascii());
        let mut out = Vec::new();
        meta_line(&mut out, MetaHead::Code("HD"), &read, Some(facts), Recaching::default());
        assert_eq!(out, b"HD\r\n", "{}", request.escape_ascii());
    }
}

#[test]
fn a_store_that_did_not_happen_has_no_version() {
    let mut out = Vec::new();
    let (store, head) = (meta(b"ms k 1 c k\r\nx\r\n"), MetaHead::Code("NS"));
    meta_line(&mut out, head, &store, None, Recaching::default());
    assert_eq!(out, b"NS c0 kk\r\n");
}

#[test]
fn values_and_statistics_have_their_lines() {
    let mut out = Vec::new();
    value_head(&mut out, b"k", u32::MAX, 5, None);
    value_head(&mut out, b"k", 0, 0, Some(7));
    statistic(&mut out, "name", "a\r\nvalue");
    assert_eq!(out, b"VALUE k 4294967295 5\r\nVALUE k 0 0 7\r\nSTAT name avalue\r\n");
}
