//! Messages that go into producers and consumers and messages that come out: the cases and their
//! answers are in the files of `messages/`, which `BLESS=1` writes anew. `messages/producer.txt`
//! says how they are written.

mod consumer_play;
mod notation;
mod producer_play;
mod relay_play;

use blessed::check_conversations;

use consumer_play::ConsumerPlay;
use producer_play::ProducerPlay;
use relay_play::RelayPlay;

fn file(name: &str) -> String {
    format!("crates/replication/tests/it/messages/{name}.txt")
}

#[test]
fn producers_answer_as_written() {
    check_conversations(&file("producer"), ProducerPlay::default, ProducerPlay::say);
}

#[test]
fn streams_are_granted_and_refused_as_written() {
    check_conversations(&file("stream_requests"), ProducerPlay::default, ProducerPlay::say);
}

#[test]
fn streams_send_what_is_written() {
    check_conversations(&file("streams"), ProducerPlay::default, ProducerPlay::say);
}

#[test]
fn consumers_answer_as_written() {
    check_conversations(&file("consumer"), ConsumerPlay::begin, ConsumerPlay::say);
}

#[test]
fn relayed_connections_answer_as_written() {
    check_conversations(&file("relay"), RelayPlay::begin, RelayPlay::say);
}
