//! The text protocol under way: slices, large values, requests that wait, readers that do not read,
//! and who else comes to the memcached port.

use std::io::Write;
use std::time::Duration;

use bucket::{BucketConfig, DurabilityConfig, DurabilityMinLevel, EvictionConfig};
use bucket::{EvictionPolicy, Named};
use document::Vbid;
use platform::Random;
use platform::seeds::seeds;
use server::ServerLimits;

use crate::support::{Client, Port, bucket_config, frame, get, set};
use crate::text::TextClient;

fn value_line(key: &str, value: &[u8]) -> Vec<u8> {
    let head = format!("VALUE {key} 0 {}\r\n", value.len());
    [head.as_bytes(), value, b"\r\n"].concat()
}

fn set_line(key: &str, value: &[u8]) -> Vec<u8> {
    let head = format!("set {key} 0 0 {}\r\n", value.len());
    [head.as_bytes(), value, b"\r\n"].concat()
}

/// Has a document leave memory.
fn evict(client: &mut Client, key: &[u8]) {
    while client.ask(frame(0x93).key(key)).status != 0 {}
}

#[test]
fn slices_do_not_matter() {
    let port = Port::open();
    let mut client = TextClient::connected_to(&port);
    let bytes = b"set k 0 0 4\r\na\r\nb\r\nget k kk\r\ngat 0 k\r\nmg k v\r\nmn\r\n";
    for byte in bytes {
        client.send(&[*byte]);
    }
    let value = b"VALUE k 0 4\r\na\r\nb\r\nEND\r\n";
    client.expect(&[b"STORED\r\n", &value[..], value, b"VA 4\r\na\r\nb\r\nMN\r\n"].concat());
    for seed in seeds(2) {
        let mut random = Random::from_seed(seed);
        for size in [10, 32 << 10, (32 << 10) + 1, 70_000, 20 << 20] {
            let mut value = vec![0; size];
            random.fill(&mut value);
            let bytes = [set_line("large", &value), b"get large\r\n".to_vec()].concat();
            let mut rest = bytes.as_slice();
            while !rest.is_empty() {
                let size = usize::try_from(random.below(400_000)).unwrap().min(rest.len());
                client.send(&rest[..size]);
                rest = &rest[size..];
            }
            client.expect(&[b"STORED\r\n", &value_line("large", &value)[..], b"END\r\n"].concat());
        }
    }
}

#[test]
fn who_comes_while_keys_are_loaded_is_let_in_when_they_are() {
    let port = Port::open();
    let mut client = TextClient::connected_to(&port);
    client.send(b"set key 0 0 5\r\nvalue\r\n");
    client.expect(b"STORED\r\n");
    drop(client);
    let (port, mut loading) = port.start_again();
    let mut early = TextClient::connected_to(&port);
    early.send(b"get key\r\n");
    // The data port answers meanwhile.
    assert_eq!(port.client(&[]).ask(frame(0x0a)).status, 0);
    assert!(!early.has_answer_within(Duration::from_millis(100)));
    assert!(port.bucket.is_loading(Vbid(0)));
    loading.run_until_idle(100_000);
    early.expect(b"VALUE key 0 5\r\nvalue\r\nEND\r\n");
}

#[test]
fn large_values_are_stored_in_every_way_and_end_where_they_say() {
    let port = Port::open();
    let mut client = TextClient::connected_to(&port);
    let large = vec![b'x'; 100_000];
    let line = |words: &str| [words.as_bytes(), b"\r\n", &large[..], b"\r\n"].concat();
    client.ask(&line("replace k 0 0 100000"), b"NOT_STORED\r\n");
    client.ask(&line("append k 0 0 100000"), b"NOT_STORED\r\n");
    client.ask(&line("add k 0 0 100000"), b"STORED\r\n");
    client.ask(&line("append k 0 0 100000"), b"STORED\r\n");
    client.ask(&line("prepend k 0 0 100000"), b"STORED\r\n");
    client.ask(b"mg k s\r\n", b"HD s300000\r\n");
    client.ask(&line("cas k 0 0 100000 1"), b"EXISTS\r\n");
    client.ask(&line("set k 0 0 100000 noreply"), b"");
    client.ask(b"mg k s\r\n", b"HD s100000\r\n");
    client.ask(&line("ms k 100000 s k"), b"HD s100000 kk\r\n");
    client.ask(&line("ms fresh 100000 MA N0"), b"HD\r\n");
    client.ask(b"mg fresh s\r\n", b"HD s100000\r\n");
    client.ask(&line("ms lasting 100000 MA T60 N0"), b"HD\r\n");
    client.ask(b"mg lasting t\r\n", b"HD t-1\r\n");
    // The rest comes when the line is understood already: the block goes straight to its place.
    let brief = line("ms brief 100000 MA N30");
    let (begin, end) = brief.split_at(50_000);
    let read = port.counter("bytes_read") + 50_000;
    client.send(begin);
    port.wait_for("it is read", |_| port.counter("bytes_read") == read);
    client.ask(end, b"HD\r\n");
    client.ask(b"mg brief t\r\n", b"HD t30\r\n");
    let wrong = [&b"set k 0 0 100000\r\n"[..], &large, b"more\r\nmn\r\n"].concat();
    client.ask(&wrong, b"CLIENT_ERROR bad data chunk\r\nMN\r\n");
    client.ask(b"mg k s\r\n", b"HD s100000\r\n");
}

#[test]
fn a_retrieval_of_many_keys_is_a_pipeline() {
    let port = Port::open();
    let mut client = TextClient::connected_to(&port);
    let value = vec![b'v'; 1000];
    let mut line = b"get".to_vec();
    let mut expected = Vec::new();
    for number in 0..30_000 {
        let key = format!("key-{}", number % 1000);
        if number < 1000 {
            client.ask(&set_line(&key, &value), b"STORED\r\n");
        }
        line.extend(format!(" {key}").into_bytes());
        expected.extend(value_line(&key, &value));
    }
    line.extend(b"\r\nmn\r\n");
    expected.extend(b"END\r\nMN\r\n");
    let mut writer = client.stream().try_clone().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| writer.write_all(&line).unwrap());
        client.expect(&expected);
    });
}

#[test]
fn a_reader_that_never_reads_is_paused_within_one_line() {
    let port = Port::open();
    let mut client = TextClient::connected_to(&port);
    let value = vec![b'x'; 1 << 20];
    client.ask(&set_line("large", &value), b"STORED\r\n");
    let line = [&b"get"[..], &b" large".repeat(500), b"\r\n"].concat();
    client.send(&line);
    port.wait_for("a pause", |statistics| statistics.slow_reader_pauses > 0);
    let mut other = TextClient::connected_to(&port);
    other.ask(b"get large\r\n", &[&value_line("large", &value)[..], b"END\r\n"].concat());
    // Sent is what the sockets take, and one turn; not five hundred values.
    assert!(port.counter("cmd_get") < 100, "{}", port.counter("cmd_get"));
    for _ in 0..500 {
        client.expect(&value_line("large", &value));
    }
    client.expect(b"END\r\n");
}

#[test]
fn what_waits_for_the_disk_is_answered_in_order() {
    for policy in [EvictionPolicy::ValueOnly, EvictionPolicy::Full] {
        let eviction = EvictionConfig { policy, ..EvictionConfig::default() };
        let port = Port::with_config(BucketConfig { eviction, ..bucket_config() });
        let mut binary = port.client(&[0x07]);
        let mut client = TextClient::connected_to(&port);
        for size in [5, 40_000, 1_000_000] {
            let (old, new) = (vec![b'o'; size], vec![b'n'; size]);
            for key in ["a", "b", "c"] {
                client.ask(&set_line(key, &old), b"STORED\r\n");
            }
            for key in [b"a", b"b", b"c"] {
                evict(&mut binary, key);
            }
            let asked = [
                &b"get a absent b\r\n"[..],
                &set_line("a", &new),
                &format!("append c 0 0 {size}\r\n").into_bytes(),
                &new,
                b"\r\nget a\r\nmg c s\r\nmn\r\n",
            ];
            client.send(&asked.concat());
            let both = format!("HD s{}\r\nMN\r\n", 2 * size);
            let heard = [
                &value_line("a", &old)[..],
                &value_line("b", &old),
                b"END\r\nSTORED\r\nSTORED\r\n",
                &value_line("a", &new),
                b"END\r\n",
                both.as_bytes(),
            ];
            client.expect(&heard.concat());
        }
        evict(&mut binary, b"a");
        client.ask(b"gat 100 a b\r\nmg a t\r\n", b"");
        client.expect(&[&value_line("a", &vec![b'n'; 1_000_000])[..]].concat());
        client.expect(&value_line("b", &vec![b'o'; 1_000_000]));
        client.expect(b"END\r\nHD t100\r\n");
        assert!(port.counter("parked_requests") > 0);
    }
}

/// Says who must hold durable writes of the first vBucket: this node, and perhaps one that will
/// never say anything.
fn place(client: &mut Client, topology: &str) {
    let json = format!(r#"{{"topology":{topology}}}"#);
    let request = frame(0x3d).extras(&[1]).value(json.as_bytes()).datatype(1);
    assert_eq!(client.ask(request).status, 0, "{topology}");
}

#[test]
fn writes_of_a_bucket_that_demands_durability_wait_for_their_end_in_order() {
    let level_min = DurabilityMinLevel::by_name("persist_to_majority").unwrap();
    let durability = DurabilityConfig { level_min, ..DurabilityConfig::default() };
    let port = Port::with_config(BucketConfig { durability, ..bucket_config() });
    let mut binary = port.client(&[0x07, 0x0b]);
    let mut client = TextClient::connected_to(&port);
    client.ask(b"set k 0 0 1\r\nx\r\n", b"");
    assert!(client.line().starts_with(b"SERVER_ERROR the vBucket's replicas are not known"));
    place(&mut binary, r#"[["a"]]"#);
    let large = vec![b'x'; 50_000];
    let asked = [
        &b"set n 0 100 2\r\n10\r\nincr n 5\r\nset quiet 0 0 1 noreply\r\nx\r\nget n\r\n"[..],
        &set_line("large", &large),
        b"mg large s\r\nms k 1 k q\r\nx\r\nms k 1 k\r\ny\r\nma n v t k\r\nma n q\r\n",
        b"mg fresh N60 t v k\r\nmg fresh N60 k\r\nmd k I T30 O7\r\nmg k v t\r\n",
        b"md k\r\ndelete quiet\r\ndelete quiet\r\nmn\r\n",
    ];
    client.send(&asked.concat());
    client.expect(b"STORED\r\n15\r\nVALUE n 0 2\r\n15\r\nEND\r\nSTORED\r\nHD s50000\r\n");
    client.expect(b"HD kk\r\nVA 2 t100 kn\r\n16\r\nVA 0 t60 kfresh W\r\n\r\nHD kfresh Z\r\n");
    client.expect(b"HD O7\r\nVA 1 t30 X W\r\ny\r\nHD\r\nDELETED\r\nNOT_FOUND\r\nMN\r\n");
    place(&mut binary, r#"[["a","b"]]"#);
    client.send(b"set k 0 0 1\r\nz\r\nmn\r\n");
    port.wait_for("it waits", |_| port.counter("parked_requests") > 0);
    // Who else wants to write hears that it has to wait.
    let mut other = TextClient::connected_to(&port);
    let is_begun = |other: &mut TextClient| {
        other.send(b"append k 0 0 1\r\n+\r\n");
        other.line().starts_with(b"SERVER_ERROR a durable write of the document has not ended")
    };
    while !is_begun(&mut other) {}
    place(&mut binary, r#"[["a"]]"#);
    client.expect(b"STORED\r\nMN\r\n");
}

#[test]
fn what_takes_the_place_of_a_newer_version_is_stale_also_where_it_is_durable() {
    let level_min = DurabilityMinLevel::by_name("majority").unwrap();
    let durability = DurabilityConfig { level_min, ..DurabilityConfig::default() };
    let port = Port::with_config(BucketConfig { durability, ..bucket_config() });
    let mut binary = port.client(&[0x07, 0x0b]);
    place(&mut binary, r#"[["a"]]"#);
    let mut client = TextClient::connected_to(&port);
    client.ask(b"set k 0 0 1\r\nx\r\n", b"STORED\r\n");
    client.ask(b"ms k 1 I C1\r\ny\r\n", b"HD\r\n");
    client.ask(b"mg k v\r\n", b"VA 1 X W\r\ny\r\n");
    client.ask(b"mg k v\r\n", b"VA 1 Z X\r\ny\r\n");
    // The next one is made anew by the same client still.
    client.ask(b"ms k 1 I C1\r\nz\r\n", b"HD\r\n");
    client.ask(b"mg k v\r\n", b"VA 1 Z X\r\nz\r\n");
    client.ask(b"ms k 1 I C1\r\n5\r\nincr k 1\r\nma k\r\n", b"HD\r\n6\r\nHD\r\n");
    client.ask(b"mg k v\r\n", b"VA 1 Z X\r\n7\r\n");
    client.ask(b"ms k 1\r\n!\r\n", b"HD\r\n");
    client.ask(b"mg k v\r\n", b"VA 1\r\n!\r\n");
}

#[test]
fn what_many_add_at_once_to_a_document_that_is_missing_is_all_there() {
    const CLIENTS: usize = 8;
    let port = Port::with_workers(4, ServerLimits::default());
    let mut clients: Vec<_> = (0..CLIENTS).map(|_| TextClient::connected_to(&port)).collect();
    for round in 0..300 {
        for client in &mut clients {
            client.send(format!("ms k{round} 2 MA N0\r\nab\r\n").as_bytes());
        }
        for client in &mut clients {
            client.expect(b"HD\r\n");
        }
        let size = format!("HD s{}\r\n", 2 * CLIENTS);
        clients[0].ask(format!("mg k{round} s\r\n").as_bytes(), size.as_bytes());
    }
    // A large value, too, which is received in its place.
    let mut large = b"ms large 50000 MA N100\r\n".to_vec();
    large.extend(vec![b'x'; 50_000]);
    large.extend(b"\r\n");
    clients[0].ask(&large, b"HD\r\n");
    clients[0].ask(&large, b"HD\r\n");
    clients[0].ask(b"mg large s t\r\n", b"HD s100000 t100\r\n");
}

#[test]
fn who_wants_no_reply_gets_none_however_the_wait_ends() {
    let level_min = DurabilityMinLevel::by_name("majority").unwrap();
    let durability = DurabilityConfig { level_min, ..DurabilityConfig::default() };
    let port = Port::with_config(BucketConfig { durability, ..bucket_config() });
    let mut binary = port.client(&[0x07, 0x0b]);
    place(&mut binary, r#"[["a","b"]]"#);
    for (asked, is_told) in [("set k 0 0 1 noreply", false), ("set k 0 0 1", true)] {
        let mut client = TextClient::connected_to(&port);
        let parked = port.counter("parked_requests");
        client.send(&[asked.as_bytes(), b"\r\nz\r\nmn\r\n"].concat());
        port.wait_for("it waits", |_| port.counter("parked_requests") > parked);
        // The vBucket is a replica now: nobody can say what becomes of the write.
        assert_eq!(binary.ask(frame(0x3d).extras(&[2])).status, 0);
        if is_told {
            assert!(client.line().starts_with(b"SERVER_ERROR "));
        }
        client.expect(b"MN\r\n");
        assert_eq!(binary.ask(frame(0x3d).extras(&[4])).status, 0);
        assert_eq!(binary.ask(frame(0x3f)).status, 0);
        place(&mut binary, r#"[["a","b"]]"#);
    }
}

#[test]
fn documents_are_those_of_the_first_vbucket() {
    let port = Port::open();
    let mut binary = port.classic_client();
    let mut client = TextClient::connected_to(&port);
    assert_eq!(binary.ask(set(b"shared", b"by frames")).status, 0);
    client.ask(b"get shared\r\n", b"VALUE shared 0 9\r\nby frames\r\nEND\r\n");
    client.ask(b"set shared 5 0 8\r\nby lines\r\n", b"STORED\r\n");
    let reply = binary.ask(get(b"shared"));
    assert_eq!((reply.value, reply.extras), (b"by lines".to_vec(), vec![0, 0, 0, 5]));
}

#[test]
fn a_node_without_flush_says_so() {
    let port = Port::open();
    let mut client = TextClient::connected_to(&port);
    client.ask(b"flush_all\r\n", b"CLIENT_ERROR flush_all not allowed\r\n");
    client.ask(b"flush_all noreply\r\nmn\r\n", b"MN\r\n");
}

#[test]
fn a_full_budget_refuses_large_values_and_the_connection_goes_on() {
    let limits = ServerLimits { client_bytes_max: 1 << 20, ..ServerLimits::default() };
    let port = Port::with_limits(limits);
    let mut client = TextClient::connected_to(&port);
    let value = vec![b'x'; 2 << 20];
    let no_memory = b"SERVER_ERROR out of memory storing object\r\n";
    client.ask(&set_line("k", &value), no_memory);
    client.ask(b"get k\r\n", b"END\r\n");
    let quiet = [&b"set k 0 0 2097152 noreply\r\n"[..], &value, b"\r\nmn\r\n"].concat();
    client.ask(&quiet, b"MN\r\n");
    assert_eq!(port.counter("refused_large_requests"), 2);
}

#[test]
fn the_first_byte_decides_what_is_spoken() {
    let port = Port::open();
    let address = port.memcached_address;
    let mut binary = Client::connected_to(address);
    assert_eq!(binary.ask(set(b"k", b"v")).status, 0);
    binary.send(b"get k\r\n");
    assert!(binary.text().starts_with("SERVER_ERROR"), "who speaks in frames goes on so");
    let mut http = TextClient::connected_to(&port);
    http.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\nset k 0 0 3\r\nbad\r\n");
    assert_eq!(http.line(), b"HTTP/1.1 400 Bad Request\r\n");
    let mut redis = TextClient::connected_to(&port);
    redis.send(b"PING\r\n");
    assert!(redis.line().starts_with(b"-ERR this is the memcached port of a Settee node"));
    assert!(redis.is_closed());
    let mut noise = TextClient::connected_to(&port);
    noise.send(&[0xff; 24]);
    assert!(noise.is_closed());
    let mut known = TextClient::connected_to(&port);
    known.ask(b"mn\r\nPING\r\nquit\r\n", b"MN\r\nERROR\r\n");
    assert!(known.is_closed());
    let mut client = TextClient::connected_to(&port);
    client.ask(b"get k\r\n", b"VALUE k 0 1\r\nv\r\nEND\r\n");
    let mut data_port = port.connect();
    data_port.send(b"get k\r\n");
    assert!(data_port.text().contains("binary protocol only"), "the data port speaks frames");
}

#[test]
fn what_follows_a_request_of_http_is_not_carried_out() {
    let port = Port::open();
    let long_path = |method: &str, size| format!("{method} /{} HTTP/1.1", "a".repeat(size));
    for first in [
        long_path("POST", 10),
        long_path("POST", 2100),
        long_path("POST", 20_000),
        long_path("PATCH", 2100),
        "PROPFIND / HTTP/1.1".to_owned(),
        "POST http://host/path HTTP/1.1".to_owned(),
        format!("POST http://host/{}", "a".repeat(2100)),
        "mn\r\nGET / HTTP/1.1".to_owned(),
        "\r\nGET / HTTP/1.1".to_owned(),
    ] {
        let mut http = TextClient::connected_to(&port);
        let is_known = first.starts_with("mn");
        http.send(format!("{first}\r\nHost: x\r\n\r\nset k 0 0 3\r\nbad\r\n").as_bytes());
        let heard: Vec<_> =
            std::iter::from_fn(|| Some(http.line()).filter(|line| !line.is_empty())).collect();
        let is_told = heard.iter().any(|line| line == b"HTTP/1.1 400 Bad Request\r\n");
        assert!(is_told, "{first:.60}");
        assert_eq!(is_known, heard[0] == b"MN\r\n", "{first:.60}");
        let mut client = TextClient::connected_to(&port);
        client.ask(b"get k\r\n", b"END\r\n");
    }
    let mut client = TextClient::connected_to(&port);
    client.ask(b"POST k\r\nmn\r\n", b"ERROR\r\nMN\r\n");
}

#[test]
fn lines_without_an_end_take_no_memory() {
    let port = Port::open();
    let too_long = vec![b'x'; 2500];
    let block = &b" 0 0 22\r\nset evil 0 0 1\r\nx\r\n\r\n"[..];
    for (begin, end) in [(&b"set "[..], block), (b"", block), (b"get a", b"")] {
        let mut client = TextClient::connected_to(&port);
        client.send(&[begin, &too_long, end].concat());
        client.expect(b"CLIENT_ERROR line too long\r\n");
        assert!(client.is_closed(), "what follows may be its data block");
    }
    let mut client = TextClient::connected_to(&port);
    client.ask(b"get evil\r\n", b"END\r\n");
    let endless = vec![b'x'; 1 << 20];
    client.ask(&[&b"get b a"[..], &endless, b" b\r\nmn\r\n"].concat(), b"");
    client.expect(b"CLIENT_ERROR bad command line format\r\nMN\r\n");
}

#[test]
fn random_lines_never_stop_the_server() {
    const PIECES: [&str; 20] = [
        "get ",
        "gat 5 ",
        "set k 0 0 ",
        "ms k ",
        "mg k ",
        "ma n ",
        "md k ",
        "cas k 0 0 1 ",
        "k ",
        "\r\n",
        "\r\n",
        "\n",
        "1\r\nx\r\n",
        "40000\r\n",
        "N30 ",
        "v c t ",
        "I ",
        "noreply\r\n",
        "touch k 0",
        "stats\r\n",
    ];
    let port = Port::open();
    let mut witness = TextClient::connected_to(&port);
    for seed in seeds(60) {
        let mut random = Random::from_seed(seed);
        let client = TextClient::connected_to(&port);
        let mut text = String::from("mn\r\n");
        for _ in 0..random.below(200) {
            text.push_str(PIECES[usize::try_from(random.below(20)).unwrap()]);
        }
        for slice in text.as_bytes().chunks(usize::try_from(random.below(300)).unwrap() + 1) {
            if client.stream().write_all(slice).is_err() {
                break;
            }
        }
        drop(client);
        witness.ask(b"mn\r\n", b"MN\r\n");
    }
    port.wait_for("nothing leaks", |statistics| statistics.curr_connections == 1);
}
