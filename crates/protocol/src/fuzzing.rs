//! Entrances for the fuzzers: any bytes, no panic.

use std::hint::black_box;
use std::ops::Bound;

use document::limits::KEY_SIZE_MAX;

use crate::client::Response;
use crate::collections::{CollectionPath, scope_of};
use crate::dcp::{Envelope, Message, StreamSelection, parse_failover_log, parse_rollback_seqno};
use crate::frame::{Frame, FrameLimits, Parsed};
use crate::frame_info::FrameInfos;
use crate::hello::{Agent, Feature, FeatureSet, negotiate};
use crate::opcode::Opcode;
use crate::range_scan::*;
use crate::request::*;
use crate::subdocument::{PathDocumentExtras, PathExtras, PathSpecForm, path_specs};
use crate::text::answer::{Facts, MetaHead, Recaching, meta_line};
use crate::text::reader::{Step, Taken, TextPlace, read, read_block_end, read_line};
use crate::text::request::{Reply, Request};
use crate::validate;
use crate::vbucket::VbucketChange;
use crate::with_meta::{ReturnMeta, WithMeta};

/// Reads `bytes` as a connection would: frame after frame, each with everything that can be read
/// out of it.
pub fn frame(bytes: &[u8]) {
    let size_max = FrameLimits::default().packet_size_max;
    let mut rest = bytes;
    while let Parsed::Complete { frame, consumed } = Frame::parse(rest, size_max) {
        assert!(consumed >= crate::frame::HEADER_SIZE, "a stream makes progress");
        one(&frame);
        black_box(Frame::parse_without_value(rest, size_max));
        rest = rest.get(consumed..).expect("a frame lies within the buffer");
    }
}

/// Reads `bytes` as a connection of the text protocol would, to the end.
pub fn text(bytes: &[u8]) {
    let (mut rest, mut place) = (bytes, TextPlace::default());
    loop {
        black_box(read_block_end(rest, Reply::Wanted));
        let (Taken { size, next }, swallowed) = match read(place, rest) {
            Step::Incomplete => return,
            Step::Begun { line_size, block_size, .. } => {
                let line = rest.get(..line_size).expect("a line lies within the buffer");
                assert!(read_line(line).is_some(), "a line that was kept is read again");
                let needed = line_size.saturating_add(block_size);
                assert!(rest.len() <= needed.saturating_add(1), "a block that is whole is seen");
                return;
            }
            Step::Skipped(taken) => (taken, 0),
            Step::Request { request, taken, .. } => {
                answer_to(&request);
                (taken, 0)
            }
            Step::Wrong { taken, swallowed, .. } => (taken, swallowed),
        };
        assert!(size > 0 || next != place, "a stream makes progress");
        let rest_after = rest.get(size..).expect("a step lies within the buffer");
        rest = rest_after.get(swallowed..).unwrap_or_default();
        place = next;
    }
}

/// Reads `bytes` as the value and the extras of a scan, and writes results of it.
pub fn range_scan(bytes: &[u8]) {
    black_box((RangeScanContinue::parse(bytes), cancelled_scan(bytes)));
    if let Ok(scan) = RangeScanCreate::parse(bytes)
        && let ScanSelection::Range { start, end } = &scan.selection
    {
        for bound in [start, end] {
            let (Bound::Included(name) | Bound::Excluded(name)) = bound else {
                panic!("a client says where a range begins and ends")
            };
            assert!(name.len() <= KEY_SIZE_MAX, "the ends of a range are keys");
        }
    }
    let (name, value) = bytes.split_at(bytes.len().min(KEY_SIZE_MAX));
    let mut out = Vec::new();
    encode_scanned_name(name, &mut out);
    assert!(out.ends_with(name), "a result is what was found");
    let document = ScannedDocument { name, value, ..ScannedDocument::default() };
    encode_scanned_document(&document, &mut out);
    assert!(out.ends_with(value), "a result is what was found");
}

fn answer_to(request: &Request<'_>) {
    if let Request::Meta(meta) = request {
        let mut out = Vec::new();
        let (facts, recaching) = (Some(Facts::default()), Recaching::default());
        meta_line(&mut out, MetaHead::Value(0), meta, facts, recaching);
        let line_count = out.iter().filter(|byte| **byte == b'\n').count();
        assert_eq!(line_count, 1, "an answer is one line");
    }
}

fn one(frame: &Frame<'_>) {
    for features in [FeatureSet::NONE, Feature::ALL.iter().copied().collect()] {
        black_box(DocumentKey::parse(frame.key, features).is_ok());
        if let Some(opcode) = Opcode::from_byte(frame.header.opcode) {
            black_box(validate::request(opcode, frame, features).is_ok());
            black_box(FrameInfos::parse(opcode, frame.framing_extras).is_ok());
        }
        black_box(negotiate(frame.value, features).is_ok());
    }
    requests(frame);
    responses(frame);
    dcp_messages(frame);
}

fn requests(frame: &Frame<'_>) {
    let Frame { extras, key, value, .. } = *frame;
    black_box((StoreExtras::parse(extras), CounterExtras::parse(extras), touch_expiry(extras)));
    black_box((lock_seconds(extras), get_meta_wants_datatype(extras), awaited_seqno(extras)));
    black_box((AllVbSeqnos::parse(extras), known_map(extras), verbosity(extras)));
    black_box((observed_uuid(value), observed_keys(value).count(), error_map_version(value)));
    black_box((BucketSelection::parse(key), Sasl::parse(frame), Stat::parse(frame)));
    black_box((Agent::parse(key).is_ok(), VbucketChange::parse(extras, value)));
    black_box((PathDocumentExtras::parse(extras), paths(extras, value)));
    black_box((RandomKey::parse(extras), listed_keys_count(extras)));
    black_box((RangeScanContinue::parse(extras), RangeScanCreate::parse(value).is_ok()));
    black_box((WithMeta::parse(frame), ReturnMeta::parse(extras)));
    if let Some(path) = collection_path(frame) {
        black_box((CollectionPath::parse(path), scope_of(path)));
    }
}

/// Reads a value as paths, and looks whether writing them gives the value again.
fn paths(extras: &[u8], value: &[u8]) {
    if let Some((path, rest)) = PathExtras::parse(extras).and_then(|extras| extras.split(value)) {
        assert_eq!([path, rest].concat(), value, "nothing of the value is lost");
    }
    for form in [PathSpecForm::Lookup, PathSpecForm::Mutation] {
        let mut written = Vec::new();
        let specs: Option<Vec<_>> = path_specs(form, value).collect();
        for spec in specs.iter().flatten() {
            spec.encode(form, &mut written);
        }
        assert!(specs.is_none() || written == value, "what is written is what was read");
    }
}

fn responses(frame: &Frame<'_>) {
    if let Some(response) = Response::from_frame(frame) {
        black_box((response.status(), response.mutation_token(), response.flags()));
        black_box((response.counter(), response.manifest_and_id(), response.meta()));
        black_box(response.observe_seqno());
    }
}

fn dcp_messages(frame: &Frame<'_>) {
    black_box((StreamSelection::parse(frame.value).is_ok(), parse_failover_log(frame.value)));
    black_box(parse_rollback_seqno(frame.value));
    if let Ok(message) = Message::parse(frame) {
        black_box(message.flow_control_bytes(true));
        let written = encoded(&message);
        let Parsed::Complete { frame, .. } = Frame::parse(&written, usize::MAX) else {
            panic!("a message that was read can be written")
        };
        // Some reasons of ends are told in other words.
        let read_again = Message::parse(&frame).map(|message| encoded(&message));
        assert_eq!(read_again, Ok(written), "what is written is what is read");
    }
}

fn encoded(message: &Message<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    message.encode(Envelope::default(), &mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_streams_never_panic() {
        for seed in platform::seeds::seeds(2_000) {
            let mut random = platform::Random::from_seed(seed);
            let mut stream = Vec::new();
            for _ in 0..8 {
                stream.extend(random_frame(&mut random));
            }
            frame(&stream);
            stream.truncate(usize::try_from(random.below(200)).unwrap());
            frame(&stream);
        }
    }

    #[test]
    fn random_lines_never_panic() {
        const PIECES: [&str; 24] = [
            "get ", "gat 5 ", "set ", "ms ", "mg ", "ma ", "cas ", "k ", "k", " ", "\r\n", "\n",
            "0 ", "2 ", "-1 ", "hi\r\n", "YQ== ", "b ", "v ", "N30 ", "O1 ", "MA ", "noreply",
            "\r",
        ];
        for seed in platform::seeds::seeds(2_000) {
            let mut random = platform::Random::from_seed(seed);
            let mut stream = String::new();
            for _ in 0..random.below(60) {
                let index = usize::try_from(random.below(24)).unwrap();
                stream.push_str(PIECES[index]);
            }
            text(stream.as_bytes());
        }
    }

    /// Mostly noise, but with lengths that fit together, so that it is read to the end.
    fn random_frame(random: &mut platform::Random) -> Vec<u8> {
        let mut sizes = [0; 4];
        random.fill(&mut sizes);
        let [framing, extras, key, value] = sizes.map(|size| size % 40);
        let magic = [0x80, 0x81, 0x08, 0x18][usize::try_from(random.below(4)).unwrap()];
        let framing = if magic & 0x80 == 0 { framing } else { 0 };
        let body = framing + extras + key + value;
        let mut bytes = vec![0; 24 + usize::from(body)];
        random.fill(&mut bytes);
        bytes[0] = magic;
        bytes[2..6].copy_from_slice(&[framing, key, extras, sizes[0] & 7]);
        bytes[8..12].copy_from_slice(&u32::from(body).to_be_bytes());
        bytes
    }
}
