//! How long commands on paths take: `cargo run --release -p subdocument --example path_speed`.
//! Prints nanoseconds a request, its check included, the best of seven rounds.
#![expect(clippy::print_stdout, reason = "it prints what it measures")]

use std::hint::black_box;

use document::{Cas, Datatype};
use platform::Clock;
use subdocument::{
    ClientRights, ClockFacts, DocumentFacts, DocumentFlags, LookupRequest, MutationRequest,
    RawSpec, RequestForm, RequestHead, Specs, StoredDocument,
};

const ROUNDS: u32 = 7;
const REQUESTS: u32 = 20_000;
/// Bytes that the array in the middle of the document fills.
const SIZE: usize = 4096;

const GET: u8 = 0xc5;
const DICT_UPSERT: u8 = 0xc8;

fn main() {
    let text = hotel();
    println!("{} bytes", text.len());
    let stored = StoredDocument {
        value: text.as_bytes(),
        datatype: Datatype::JSON,
        facts: DocumentFacts::default(),
    };
    for path in ["name", "reviews[5].ratings.Overall", "reviews[-1].date", "vacancy", "missing"] {
        measure(&format!("get {path}"), || get(path, &stored));
    }
    measure("upsert vacancy", || upsert("vacancy", b"{\"rooms\":[1,2,3]}", &stored));
    measure("upsert name, a value as large as the document", || {
        upsert("name", text.as_bytes(), &stored);
    });
    measure("is it JSON?", || {
        black_box(document::datatype::is_json(text.as_bytes()));
    });
}

/// A document like many: short fields around an array of objects.
fn hotel() -> String {
    let mut text = r#"{"name":"Hotel","address":"Street 1","reviews":["#.to_owned();
    for number in 0.. {
        text.push_str(&format!(
            r#"{{"content":"A pleasant stay, number {number}, with a friendly \"breakfast\".","#
        ));
        text.push_str(&format!(
            r#""ratings":{{"Service":5,"Cleanliness":4,"Overall":{},"Value":4}},"#,
            number % 5
        ));
        text.push_str(r#""author":"A guest","date":"2013-06-22 18:33:50 +0300"}"#);
        if text.len() >= SIZE {
            break;
        }
        text.push(',');
    }
    text.push_str(r#"],"country":"France","vacancy":true}"#);
    text
}

fn head() -> RequestHead {
    RequestHead { form: RequestForm::Multi, flags: DocumentFlags::default(), cas: Cas::ANY }
}

fn get(path: &str, stored: &StoredDocument<'_>) {
    let mut specs = Specs::new();
    let raw = RawSpec { opcode: GET, path_flags: 0, path: path.as_bytes(), value: b"" };
    specs.push(raw).expect("GET is a command");
    let request = LookupRequest::new(head(), &specs, ClientRights::default());
    let request = request.expect("the request is well-formed");
    let results = request.look_up(Some(stored), ClockFacts::default());
    for result in results.expect("the document is there") {
        black_box(result.is_ok());
    }
}

fn upsert(path: &str, value: &[u8], stored: &StoredDocument<'_>) {
    let mut specs = Specs::new();
    let raw = RawSpec { opcode: DICT_UPSERT, path_flags: 0, path: path.as_bytes(), value };
    specs.push(raw).expect("DICT_UPSERT is a command");
    let request = MutationRequest::new(head(), &specs, ClientRights::default());
    let request = request.expect("the request is well-formed");
    black_box(request.mutate(Some(stored)).expect("the value fits"));
}

fn measure(name: &str, mut request: impl FnMut()) {
    let clock = Clock::real();
    let round = |_| {
        let start = clock.now();
        (0..REQUESTS).for_each(|_| request());
        clock.now().since(start).as_nanos() / u128::from(REQUESTS)
    };
    let best = (0..ROUNDS).map(round).min().expect("there are rounds");
    println!("{best:7} ns  {name}");
}
