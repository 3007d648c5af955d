//! Streams of replication.

use replication::consumer::StreamStatus as IncomingStatus;
use replication::producer::{ProducerStatus, StreamStatus};
use replication::{LinkStatus, RelayStatus};

use super::emitter::{Emitter, NoGroup, vbucket_argument};
use crate::buckets::BucketPart;
use crate::dcp_statistics::{DCP_STATISTICS, DcpStatistics, by_kind, in_log, remaining};

/// `dcp`: every connection and its streams.
pub(super) fn dcp(
    emitter: &mut Emitter<'_, '_>,
    part: &BucketPart,
    _: &str,
) -> Result<(), NoGroup> {
    let producers = part.hub.producer_status();
    for producer in &producers {
        connection(emitter, part, producer);
        for stream in &producer.streams {
            stream_of(emitter, &producer.name, stream);
        }
    }
    let consumers = part.hub.consumer_status();
    consumers.iter().for_each(|consumer| followed(emitter, consumer));
    let relays = part.hub.relay_status();
    relays.iter().for_each(|relay| relayed(emitter, relay));
    let consumer_count = consumers.len() + relays.len();
    emitter.emit("ep_dcp_count", producers.len() + consumer_count);
    emitter.emit("ep_dcp_consumer_count", consumer_count);
    emitter.emit("ep_dcp_producer_count", producers.len());
    emitter.emit("ep_dcp_total_bytes", sum(&producers, |one| one.bytes_sent));
    Ok(())
}

fn connection(emitter: &mut Emitter<'_, '_>, part: &BucketPart, producer: &ProducerStatus) {
    let name = |what: &str| format!("eq_dcpq:{}:{what}", producer.name);
    emitter.emit(&name("type"), "producer");
    emitter.emit(&name("connected"), true);
    emitter.emit(&name("items_sent"), producer.items_sent);
    let remaining = remaining(&part.bucket, producer);
    emitter.emit(&name("items_remaining"), remaining);
    emitter.emit(&name("total_bytes_sent"), producer.bytes_sent);
    emitter.emit(&name("max_buffer_bytes"), producer.buffer_bytes);
    emitter.emit(&name("unacked_bytes"), producer.unacked_bytes);
    emitter.emit(&name("total_acked_bytes"), producer.acked_bytes);
    emitter.emit(&name("backfill_buffer_bytes_read"), producer.backfill_bytes);
    emitter.emit(&name("num_streams"), producer.streams.len());
}

fn stream_of(emitter: &mut Emitter<'_, '_>, producer: &str, stream: &StreamStatus) {
    let vbid = stream.vbid.0;
    let name = |what: &str| match stream.stream_id {
        None => format!("eq_dcpq:{producer}:stream_{vbid}_{what}"),
        Some(id) => format!("eq_dcpq:{producer}:sid:{id}:stream_{vbid}_{what}"),
    };
    emitter.emit(&name("state"), stream.state_name());
    emitter.emit(&name("opaque"), stream.opaque);
    emitter.emit(&name("flags"), stream.flags);
    emitter.emit(&name("start_seqno"), stream.start);
    emitter.emit(&name("end_seqno"), stream.end);
    emitter.emit(&name("last_sent_seqno"), stream.last_sent.0);
    emitter.emit(&name("last_read_seqno"), stream.last_read.0);
    emitter.emit(&name("backfill_sent"), stream.backfill_items);
    emitter.emit(&name("memory_phase"), stream.memory_items);
}

/// A connection to a node whose vBuckets are followed here.
fn followed(emitter: &mut Emitter<'_, '_>, consumer: &LinkStatus) {
    let name = |what: &str| format!("eq_dcpq:{}:{what}", consumer.connection);
    emitter.emit(&name("type"), "consumer");
    emitter.emit(&name("connected"), consumer.is_open);
    emitter.emit(&name("tls"), consumer.is_tls);
    emitter.emit(&name("connects"), consumer.connects);
    emitter.emit(&name("unacked_bytes"), consumer.unacknowledged_bytes);
    incoming(emitter, &consumer.connection, &consumer.streams);
}

/// A connection that a manager relays.
fn relayed(emitter: &mut Emitter<'_, '_>, relay: &RelayStatus) {
    let name = |what: &str| format!("eq_dcpq:{}:{what}", relay.connection);
    emitter.emit(&name("type"), "consumer");
    emitter.emit(&name("connected"), relay.is_open);
    emitter.emit(&name("unacked_bytes"), relay.unacknowledged_bytes);
    incoming(emitter, &relay.connection, &relay.streams);
}

/// The streams of a connection that receives.
fn incoming(emitter: &mut Emitter<'_, '_>, connection: &str, streams: &[IncomingStatus]) {
    let name = |what: &str| format!("eq_dcpq:{connection}:{what}");
    emitter.emit(&name("num_streams"), streams.len());
    for stream in streams {
        let name = |what: &str| name(&format!("stream_{}_{what}", stream.vbid.0));
        emitter.emit(&name("state"), stream.state);
        emitter.emit(&name("opaque"), stream.opaque);
        emitter.emit(&name("items_received"), stream.received);
        emitter.emit(&name("last_acknowledged_seqno"), stream.acknowledged.0);
    }
}

/// `dcpagg <separator>`: the same added up by the part of the names before the separator.
pub(super) fn dcp_aggregated(
    emitter: &mut Emitter<'_, '_>,
    part: &BucketPart,
    argument: &str,
) -> Result<(), NoGroup> {
    let separator = if argument.is_empty() { ":" } else { argument };
    let kinds = by_kind(&part.bucket, &part.hub, separator);
    let total = DcpStatistics::total(kinds.values());
    let total = (":total".to_owned(), total);
    for (kind, statistics) in kinds.into_iter().chain([total]) {
        for statistic in DCP_STATISTICS {
            for name in statistic.names_in("dcpagg") {
                emitter.emit(&format!("{kind}:{name}"), (statistic.read)(&statistics));
            }
        }
    }
    Ok(())
}

fn sum(producers: &[ProducerStatus], what: impl Fn(&ProducerStatus) -> u64) -> u64 {
    producers.iter().map(what).sum()
}

/// `dcp-vbtakeover <vb> [connection]`: how much of a vBucket that moves has yet to go over.
pub(super) fn takeover(
    emitter: &mut Emitter<'_, '_>,
    part: &BucketPart,
    argument: &str,
) -> Result<(), NoGroup> {
    let (vbid, wanted) = argument.split_once(' ').unwrap_or((argument, ""));
    let Some(vbid) = vbucket_argument(vbid)? else { return Err(NoGroup::BadArgument) };
    let mut found = None;
    part.bucket.with_vbucket(vbid, |vbucket| {
        let items = vbucket.checkpoints().extent().items;
        let tombstones = vbucket.tombstone_count();
        found = Some((vbucket.document_count(), tombstones, items, vbucket.is_takeover_late()));
    });
    let Some((documents, tombstones, log_items, is_late)) = found else {
        return Err(NoGroup::NoSuchVbucket);
    };
    let wanted = wanted.trim();
    let producers = part.hub.producer_status();
    let names_it = |one: &&ProducerStatus| one.name == wanted.trim_start_matches("eq_dcpq:");
    let producer = producers.iter().find(names_it);
    let stream =
        producer.and_then(|one| one.streams.iter().find(|stream| stream.vbid == vbid).cloned());
    let everything = number(documents) + number(tombstones);
    let (status, in_log, unread, estimate) = match &stream {
        None if wanted.is_empty() => ("does_not_exist", number(log_items), 0, everything),
        None if producer.is_none() => {
            ("connection_does_not_exist", number(log_items), 0, everything)
        }
        None => ("stream_does_not_exist", number(log_items), 0, everything),
        Some(stream) => {
            let in_log = in_log(&part.bucket, stream);
            let unread = stream.backfill_remaining;
            let estimate = unread.unwrap_or(everything) + in_log + stream.waiting_messages;
            (takeover_state(stream), in_log, unread.unwrap_or(0), estimate)
        }
    };
    emitter.emit("status", status);
    emitter.emit("name", wanted);
    emitter.emit("vb_items", documents);
    emitter.emit("chk_items", in_log);
    emitter.emit("on_disk_deletes", tombstones);
    emitter.emit("backfillRemaining", unread);
    emitter.emit("estimate", estimate);
    emitter.emit("takeover_backed_up", is_late);
    Ok(())
}

/// What a stream does, in the words of this group.
fn takeover_state(stream: &StreamStatus) -> &'static str {
    match stream.state_name() {
        "backfilling" if stream.backfill_remaining.is_none() => "calculating-item-count",
        "backfilling" => "backfilling",
        "dead" => "stream_is_dead",
        _ => "in-memory",
    }
}

fn number(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
