//! The parameters that administrators change while the node runs: one row each. SET_PARAM sets
//! them, STAT shows them and docs/configuration.md lists them by this table.

mod unavailable;
mod value;

use bucket::{Bucket, BucketConfig, BucketType, MemoryParameter};
use executor::{ExecutorPool, TaskKind};

use vbucket::ClockRules;

use value::{Access, Set, Value};

/// One parameter. What is set holds until the node stops.
#[derive(Clone, Copy, Debug)]
pub struct RuntimeParameter {
    /// Its name in SET_PARAM; with `ep_` before it, that of its statistic.
    pub name: &'static str,
    /// What it is, for people.
    pub help: &'static str,
    /// Which buckets have it.
    pub of: Buckets,
    /// The group of statistics that shows it.
    pub shown_in: ShownIn,
    value: Value,
}

/// Which buckets have a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Buckets {
    /// Every bucket.
    All,
    /// Those that keep documents in files.
    WithFiles,
    /// Those that keep documents in memory alone.
    Ephemeral,
}

/// The group of statistics that shows a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShownIn {
    /// "config".
    Config,
    /// "compaction".
    Compaction,
    /// "workload", under names of its own.
    Workload,
}

/// All parameters, in the order in which a refusal lists them.
pub static PARAMETERS: [RuntimeParameter; 22] = [
    threads("num_reader_threads", "Threads that read files for clients", TaskKind::Reader),
    threads("num_writer_threads", "Threads that write files behind clients", TaskKind::Writer),
    threads("num_auxio_threads", "Threads for other work with files", TaskKind::AuxIo),
    threads("num_nonio_threads", "Threads for tasks that only compute", TaskKind::NonIo),
    RuntimeParameter {
        name: "max_size",
        help: "Memory for documents; more is there at once, less when they fit",
        of: Buckets::All,
        shown_in: ShownIn::Config,
        value: Value::Quota(Access {
            default: |config| config.memory_quota_bytes,
            read: Bucket::memory_quota_bytes,
            set: Set::Checked(|bucket, bytes| bucket.set_memory_quota(bytes)),
        }),
    },
    RuntimeParameter {
        name: "mem_low_wat_percent",
        help: "Part of the quota down to which values leave memory",
        of: Buckets::All,
        shown_in: ShownIn::Config,
        value: Value::Part(Access {
            default: |config| config.memory_low_watermark,
            read: |bucket| bucket.memory_ratio(MemoryParameter::LowWatermark),
            set: Set::Checked(|bucket, part| {
                bucket.set_memory_ratio(MemoryParameter::LowWatermark, part)
            }),
        }),
    },
    RuntimeParameter {
        name: "mem_high_wat_percent",
        help: "Part of the quota from which on values leave memory",
        of: Buckets::All,
        shown_in: ShownIn::Config,
        value: Value::Part(Access {
            default: |config| config.memory_high_watermark,
            read: |bucket| bucket.memory_ratio(MemoryParameter::HighWatermark),
            set: Set::Checked(|bucket, part| {
                bucket.set_memory_ratio(MemoryParameter::HighWatermark, part)
            }),
        }),
    },
    RuntimeParameter {
        name: "mutation_mem_ratio",
        help: "Part of the quota above which writes are refused",
        of: Buckets::All,
        shown_in: ShownIn::Config,
        value: Value::Part(Access {
            default: |config| config.mutation_memory_ratio,
            read: |bucket| bucket.memory_ratio(MemoryParameter::MutationRatio),
            set: Set::Checked(|bucket, part| {
                bucket.set_memory_ratio(MemoryParameter::MutationRatio, part)
            }),
        }),
    },
    RuntimeParameter {
        name: "compression_mode",
        help: "What happens to compressed values",
        of: Buckets::All,
        shown_in: ShownIn::Config,
        value: Value::CompressionMode(Access {
            default: |config| config.compression,
            read: Bucket::compression_mode,
            set: Set::Always(Bucket::set_compression_mode),
        }),
    },
    RuntimeParameter {
        name: "min_compression_ratio",
        help: "Times its bytes that a compressed value has to take inflated to be kept",
        of: Buckets::All,
        shown_in: ShownIn::Config,
        value: Value::Ratio(Access {
            default: |config| config.min_compression_ratio,
            read: Bucket::min_compression_ratio,
            set: Set::Always(Bucket::set_min_compression_ratio),
        }),
    },
    RuntimeParameter {
        name: "hlc_drift_ahead_threshold_us",
        help: "How far ahead of this node's clock a version counts as an exception",
        of: Buckets::All,
        shown_in: ShownIn::Config,
        value: Value::Micros(Access {
            default: |_| ClockRules::default().drift_ahead_max_us(),
            read: |bucket| bucket.clock_rules().drift_ahead_max_us(),
            set: Set::Always(|bucket, us| bucket.clock_rules().set_drift_ahead_max_us(us)),
        }),
    },
    RuntimeParameter {
        name: "hlc_drift_behind_threshold_us",
        help: "How far behind this node's clock a version counts as an exception",
        of: Buckets::All,
        shown_in: ShownIn::Config,
        value: Value::Micros(Access {
            default: |_| ClockRules::default().drift_behind_max_us(),
            read: |bucket| bucket.clock_rules().drift_behind_max_us(),
            set: Set::Always(|bucket, us| bucket.clock_rules().set_drift_behind_max_us(us)),
        }),
    },
    RuntimeParameter {
        name: "hlc_max_future_threshold_us",
        help: "How far ahead of this node's clock a CAS is one in the future",
        of: Buckets::All,
        shown_in: ShownIn::Config,
        value: Value::Micros(Access {
            default: |_| ClockRules::default().future_max_us(),
            read: |bucket| bucket.clock_rules().future_max_us(),
            set: Set::Always(|bucket, us| bucket.clock_rules().set_future_max_us(us)),
        }),
    },
    RuntimeParameter {
        name: "hlc_invalid_strategy",
        help: "What becomes of a version from elsewhere with a CAS in the future",
        of: Buckets::All,
        shown_in: ShownIn::Config,
        value: Value::FutureCas(Access {
            default: |_| ClockRules::default().future_cas(),
            read: |bucket| bucket.clock_rules().future_cas(),
            set: Set::Always(|bucket, strategy| bucket.clock_rules().set_future_cas(strategy)),
        }),
    },
    RuntimeParameter {
        name: "exp_pager_stime",
        help: "Time between two searches for documents whose time is over, a second at least",
        of: Buckets::All,
        shown_in: ShownIn::Config,
        value: Value::Seconds(Access {
            default: |config| config.expiry_pager_interval.as_secs(),
            read: Bucket::expiry_pager_interval_seconds,
            set: Set::Always(Bucket::set_expiry_pager_interval_seconds),
        }),
    },
    RuntimeParameter {
        name: "ephemeral_full_policy",
        help: "What a bucket in memory alone does when that is full",
        of: Buckets::Ephemeral,
        shown_in: ShownIn::Config,
        value: Value::FullPolicy(Access {
            default: |config| config.ephemeral_full_policy,
            read: Bucket::full_policy,
            set: Set::Always(Bucket::set_full_policy),
        }),
    },
    RuntimeParameter {
        name: "ephemeral_metadata_purge_age",
        help: "How long memory keeps tombstones",
        of: Buckets::Ephemeral,
        shown_in: ShownIn::Config,
        value: Value::Seconds(Access {
            default: |config| config.ephemeral_metadata_purge_age_seconds,
            read: Bucket::tombstone_purge_age_seconds,
            set: Set::Always(Bucket::set_tombstone_purge_age_seconds),
        }),
    },
    RuntimeParameter {
        name: "ephemeral_metadata_purge_interval",
        help: "Time between two searches for old tombstones in memory",
        of: Buckets::Ephemeral,
        shown_in: ShownIn::Config,
        value: Value::Seconds(Access {
            default: |config| config.ephemeral_metadata_purge_interval_seconds,
            read: Bucket::tombstone_purge_interval_seconds,
            set: Set::Always(Bucket::set_tombstone_purge_interval_seconds),
        }),
    },
    RuntimeParameter {
        name: "persistent_metadata_purge_age",
        help: "How long files keep tombstones",
        of: Buckets::WithFiles,
        shown_in: ShownIn::Compaction,
        value: Value::Seconds(Access {
            default: |config| config.persistent_metadata_purge_age_seconds,
            read: Bucket::persistent_purge_age_seconds,
            set: Set::Always(Bucket::set_persistent_purge_age_seconds),
        }),
    },
    RuntimeParameter {
        name: "compaction_fragmentation_percent",
        help: "Part of a file from which on it is compacted if nothing needs it; 0 for never",
        of: Buckets::WithFiles,
        shown_in: ShownIn::Compaction,
        value: Value::Percent(Access {
            default: |config| config.compaction_fragmentation_percent,
            read: Bucket::compaction_fragmentation_percent,
            set: Set::Always(Bucket::set_compaction_fragmentation_percent),
        }),
    },
    RuntimeParameter {
        name: "compaction_min_file_size",
        help: "Size below which files are not compacted on their own",
        of: Buckets::WithFiles,
        shown_in: ShownIn::Compaction,
        value: Value::Bytes(Access {
            default: |config| config.compaction_file_bytes_min,
            read: Bucket::compaction_file_bytes_min,
            set: Set::Always(Bucket::set_compaction_file_bytes_min),
        }),
    },
    RuntimeParameter {
        name: "compaction_bytes_per_second",
        help: "What compactions write in a second together, at most; 0 for no limit",
        of: Buckets::WithFiles,
        shown_in: ShownIn::Compaction,
        value: Value::Bytes(Access {
            default: |config| config.compaction_bytes_per_second,
            read: Bucket::compaction_bytes_per_second,
            set: Set::Always(Bucket::set_compaction_bytes_per_second),
        }),
    },
];

const fn threads(name: &'static str, help: &'static str, kind: TaskKind) -> RuntimeParameter {
    let (of, shown_in) = (Buckets::All, ShownIn::Workload);
    RuntimeParameter { name, help, of, shown_in, value: Value::Threads(kind) }
}

impl RuntimeParameter {
    /// The parameter of that name.
    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        PARAMETERS.iter().find(|parameter| parameter.name == name)
    }

    /// Why there is no such parameter to be set, if the original has one of that name.
    pub(crate) fn why_unavailable(name: &str) -> Option<String> {
        unavailable::why(name)
    }

    /// What its number counts; empty where it is none, or counts nothing.
    pub fn unit(&self) -> &'static str {
        self.value.unit()
    }

    /// What it may be set to.
    pub fn range(&self) -> String {
        self.value.range()
    }

    /// What it is in a bucket about which nobody says anything.
    pub fn default(&self) -> String {
        self.value.default(&BucketConfig::named("default"))
    }

    /// Whether that group shows it of this bucket.
    pub(crate) fn is_shown_in(&self, group: ShownIn, bucket: &Bucket) -> bool {
        self.shown_in == group && self.of.check(bucket.bucket_type()).is_ok()
    }

    /// What it is in this bucket; `None` for what is not the bucket's.
    pub(crate) fn read(&self, bucket: &Bucket) -> Option<String> {
        self.value.read(bucket)
    }

    /// Gives it another value, or says why not: then nothing has changed.
    pub(crate) fn set(
        &self,
        value: &str,
        bucket: &Bucket,
        pool: &ExecutorPool,
    ) -> Result<(), String> {
        self.of.check(bucket.bucket_type())?;
        self.value.set(value, bucket, pool)?;
        tracing::info!(name = self.name, value, "a parameter was set");
        Ok(())
    }
}

impl Buckets {
    fn check(self, bucket_type: BucketType) -> Result<(), String> {
        match (self, bucket_type) {
            (Self::WithFiles, BucketType::Ephemeral) => {
                Err("an ephemeral bucket has no files to compact".to_owned())
            }
            (Self::Ephemeral, BucketType::Couchbase) => {
                Err("only an ephemeral bucket has this parameter".to_owned())
            }
            (Self::All | Self::WithFiles | Self::Ephemeral, _) => Ok(()),
        }
    }
}
