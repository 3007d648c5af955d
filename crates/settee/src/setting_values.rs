//! Values of settings as people write them: on a command line, in the environment, in TOML.

use std::fmt;
use std::str::FromStr;

use bucket::Named;
use executor::ThreadSetting;
use serde::Deserialize;

use crate::memory_size;

/// Bytes, written by people.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(try_from = "TextOrNumber")]
pub(crate) struct MemorySize(pub(crate) u64);

/// A number of threads, written by people.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(try_from = "TextOrNumber")]
pub(crate) struct Threads(pub(crate) ThreadSetting);

impl FromStr for Threads {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.parse().map(Self)
    }
}

impl TryFrom<TextOrNumber> for Threads {
    type Error = String;

    fn try_from(value: TextOrNumber) -> Result<Self, String> {
        match value {
            TextOrNumber::Text(text) => text.parse(),
            TextOrNumber::Number(number) => number.to_string().parse(),
        }
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum TextOrNumber {
    Text(String),
    Number(u64),
}

impl TryFrom<TextOrNumber> for MemorySize {
    type Error = String;

    fn try_from(value: TextOrNumber) -> Result<Self, String> {
        match value {
            TextOrNumber::Text(text) => memory_size::parse(&text).map(Self),
            TextOrNumber::Number(bytes) => Ok(Self(bytes)),
        }
    }
}

impl FromStr for MemorySize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        memory_size::parse(text).map(Self)
    }
}

/// In the largest unit that leaves a whole number.
impl fmt::Display for MemorySize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&memory_size::shown(self.0))
    }
}

/// A choice by name.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(try_from = "String", bound = "T: Named")]
pub(crate) struct Choice<T>(pub(crate) T);

impl<T: Named> FromStr for Choice<T> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        T::by_name(text).map(Self)
    }
}

impl<T: Named> TryFrom<String> for Choice<T> {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl<T: Named> fmt::Display for Choice<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name())
    }
}

/// Yes or no.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Switch {
    On,
    Off,
}

impl Named for Switch {
    const WHAT: &str = "switch";
    const NAMES: &[(&str, Self)] = &[("on", Self::On), ("off", Self::Off)];
}

/// From where a node may be set up without a login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SetupMode {
    Off,
    Loopback,
    Anywhere,
}

impl Named for SetupMode {
    const WHAT: &str = "way to be set up";
    const NAMES: &[(&str, Self)] =
        &[("off", Self::Off), ("loopback", Self::Loopback), ("anywhere", Self::Anywhere)];
}

/// How the data port waits for its sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NetworkLoop {
    Auto,
    Epoll,
    Uring,
}

impl Named for NetworkLoop {
    const WHAT: &str = "network loop";
    const NAMES: &[(&str, Self)] =
        &[("auto", Self::Auto), ("epoll", Self::Epoll), ("uring", Self::Uring)];
}

/// Names of buckets, with commas between them: at least one, each once. The first is the default
/// one.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, PartialOrd)]
#[serde(try_from = "String")]
pub(crate) struct BucketNames(Vec<String>);

impl BucketNames {
    /// One bucket.
    pub(crate) fn one(name: String) -> Self {
        Self(vec![name])
    }

    /// Which, the default one first.
    pub(crate) fn names(&self) -> &[String] {
        &self.0
    }
}

impl FromStr for BucketNames {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names: Vec<String> = text.split(',').map(str::to_owned).collect();
        match names.iter().enumerate().find(|(index, name)| names[..*index].contains(name)) {
            Some((_, twice)) => Err(format!("`{twice}` is said twice")),
            None => Ok(Self(names)),
        }
    }
}

impl TryFrom<String> for BucketNames {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl fmt::Display for BucketNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(","))
    }
}

/// Buckets with their quotas where these are said, as `orders:256MiB,travel`: at least one, each
/// once. The first is the default one.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, PartialOrd)]
#[serde(try_from = "String")]
pub(crate) struct BucketQuotas(Vec<(String, Option<MemorySize>)>);

impl BucketQuotas {
    /// Each with its quota, the default one first.
    pub(crate) fn all(&self) -> &[(String, Option<MemorySize>)] {
        &self.0
    }
}

impl FromStr for BucketQuotas {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut all: Vec<(String, Option<MemorySize>)> = Vec::new();
        for said in text.split(',') {
            let (name, quota) = match said.split_once(':') {
                Some((name, quota)) => (name, Some(quota.parse()?)),
                None => (said, None),
            };
            if all.iter().any(|(known, _)| known == name) {
                return Err(format!("`{name}` is said twice"));
            }
            all.push((name.to_owned(), quota));
        }
        Ok(Self(all))
    }
}

impl TryFrom<String> for BucketQuotas {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl fmt::Display for BucketQuotas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (name, quota)) in self.0.iter().enumerate() {
            f.write_str(if index == 0 { "" } else { "," })?;
            f.write_str(name)?;
            if let Some(quota) = quota {
                write!(f, ":{quota}")?;
            }
        }
        Ok(())
    }
}

/// What a page says of a type.
#[cfg(test)]
pub(crate) trait SettingValue {
    /// What its values are, if that is worth saying.
    fn range() -> String;
}

#[cfg(test)]
macro_rules! ranges {
    ($($type:ty => $range:expr,)+) => {
        $(impl SettingValue for $type {
            fn range() -> String {
                $range.to_owned()
            }
        })+
    };
}

#[cfg(test)]
ranges! {
    bool => "true, false",
    u16 => "0 to 65535",
    u64 => "0 and more",
    usize => "0 and more",
    String => "",
    std::path::PathBuf => "",
    std::net::IpAddr => "",
    MemorySize => "",
    BucketNames => "",
    BucketQuotas => "",
    Threads => ThreadSetting::range(),
}

#[cfg(test)]
impl<T: Named> SettingValue for Choice<T> {
    fn range() -> String {
        let names: Vec<&str> = T::NAMES.iter().map(|(name, _)| *name).collect();
        names.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_said_with_quotas_or_without() {
        let buckets: BucketQuotas = "orders:256MiB,travel".parse().unwrap();
        let orders = ("orders".to_owned(), Some(MemorySize(256 << 20)));
        assert_eq!(buckets.all(), [orders, ("travel".to_owned(), None)]);
        assert_eq!(buckets.to_string(), "orders:256MiB,travel");
        for wrong in ["a:much", "a:", "a,a:1GiB"] {
            assert!(wrong.parse::<BucketQuotas>().is_err(), "{wrong}");
        }
    }
}
