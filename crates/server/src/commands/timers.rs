//! GET_CMD_TIMER: how long a command takes. Source: docs/specification/protocol.md, section 18.3.

use auth::{Privilege, PrivilegeSet};
use document::histogram::HistogramSnapshot;
use protocol::{Opcode, Status};
use serde_json::json;

use super::bootstrap::selectable;
use super::stat::coarser;
use crate::command_statistics::timings_of;
use crate::connection::{Connection, Done, Request, Turn};
use crate::privileges::{Need, NeededIn};

/// What stands for all buckets, and for connections that have selected none.
const ALL_BUCKETS: &[u8] = b"/all/";
const NANOS_PER_MICRO: u64 = 1000;

/// GET_CMD_TIMER. Any bucket that the user may use is told of, the selected one without a name.
pub(super) fn get_timer(
    connection: &Connection,
    request: &Request<'_>,
    turn: &mut Turn<'_>,
) -> Done {
    let reply = request.reply(connection);
    let opcode = request.frame.extras.first().copied().and_then(Opcode::from_byte);
    let Some(opcode) = opcode else {
        reply.fail(turn, Status::Einval, "the extras are the number of a command");
        return Done::Answered;
    };
    let name = request.frame.key;
    let shared = turn.shared;
    if name == ALL_BUCKETS {
        if !connection.privileges().contains(Privilege::Stats) {
            let all = PrivilegeSet::of(&[Privilege::Stats]);
            let need = Need { place: NeededIn::Node, all, one: PrivilegeSet::NONE };
            connection.refuse_privilege(&need, request, turn);
            return Done::Answered;
        }
        let json = to_json(&timings_of(opcode, shared.all_counters()));
        reply.json(turn, Status::Success, &json);
        return Done::Answered;
    }
    let part = match std::str::from_utf8(name) {
        Ok("") => connection.bucket.clone(),
        Ok(name) => selectable(connection, name, turn),
        Err(_) => None,
    };
    match part {
        Some(part) => {
            let json = to_json(&timings_of(opcode, shared.counters_of(&part)));
            reply.json(turn, Status::Success, &json);
        }
        None if name.is_empty() => {
            reply.fail(turn, Status::NoBucket, "select a bucket first, or name one");
        }
        None => {
            let context = "there is no such bucket, or no right to use it";
            reply.fail(turn, Status::KeyEnoent, context);
        }
    }
    Done::Answered
}

/// The histogram in microseconds: where the first bucket begins, of each bucket its end, how many
/// values are in it, and the percentage of all values that are below its end.
fn to_json(nanos: &HistogramSnapshot) -> String {
    let buckets = coarser(nanos, NANOS_PER_MICRO);
    let total = nanos.count();
    let mut passed = 0;
    let data = buckets.iter().map(|bucket| {
        passed += bucket.count;
        json!([bucket.to, bucket.count, percentage(passed, total)])
    });
    let data: Vec<_> = data.collect();
    let low = buckets.first().map_or(0, |bucket| bucket.from);
    json!({ "bucketsLow": low, "data": data, "total": total }).to_string()
}

#[expect(clippy::cast_precision_loss, reason = "a percentage is for people")]
fn percentage(part: u64, whole: u64) -> f64 {
    part as f64 * 100.0 / whole as f64
}

#[cfg(test)]
mod tests {
    use document::histogram::Histogram;

    use super::*;

    #[test]
    fn a_histogram_is_told_in_microseconds() {
        let histogram = Histogram::new();
        assert_eq!(to_json(&histogram.snapshot()), r#"{"bucketsLow":0,"data":[],"total":0}"#);
        [1_500, 1_600, 4_000, 4_500].iter().for_each(|&nanos| histogram.record(nanos));
        let expected = r#"{"bucketsLow":1,"data":[[2,2,50.0],[5,2,100.0]],"total":4}"#;
        assert_eq!(to_json(&histogram.snapshot()), expected);
    }
}
