//! Entrances for the fuzzers: any bytes, no panic.

use std::hint::black_box;

use crate::client::Response;
use crate::collections::{CollectionPath, scope_of};
use crate::dcp::{Envelope, Message, StreamSelection, parse_failover_log, parse_rollback_seqno};
use crate::frame::{Frame, FrameLimits, Parsed};
use crate::frame_info::FrameInfos;
use crate::hello::{Agent, Feature, FeatureSet, negotiate};
use crate::opcode::Opcode;
use crate::request::*;
use crate::validate;
use crate::vbucket::VbucketChange;

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
    if let Some(path) = collection_path(frame) {
        black_box((CollectionPath::parse(path), scope_of(path)));
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
