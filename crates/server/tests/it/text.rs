//! The text protocol on the memcached port: the cases are in `text_cases.txt`.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::support::Port;

const PATIENCE: Duration = Duration::from_secs(20);

/// A connection to the memcached port.
pub(crate) struct TextClient {
    stream: BufReader<TcpStream>,
}

impl TextClient {
    pub(crate) fn connected_to(port: &Port) -> Self {
        let stream = platform::network::connect(port.memcached_address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream: BufReader::new(stream) }
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.get_mut().write_all(bytes).unwrap();
    }

    /// The next line with its end; empty when the connection is closed.
    pub(crate) fn line(&mut self) -> Vec<u8> {
        let mut line = Vec::new();
        // A connection that is reset is closed, too.
        self.stream.read_until(b'\n', &mut line).ok();
        line
    }

    /// Sends `bytes` and expects exactly `answer`.
    pub(crate) fn ask(&mut self, bytes: &[u8], answer: &[u8]) {
        self.send(bytes);
        self.expect(answer);
    }

    pub(crate) fn expect(&mut self, answer: &[u8]) {
        let mut heard = Vec::new();
        for _ in answer.split_inclusive(|&byte| byte == b'\n') {
            let line = self.line();
            assert!(!line.is_empty(), "closed behind {}", heard.escape_ascii());
            heard.extend(line);
        }
        let heard = with_seconds_of(&heard, answer);
        assert!(heard == answer, "heard {:.300}", heard.escape_ascii().to_string());
    }

    /// Whether something is said to it before that is over.
    pub(crate) fn has_answer_within(&self, patience: Duration) -> bool {
        let stream = self.stream();
        stream.set_read_timeout(Some(patience)).unwrap();
        let peeked = stream.peek(&mut [0]);
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        peeked.is_ok()
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        self.stream.get_ref()
    }

    pub(crate) fn is_closed(&mut self) -> bool {
        self.line().is_empty()
    }
}

/// What was heard, with the seconds to live (`t59`) that are expected where a second has passed
/// since.
fn with_seconds_of(heard: &[u8], expected: &[u8]) -> Vec<u8> {
    let mut expected = expected.split_inclusive(u8::is_ascii_whitespace);
    let mut same = Vec::with_capacity(heard.len());
    for word in heard.split_inclusive(u8::is_ascii_whitespace) {
        let wanted = expected.next().unwrap_or_default();
        let is_later = seconds_in(word).is_some_and(|left| seconds_in(wanted) == Some(left + 1));
        same.extend_from_slice(if is_later { wanted } else { word });
    }
    same
}

/// The number of a word like `t60`.
fn seconds_in(word: &[u8]) -> Option<u32> {
    let number = word.trim_ascii_end().strip_prefix(b"t")?;
    std::str::from_utf8(number).ok()?.parse().ok()
}

/// The words that stand for others in a case.
type Names = BTreeMap<String, String>;

/// The bytes of a line that is sent.
fn sent(line: &str, names: &Names) -> Vec<u8> {
    if let Some((byte, count)) = line.strip_prefix("\\x").and_then(|rest| rest.split_once('*')) {
        let byte = u8::from_str_radix(byte, 16).unwrap();
        let mut bytes = vec![byte; count.parse().unwrap()];
        bytes.extend(b"\r\n");
        return bytes;
    }
    let mut line = line.to_owned();
    for (name, word) in names {
        line = line.replace(&format!("{{{name}}}"), word);
    }
    match line.strip_suffix('\\') {
        Some(line) => line.as_bytes().to_vec(),
        None => format!("{line}\r\n").into_bytes(),
    }
}

/// Whether an answer is what a case says; learns the words that it does not know.
fn is_as_expected(heard: &str, expected: &str, names: &mut Names) -> bool {
    let Some((before, rest)) = expected.split_once('{') else { return heard == expected };
    let (name, after) = rest.split_once('}').unwrap();
    let Some(heard) = heard.strip_prefix(before) else { return false };
    let end = heard.find(' ').unwrap_or(heard.len());
    let (word, heard) = heard.split_at(end);
    let known = names.entry(name.to_owned()).or_insert_with(|| word.to_owned());
    !word.is_empty() && known == word && is_as_expected(heard, after, names)
}

fn run_case(port: &Port, case: &str) {
    let mut client = TextClient::connected_to(port);
    let mut names = Names::new();
    let name = case.lines().next().unwrap();
    for line in case.lines().skip(1) {
        match line.split_at(1) {
            (">", rest) => client.send(&sent(rest.strip_prefix(' ').unwrap_or(rest), &names)),
            ("<", rest) => {
                let expected = rest.strip_prefix(' ').unwrap_or(rest);
                let heard = with_seconds_of(&client.line(), format!("{expected}\r\n").as_bytes());
                let heard = String::from_utf8(heard).unwrap();
                let heard = heard.strip_suffix("\r\n").unwrap_or("(the end)");
                let is_right = is_as_expected(heard, expected, &mut names);
                assert!(is_right, "{name}: expected {expected:?}, heard {heard:?}");
            }
            _ => panic!("{name}: a line is sent (>) or heard (<), not {line:?}"),
        }
    }
    client.send(b"mn\r\n");
    assert_eq!(client.line(), b"MN\r\n", "{name}: something more was heard");
}

#[test]
fn every_case_is_answered_as_written() {
    let port = Port::with_flush();
    let text = include_str!("text_cases.txt");
    let is_case = |block: &&str| !block.starts_with('#');
    for case in text.trim_end().split("\n\n").filter(is_case) {
        run_case(&port, case);
    }
}
