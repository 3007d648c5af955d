//! What a consumer and its producer have agreed on. Source: docs/specification/protocol.md,
//! section 20.3.

use std::time::Duration;

use protocol::dcp::OpenFlags;
use protocol::{Feature, FeatureSet, Status};
use vbucket::checkpoint::Tenure;

use super::stream::ByKey;

/// The shortest time between two NOOPs.
const NOOP_INTERVAL_SECONDS_MIN: f64 = 0.1;
/// The longest: what no consumer means.
const NOOP_INTERVAL_SECONDS_MAX: f64 = 1e6;

/// The agreements of one connection.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) flags: OpenFlags,
    pub(super) features: FeatureSet,
    /// Prepares, commits and aborts are sent.
    pub(super) has_sync_writes: bool,
    /// The consumer's name among the nodes that hold durable writes.
    pub(super) consumer_name: Option<String>,
    pub(super) has_stream_ids: bool,
    pub(super) has_v7_statuses: bool,
    /// Expirations have an opcode of their own, and the form with a time.
    pub(super) has_expirations: bool,
    pub(super) ends_closed_streams: bool,
    pub(super) compresses_values: bool,
    pub(super) has_marker_2_2: bool,
    /// Events come in the form of the files.
    pub(super) has_flat_buffers: bool,
    pub(super) out_of_order: OutOfOrder,
    pub(super) backfills_one_by_one: bool,
}

/// Whether snapshots may come in the order of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OutOfOrder {
    /// No.
    No,
    /// Yes.
    Yes,
    /// Yes, and the highest seqno is told.
    YesWithSeqnoAdvanced,
}

/// What a control asks of other parts of the producer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Change {
    /// Nothing more.
    None,
    /// NOOPs are to be sent, or not.
    Noop(bool),
    /// How often.
    NoopInterval(Duration),
    /// The consumer has a buffer of so many bytes.
    Buffer(u32),
}

/// What is answered to a control that is not granted.
type Refused = (Status, &'static str);

const WRONG_VALUE: Refused = (Status::Einval, "the control does not take this value");

impl Settings {
    pub(super) fn new(flags: OpenFlags, features: FeatureSet) -> Self {
        Self {
            flags,
            features,
            has_sync_writes: false,
            consumer_name: None,
            has_stream_ids: false,
            has_v7_statuses: false,
            has_expirations: false,
            ends_closed_streams: false,
            compresses_values: false,
            has_marker_2_2: false,
            has_flat_buffers: false,
            out_of_order: OutOfOrder::No,
            backfills_one_by_one: false,
        }
    }

    /// Whether keys have their collection.
    pub(super) fn has_collections(&self) -> bool {
        self.features.contains(Feature::Collections)
    }

    /// Whether the consumer holds durable writes and says so.
    pub(super) fn is_sync_replication(&self) -> bool {
        self.has_sync_writes && self.consumer_name.is_some()
    }

    /// Whether deletions say when. Expirations do, so who takes those takes the form for all.
    pub(super) fn has_delete_times(&self) -> bool {
        self.has_expirations || self.flags.contains(OpenFlags::DELETE_TIMES)
    }

    /// How long a stream keeps its place in the log. Durable writes wait for a replica.
    pub(super) fn cursor_tenure(&self) -> Tenure {
        match self.is_sync_replication() {
            true => Tenure::WhileGettingOn,
            false => Tenure::WhileMemoryLasts,
        }
    }

    /// Whether and how a first backfill may come in the order of keys.
    pub(super) fn by_key(&self) -> Option<ByKey> {
        match self.out_of_order {
            _ if self.has_sync_writes => None,
            OutOfOrder::No => None,
            OutOfOrder::Yes => Some(ByKey { tells_seqno: false }),
            OutOfOrder::YesWithSeqnoAdvanced => Some(ByKey { tells_seqno: true }),
        }
    }

    /// Agrees to a control, or not.
    pub(super) fn control(&mut self, key: &[u8], value: &[u8]) -> Result<Change, Refused> {
        let key = std::str::from_utf8(key).map_err(|_| WRONG_VALUE)?;
        let value = std::str::from_utf8(value).map_err(|_| WRONG_VALUE)?;
        let is_true = value == "true";
        match key {
            "enable_noop" => return flag(value).map(Change::Noop),
            "set_noop_interval" => return noop_interval(value).map(Change::NoopInterval),
            "connection_buffer_size" => {
                return value.parse().map(Change::Buffer).map_err(|_| WRONG_VALUE);
            }
            "stream_buffer_size" => return Err(unsupported("streams have no buffer of their own")),
            // Connections have their turns one after the other.
            "set_priority" => one_of(value, &["high", "medium", "low"])?,
            "backfill_order" => {
                one_of(value, &["round-robin", "sequential"])?;
                self.backfills_one_by_one = value == "sequential";
            }
            "force_value_compression" => {
                let compresses = flag(value)?;
                if compresses && !self.features.contains(Feature::Snappy) {
                    return Err((Status::Einval, "compression was not negotiated"));
                }
                self.compresses_values = compresses;
            }
            // A cursor is dropped when memory is short, whether or not the consumer knows of it:
            // it sees a snapshot from disk, as after any backfill.
            "supports_cursor_dropping"
            | "supports_cursor_dropping_vulcan"
            | "supports_hifi_MFU" => {
                flag(value)?;
            }
            "send_stream_end_on_client_close_stream" => self.ends_closed_streams = flag(value)?,
            "enable_expiry_opcode" => self.has_expirations = flag(value)?,
            "enable_stream_id" => self.enable_stream_ids(is_true)?,
            "enable_sync_writes" => {
                let has_sync_writes = flag(value)?;
                if has_sync_writes && self.has_stream_ids {
                    return Err(unsupported("durable writes and stream ids exclude each other"));
                }
                self.has_sync_writes = has_sync_writes;
            }
            "consumer_name" => {
                if value.is_empty() {
                    return Err(WRONG_VALUE);
                }
                self.consumer_name = Some(value.to_owned());
            }
            "enable_out_of_order_snapshots" => {
                self.out_of_order = match value {
                    "true_with_seqno_advanced" => OutOfOrder::YesWithSeqnoAdvanced,
                    value if flag(value)? => OutOfOrder::Yes,
                    _ => OutOfOrder::No,
                };
            }
            "include_deleted_user_xattrs" => {
                // A question: the answer is in how the connection was opened.
                if !is_true || !self.flags.contains(OpenFlags::DELETED_USER_XATTRS) {
                    return Err((Status::Einval, "the connection was not opened so"));
                }
            }
            "v7_dcp_status_codes" => self.has_v7_statuses = only_true(is_true)?,
            "flatbuffers_system_events" => self.has_flat_buffers = only_true(is_true)?,
            "change_streams" => return Err(unsupported("files keep no history")),
            "max_marker_version" => self.set_marker_version(value)?,
            "cache_transfer" => return Err(unsupported("memory is not transferred")),
            _ => return Err((Status::Einval, "there is no such control")),
        }
        Ok(Change::None)
    }

    fn enable_stream_ids(&mut self, is_true: bool) -> Result<(), Refused> {
        if !is_true {
            let why = "stream ids cannot be switched off";
            return if self.has_stream_ids { Err(unsupported(why)) } else { Err(WRONG_VALUE) };
        }
        if self.has_sync_writes {
            return Err(unsupported("durable writes and stream ids exclude each other"));
        }
        self.has_stream_ids = true;
        Ok(())
    }

    fn set_marker_version(&mut self, value: &str) -> Result<(), Refused> {
        if !self.has_collections() {
            return Err(unsupported("markers of that version need collections"));
        }
        one_of(value, &["2.0", "2.2"])?;
        self.has_marker_2_2 = value == "2.2";
        Ok(())
    }
}

fn unsupported(context: &'static str) -> Refused {
    (Status::NotSupported, context)
}

fn one_of(value: &str, known: &[&str]) -> Result<(), Refused> {
    if known.contains(&value) { Ok(()) } else { Err(WRONG_VALUE) }
}

fn flag(value: &str) -> Result<bool, Refused> {
    match value {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(WRONG_VALUE),
    }
}

fn only_true(is_true: bool) -> Result<bool, Refused> {
    if is_true { Ok(true) } else { Err(WRONG_VALUE) }
}

fn noop_interval(value: &str) -> Result<Duration, Refused> {
    let seconds: f64 = value.parse().map_err(|_| WRONG_VALUE)?;
    if !(NOOP_INTERVAL_SECONDS_MIN..=NOOP_INTERVAL_SECONDS_MAX).contains(&seconds) {
        return Err(WRONG_VALUE);
    }
    Ok(Duration::from_secs_f64(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(flags: u32, features: &[Feature]) -> Settings {
        Settings::new(OpenFlags(flags), features.iter().copied().collect())
    }

    #[test]
    fn controls_are_granted_as_the_specification_says() {
        use Feature::{Collections, Snappy};
        use Status::{Einval, NotSupported};
        let none: &[Feature] = &[];
        for (flags, features, controls, expected) in [
            (1, none, &["enable_noop=true"][..], Ok(Change::Noop(true))),
            (1, none, &["enable_noop=false"], Ok(Change::Noop(false))),
            (1, none, &["enable_noop=never"], Err(Einval)),
            (1, &[Snappy], &["force_value_compression=1"], Err(Einval)),
            (1, none, &["supports_cursor_dropping=yes"], Err(Einval)),
            (1, none, &["supports_hifi_MFU=on"], Err(Einval)),
            (1, none, &["send_stream_end_on_client_close_stream="], Err(Einval)),
            (1, none, &["enable_expiry_opcode=TRUE"], Err(Einval)),
            (1, none, &["enable_sync_writes=True"], Err(Einval)),
            (1, none, &["enable_out_of_order_snapshots=maybe"], Err(Einval)),
            (1, none, &["enable_out_of_order_snapshots=false"], Ok(Change::None)),
            (1, none, &["set_noop_interval=1.5"], {
                Ok(Change::NoopInterval(Duration::from_millis(1500)))
            }),
            (1, none, &["set_noop_interval=0.01"], Err(Einval)),
            (1, none, &["set_noop_interval=NaN"], Err(Einval)),
            (1, none, &["set_noop_interval=soon"], Err(Einval)),
            (1, none, &["connection_buffer_size=1024"], Ok(Change::Buffer(1024))),
            (1, none, &["connection_buffer_size=-1"], Err(Einval)),
            (1, none, &["connection_buffer_size=4294967296"], Err(Einval)),
            (1, none, &["stream_buffer_size=1"], Err(NotSupported)),
            (1, none, &["set_priority=high"], Ok(Change::None)),
            (1, none, &["set_priority=highest"], Err(Einval)),
            (1, none, &["force_value_compression=true"], Err(Einval)),
            (1, &[Snappy], &["force_value_compression=true"], Ok(Change::None)),
            (1, none, &["supports_cursor_dropping_vulcan=true"], Ok(Change::None)),
            (1, none, &["enable_expiry_opcode=true"], Ok(Change::None)),
            (1, none, &["enable_stream_id=true"], Ok(Change::None)),
            (1, none, &["enable_stream_id=true", "enable_stream_id=false"], Err(NotSupported)),
            (1, none, &["enable_stream_id=true", "enable_sync_writes=true"], Err(NotSupported)),
            (1, none, &["enable_sync_writes=true", "enable_stream_id=true"], Err(NotSupported)),
            (1, none, &["enable_sync_writes=true"], Ok(Change::None)),
            (1, none, &["include_deleted_user_xattrs=true"], Err(Einval)),
            (0x105, none, &["include_deleted_user_xattrs=true"], Ok(Change::None)),
            (1, none, &["v7_dcp_status_codes=true"], Ok(Change::None)),
            (1, none, &["v7_dcp_status_codes=false"], Err(Einval)),
            (1, none, &["change_streams=true"], Err(NotSupported)),
            (1, none, &["max_marker_version=2.2"], Err(NotSupported)),
            (1, &[Collections], &["max_marker_version=2.2"], Ok(Change::None)),
            (1, &[Collections], &["max_marker_version=2.1"], Err(Einval)),
            (1, none, &["backfill_order=sequential"], Ok(Change::None)),
            (1, none, &["backfill_order=any"], Err(Einval)),
            (1, none, &["consumer_name=n_1"], Ok(Change::None)),
            (1, none, &["cache_transfer=true"], Err(NotSupported)),
            (1, none, &["unheard_of=true"], Err(Einval)),
        ] {
            let mut settings = settings(flags, features);
            let mut last = Ok(Change::None);
            for control in controls {
                let (key, value) = control.split_once('=').unwrap();
                last = settings.control(key.as_bytes(), value.as_bytes());
            }
            assert_eq!(last.map_err(|(status, _)| status), expected, "{controls:?}");
        }
    }

    #[test]
    fn a_name_makes_sync_writes_replication() {
        let mut settings = settings(0x21, &[]);
        settings.control(b"enable_sync_writes", b"true").unwrap();
        assert!(settings.has_sync_writes && !settings.is_sync_replication());
        settings.control(b"consumer_name", b"n_1").unwrap();
        assert!(settings.is_sync_replication());
    }

    #[test]
    fn who_takes_expirations_takes_delete_times() {
        let mut settings = settings(0x01, &[]);
        for (value, expected) in [(b"true".as_slice(), true), (b"false", false)] {
            settings.control(b"enable_expiry_opcode", value).unwrap();
            assert_eq!(settings.has_expirations, expected);
            assert_eq!(settings.has_delete_times(), expected);
        }
    }
}
