//! What parameters can be: how their texts are read, shown and described.

use std::fmt::Display;

use bucket::{Bucket, BucketConfig, CompressionMode, FullPolicy, FutureCas, Named, QuotaError};
use executor::{ExecutorPool, TaskKind, ThreadCounts, ThreadSetting};

/// What a parameter is, and how it is reached.
#[derive(Clone, Copy, Debug)]
pub(super) enum Value {
    /// Threads of a kind of task: the node's, whatever bucket is asked.
    Threads(TaskKind),
    /// A memory quota, bytes.
    Quota(Access<u64>),
    /// Bytes.
    Bytes(Access<u64>),
    /// Whole seconds.
    Seconds(Access<u64>),
    /// Microseconds.
    Micros(Access<u64>),
    /// Percent.
    Percent(Access<u8>),
    /// A part of the memory quota.
    Part(Access<f64>),
    /// How many times one thing is as large as another.
    Ratio(Access<f64>),
    CompressionMode(Access<CompressionMode>),
    FullPolicy(Access<FullPolicy>),
    FutureCas(Access<FutureCas>),
}

/// How a bucket's value is reached.
#[derive(Clone, Copy, Debug)]
pub(super) struct Access<T> {
    pub(super) default: fn(&BucketConfig) -> T,
    pub(super) read: fn(&Bucket) -> T,
    pub(super) set: Set<T>,
}

/// How a value is set.
#[derive(Clone, Copy, Debug)]
pub(super) enum Set<T> {
    /// Whatever it is.
    Always(fn(&Bucket, T)),
    /// The bucket may refuse it.
    Checked(fn(&Bucket, T) -> Result<(), QuotaError>),
}

impl<T> Access<T> {
    fn set(&self, bucket: &Bucket, value: T) -> Result<(), String> {
        match self.set {
            Set::Always(set) => {
                set(bucket, value);
                Ok(())
            }
            Set::Checked(set) => set(bucket, value).map_err(|error| error.to_string()),
        }
    }
}

impl Value {
    pub(super) fn unit(&self) -> &'static str {
        match self {
            Self::Threads(_) => "threads",
            Self::Quota(_) | Self::Bytes(_) => "bytes",
            Self::Seconds(_) => "seconds",
            Self::Micros(_) => "microseconds",
            Self::Percent(_) => "percent",
            Self::Part(_) | Self::Ratio(_) => "",
            Self::CompressionMode(_) | Self::FullPolicy(_) | Self::FutureCas(_) => "",
        }
    }

    pub(super) fn range(&self) -> String {
        match self {
            Self::Threads(_) => ThreadSetting::range(),
            Self::Quota(_) => format!("{} and more", bucket::MEMORY_QUOTA_BYTES_MIN),
            Self::Bytes(_) | Self::Micros(_) => "0 and more".to_owned(),
            Self::Seconds(_) => format!("0 to {}", u32::MAX),
            Self::Percent(_) => format!("0 to {PERCENT_MAX}"),
            Self::Part(_) => bucket::MEMORY_RATIOS_RANGE.to_owned(),
            Self::Ratio(_) => "0 and more".to_owned(),
            Self::CompressionMode(_) => names::<CompressionMode>(),
            Self::FullPolicy(_) => names::<FullPolicy>(),
            Self::FutureCas(_) => names::<FutureCas>(),
        }
    }

    pub(super) fn default(&self, config: &BucketConfig) -> String {
        match self {
            Self::Threads(_) => "balanced".to_owned(),
            Self::Quota(access)
            | Self::Bytes(access)
            | Self::Seconds(access)
            | Self::Micros(access) => shown((access.default)(config)),
            Self::Percent(access) => shown((access.default)(config)),
            Self::Part(access) | Self::Ratio(access) => shown((access.default)(config)),
            Self::CompressionMode(access) => shown((access.default)(config).name()),
            Self::FullPolicy(access) => shown((access.default)(config).name()),
            Self::FutureCas(access) => shown((access.default)(config).name()),
        }
    }

    pub(super) fn read(&self, bucket: &Bucket) -> Option<String> {
        Some(match self {
            Self::Threads(_) => return None,
            Self::Quota(access)
            | Self::Bytes(access)
            | Self::Seconds(access)
            | Self::Micros(access) => shown((access.read)(bucket)),
            Self::Percent(access) => shown((access.read)(bucket)),
            Self::Part(access) | Self::Ratio(access) => shown((access.read)(bucket)),
            Self::CompressionMode(access) => shown((access.read)(bucket).name()),
            Self::FullPolicy(access) => shown((access.read)(bucket).name()),
            Self::FutureCas(access) => shown((access.read)(bucket).name()),
        })
    }

    pub(super) fn set(
        &self,
        text: &str,
        bucket: &Bucket,
        pool: &ExecutorPool,
    ) -> Result<(), String> {
        match self {
            Self::Threads(kind) => set_threads(*kind, text, pool),
            Self::Quota(access) | Self::Bytes(access) => access.set(bucket, bytes(text)?),
            Self::Seconds(access) => access.set(bucket, seconds(text)?),
            Self::Micros(access) => access.set(bucket, micros(text)?),
            Self::Percent(access) => access.set(bucket, percent(text)?),
            Self::Part(access) => access.set(bucket, part(text)?),
            Self::Ratio(access) => access.set(bucket, ratio(text)?),
            Self::CompressionMode(access) => access.set(bucket, CompressionMode::by_name(text)?),
            Self::FullPolicy(access) => access.set(bucket, FullPolicy::by_name(text)?),
            Self::FutureCas(access) => access.set(bucket, FutureCas::by_name(text)?),
        }
    }
}

const PERCENT_MAX: u8 = 100;

fn shown(value: impl Display) -> String {
    value.to_string()
}

fn names<T: Named>() -> String {
    let names: Vec<&str> = T::NAMES.iter().map(|(name, _)| *name).collect();
    names.join(", ")
}

fn set_threads(kind: TaskKind, text: &str, pool: &ExecutorPool) -> Result<(), String> {
    let setting: ThreadSetting = text.parse()?;
    let normal = setting.normal_threads(kind, platform::threads::available_cpus());
    let counts = ThreadCounts { normal, ..pool.threads(kind) };
    pool.set_threads(kind, counts)
        .map_err(|error| format!("a thread cannot be started: {error}"))?;
    tracing::info!(kind = kind.name(), threads = normal, "the number of threads was set");
    Ok(())
}

fn bytes(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("`{text}` is no number of bytes"))
}

fn seconds(text: &str) -> Result<u64, String> {
    let seconds: Option<u32> = text.parse().ok();
    seconds.map(u64::from).ok_or_else(|| format!("`{text}` is no number of seconds"))
}

fn micros(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("`{text}` is no number of microseconds"))
}

fn percent(text: &str) -> Result<u8, String> {
    let percent = text.parse().ok().filter(|percent| (0..=PERCENT_MAX).contains(percent));
    percent.ok_or_else(|| format!("`{text}` is no percentage; 0 is for never"))
}

/// Whether it is one is the bucket's to say, which knows the other parts.
fn part(text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| format!("`{text}` is no part between 0 and 1"))
}

fn ratio(text: &str) -> Result<f64, String> {
    let ratio = text.parse().ok().filter(|ratio| (0.0..f64::INFINITY).contains(ratio));
    ratio.ok_or_else(|| format!("`{text}` is no ratio"))
}
