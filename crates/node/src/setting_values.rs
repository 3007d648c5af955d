//! Values of settings as people write them: on a command line, in the environment, in TOML.

use std::str::FromStr;

use bucket::Named;
use executor::ThreadSetting;
use serde::Deserialize;

use crate::memory_size;

/// Bytes, written by people.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(try_from = "TextOrNumber")]
pub struct MemorySize(pub u64);

/// A number of threads, written by people.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(try_from = "TextOrNumber")]
pub struct Threads(pub ThreadSetting);

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

/// A choice by name.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(try_from = "String", bound = "T: Named")]
pub struct Choice<T>(pub T);

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
