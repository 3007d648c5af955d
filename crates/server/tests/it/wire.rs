//! Bytes that go into connections and bytes that come out: the cases and their answers are in the
//! files of `wire/`, which `BLESS=1` writes anew. `wire/frames.txt` says how they are written.

mod frames;
mod simulated_port;

use std::time::Duration;

use blessed::{Line, bytes_of, check_conversations, number_of};
use protocol::Feature;

use frames::{Greeting, frame_of};
use simulated_port::{Options, SimulatedPort};

/// A data port, once something is said to it.
#[derive(Default)]
struct Play {
    options: Options,
    port: Option<SimulatedPort>,
    /// Frames that go out with the next one.
    together: Vec<u8>,
}

fn check(file: &str) {
    check_conversations(&format!("crates/server/tests/it/wire/{file}"), Play::default, Play::say);
}

#[test]
fn frames_are_answered_as_written() {
    check("frames.txt");
}

#[test]
fn logins_are_answered_as_written() {
    check("logins.txt");
}

#[test]
fn documents_are_answered_as_written() {
    check("documents.txt");
}

#[test]
fn vbuckets_are_answered_as_written() {
    check("vbuckets.txt");
}

#[test]
fn scans_are_answered_as_written() {
    check("scans.txt");
}

#[test]
fn versions_with_their_metadata_are_answered_as_written() {
    check("with_meta.txt");
}

#[test]
fn connections_that_receive_are_answered_as_written() {
    check("relays.txt");
}

#[test]
fn properties_are_answered_as_written() {
    check("properties.txt");
}

#[test]
fn parameters_are_answered_as_written() {
    check("parameters.txt");
}

#[test]
fn durable_writes_are_answered_as_written() {
    check("durable_writes.txt");
}

#[test]
fn collections_are_answered_as_written() {
    check("collections.txt");
}

#[test]
fn parts_of_documents_are_answered_as_written() {
    check("paths.txt");
}

#[test]
fn the_memcached_port_answers_as_written() {
    check("memcached_port.txt");
}

impl Play {
    fn say(&mut self, line: &Line<'_>) -> Vec<String> {
        match line.verb {
            "options" => {
                self.options = Options::of(line);
                return Vec::new();
            }
            "stranger" => self.port().connect(),
            "memcached" => self.port().connect_to_memcached_port(),
            "classic" => self.log_in(None),
            "client" => self.log_in(Some(line)),
            "to" => self.port().turn_to(usize::try_from(line.number(0)).unwrap()),
            "+" => {
                let frame = frame_of(line, self.port().names());
                self.together.extend(frame);
                return Vec::new();
            }
            "send" => {
                let frame = frame_of(line, self.port().names());
                let bytes = [std::mem::take(&mut self.together), frame].concat();
                self.port().write(&bytes);
            }
            "split" => {
                let (at, line) = split_number(line);
                let frame = frame_of(&line, self.port().names());
                let at = usize::try_from(at).unwrap().min(frame.len());
                self.port().write(&frame[..at]);
                self.port().write(&frame[at..]);
            }
            "dribble" => {
                let frame = frame_of(line, self.port().names());
                frame.iter().for_each(|byte| self.port().write(&[*byte]));
            }
            "bytes" => self.port().write(&bytes_of(line.rest())),
            "end" => self.port().hang_up(),
            "wait" => self.port().pass(Duration::from_millis(line.number(0))),
            "publish" => self.port().publish(i64::try_from(line.number(0)).unwrap()),
            _ => panic!("`{}` is no line of a case", line.text),
        }
        self.port().heard()
    }

    fn port(&mut self) -> &mut SimulatedPort {
        self.port.get_or_insert_with(|| SimulatedPort::open(&self.options))
    }

    /// A client that has said HELLO, if `hello` has features for it, who it is and which bucket it
    /// wants.
    fn log_in(&mut self, hello: Option<&Line<'_>>) {
        let port = self.port();
        port.connect();
        if let Some(hello) = hello {
            let features: Vec<u8> =
                hello.words.iter().flat_map(|word| feature(word).to_be_bytes()).collect();
            port.expect_success(&Greeting::hello(&features));
        }
        port.expect_success(&Greeting::login());
        port.expect_success(&Greeting::bucket());
    }
}

fn feature(word: &str) -> u16 {
    let known = Feature::ALL.iter().find(|feature| format!("{feature:?}") == word);
    known.map_or_else(|| u16::try_from(number_of(word)).unwrap(), |feature| feature.code())
}

/// The number behind a verb, and the line without it.
fn split_number<'a>(line: &Line<'a>) -> (u64, Line<'a>) {
    let words = line.words[1..].to_vec();
    (line.number(0), Line { words, ..line.clone() })
}
