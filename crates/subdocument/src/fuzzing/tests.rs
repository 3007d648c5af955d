//! Random documents, paths and values, whose outcomes are compared with the model.

use platform::Random;

use super::*;

const NAMES: [&str; 9] = ["a", "b", "key", "a.b", "x`y", "\u{e9}", "q\\\"r", "[0]", "\\n"];
const SCALARS: [&str; 13] = [
    "0",
    "-1",
    "17",
    "1.5",
    "1e3",
    "9223372036854775807",
    "-9223372036854775809",
    "true",
    "null",
    "\"\"",
    "\"text with ] and \\\" in it\"",
    "\"1\"",
    "-0",
];
const DELTAS: [&str; 7] =
    ["1", "-1", "0", "07", "9223372036854775807", "-9223372036854775808", "1.5"];
const COMMANDS: [u8; 12] = [0xc5, 0xc6, 0xd2, 0xc7, 0xc8, 0xc9, 0xca, 0xcb, 0xcc, 0xcd, 0xce, 0xcf];

fn pick<T: Copy>(random: &mut Random, choices: &[T]) -> T {
    choices[usize::try_from(random.below(choices.len() as u64)).unwrap()]
}

fn space(random: &mut Random, out: &mut String) {
    out.push_str(pick(random, &["", "", "", " ", "\n\t", "  "]));
}

/// A value with random white space, up to `levels` containers deep; with four it is a container.
fn value(random: &mut Random, levels: u64, out: &mut String) {
    space(random, out);
    let is_scalar = levels == 0 || levels < 4 && random.below(3) == 0;
    match if is_scalar { 0 } else { 1 + random.below(2) } {
        0 => out.push_str(pick(random, &SCALARS)),
        kind => {
            let (open, close) = if kind == 1 { ('{', '}') } else { ('[', ']') };
            out.push(open);
            for number in 0..random.below(4) {
                if number > 0 {
                    out.push(',');
                }
                if kind == 1 {
                    space(random, out);
                    out.push_str(&format!("\"{}\"", pick(random, &NAMES)));
                    space(random, out);
                    out.push(':');
                }
                value(random, levels - 1, out);
            }
            space(random, out);
            out.push(close);
        }
    }
    space(random, out);
}

fn name_in_path(name: &str) -> String {
    if name.contains(['.', '[', '`']) {
        format!("`{}`", name.replace('`', "``"))
    } else {
        name.into()
    }
}

/// A path that mostly leads somewhere, and where.
fn walk<'t>(random: &mut Random, tree: &'t Tree) -> (String, Option<&'t Tree>) {
    let mut path = String::new();
    let mut tree = Some(tree);
    while random.below(4) > 0 {
        let (step, next) = match tree {
            Some(Tree::Object(entries)) if !entries.is_empty() && random.below(8) > 0 => {
                let place = usize::try_from(random.below(entries.len() as u64)).unwrap();
                (name_in_path(&entries[place].0), Some(&entries[place].1))
            }
            Some(Tree::Array(elements)) if random.below(8) > 0 => {
                let place = usize::try_from(random.below(elements.len() as u64 + 1)).unwrap();
                (format!("[{place}]"), elements.get(place))
            }
            _ if random.below(3) == 0 => (pick(random, &["[-1]", "[0]", "[3]"]).to_owned(), None),
            _ => (name_in_path(pick(random, &NAMES)), None),
        };
        if !path.is_empty() && (!step.starts_with('[') || random.below(4) == 0) {
            path.push('.');
        }
        path.push_str(&step);
        tree = next;
    }
    (path, tree)
}

/// A path that often leads to what the command needs.
fn path(random: &mut Random, tree: &Tree, opcode: u8) -> String {
    let mut path = String::new();
    for _ in 0..5 {
        let (walked, end) = walk(random, tree);
        let suits = match (opcode, end) {
            (0xc7, end) => end.is_none() && !walked.ends_with(']'),
            (0xcb | 0xcc, end) => matches!(end, Some(Tree::Array(_))),
            (0xcd, _) => walked.ends_with(']'),
            (0xce, end) => end.is_some_and(|end| end.depth() == 1),
            (0xcf, end) => matches!(end, Some(Tree::Scalar(text)) if text.parse::<i64>().is_ok()),
            _ => true,
        };
        path = walked;
        if suits {
            break;
        }
    }
    path
}

fn argument(random: &mut Random, opcode: u8) -> String {
    if opcode == 0xcf {
        return pick(random, &DELTAS).to_owned();
    }
    let mut text = String::new();
    value(random, if opcode == 0xce { 0 } else { 2 }, &mut text);
    match random.below(8) {
        0 => text.push_str(",1"),
        1 => text.push(pick(random, &[',', '}', '1', '"'])),
        _ => {}
    }
    text
}

#[test]
fn commands_do_what_the_model_does() {
    let mut successes = [0; COMMANDS.len()];
    let seeds = platform::seeds::seeds(60_000);
    let count = seeds.clone().count();
    for seed in seeds {
        let mut random = Random::from_seed(seed);
        let mut document = String::new();
        value(&mut random, 4, &mut document);
        let number = usize::try_from(random.below(COMMANDS.len() as u64)).unwrap();
        let opcode = COMMANDS[number];
        let path = path(&mut random, &Tree::parse(document.as_bytes()), opcode);
        let argument = argument(&mut random, opcode);
        let creates_parents = random.below(2) == 0;
        let outcome = std::panic::catch_unwind(|| {
            one_json(argument.as_bytes());
            let (path, argument) = (path.as_bytes(), argument.as_bytes());
            let command = Command::from_opcode(opcode).unwrap();
            compare(command, creates_parents, path, argument, document.as_bytes())
        });
        let made = outcome.unwrap_or_else(|_| panic!("seed {seed}"));
        successes[number] += usize::from(made == Some(true));
    }
    // Of as many seeds as run by default, each command succeeds with hundreds.
    let enough = count / 300;
    assert!(successes.iter().all(|successes| *successes >= enough), "{successes:?}");
}

#[test]
fn random_bytes_never_panic() {
    for seed in platform::seeds::seeds(2_000) {
        let mut random = Random::from_seed(seed);
        let mut bytes = vec![0; usize::try_from(random.below(120)).unwrap()];
        random.fill(&mut bytes);
        let letters = b"{}[]\",:.`\\ab01-\x00\xff";
        for byte in &mut bytes {
            *byte = letters[usize::from(*byte) % letters.len()];
        }
        let command = pick(&mut random, &COMMANDS);
        path_command(&[&[command, 1], &bytes[..]].concat());
        let datatype = pick(&mut random, &[0, 1, 4, 5]);
        let shape = u8::try_from(random.below(8)).unwrap();
        multi_request(&[&[shape, 1, datatype, 0, 20], &bytes[..]].concat());
    }
}

#[test]
fn random_requests_leave_documents_that_can_be_read() {
    let paths = ["txn", "txn.a", "_s", "_s[0]", "a", "a.b", "b[0]", "", "$document", "$XTOC"];
    let values = ["1", "{\"x\":1}", "[]", "\"${Mutation.CAS}\"", "\"${Mutation.value_crc32c}\""];
    for seed in platform::seeds::seeds(20_000) {
        let mut random = Random::from_seed(seed);
        let body = pick(&mut random, &["{\"a\":{},\"b\":[1]}", "raw", ""]);
        let section: &[u8] = b"\0\0\0\x0b\0\0\0\x07_s\0[7]\0";
        let (datatype, stored) = match (random.below(2), body.starts_with('{')) {
            (0, is_json) => (u8::from(is_json), body.as_bytes().to_vec()),
            (_, is_json) => (4 | u8::from(is_json), [section, body.as_bytes()].concat()),
        };
        let shape = pick(&mut random, &[0, 0, 0, 4, 2, 1]);
        let flags = pick(&mut random, &[0, 0, 1, 2, 4, 0x0e, 0x14]);
        let size = u8::try_from(stored.len()).unwrap();
        let mut input = [&[shape, flags, datatype, 0, size], &stored[..]].concat();
        for is_body in [false, true] {
            for _ in 0..random.below(4) {
                let opcode = pick(&mut random, &[0xc7, 0xc8, 0xc9, 0xca, 0xcb, 0xce, 0xcf, 0xd3]);
                let path_flags = if is_body { 0 } else { pick(&mut random, &[4, 5, 0x14, 0x24]) };
                input.extend([opcode, path_flags]);
                input.extend(pick(&mut random, &paths).as_bytes());
                input.push(0);
                let has_value = !matches!(opcode, 0xc9 | 0xd3);
                input.extend(pick(&mut random, &values).as_bytes().iter().filter(|_| has_value));
                input.push(0);
            }
        }
        let outcome = std::panic::catch_unwind(|| multi_request(&input));
        assert!(outcome.is_ok(), "seed {seed}");
    }
}
