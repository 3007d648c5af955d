//! What a user may take of a node, at most.

use serde::{Deserialize, Serialize};

/// Limits of one user on each node; of what is not said there is none. Names and units are those of
/// the original's form field `limits`, where they stand under `kv`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct UserLimits {
    /// Connections to the data port that have logged in.
    #[serde(rename = "num_connections", skip_serializing_if = "Option::is_none")]
    pub connections_max: Option<u32>,
    /// Requests a minute.
    #[serde(rename = "num_ops_per_min", skip_serializing_if = "Option::is_none")]
    pub requests_per_minute_max: Option<u32>,
    /// MiB a minute that the node receives.
    #[serde(rename = "ingress_mib_per_min", skip_serializing_if = "Option::is_none")]
    pub ingress_mib_per_minute_max: Option<u32>,
    /// MiB a minute that it sends.
    #[serde(rename = "egress_mib_per_min", skip_serializing_if = "Option::is_none")]
    pub egress_mib_per_minute_max: Option<u32>,
}

/// The form that the original has for limits of all its services.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct OfServices {
    #[serde(default)]
    kv: UserLimits,
}

impl UserLimits {
    /// Reads `{"kv": {"num_connections": n, "num_ops_per_min": n, "ingress_mib_per_min": n,
    /// "egress_mib_per_min": n}}`, each of them optional. An empty text has no limit.
    ///
    /// # Errors
    /// It is another text: why, for people.
    pub fn from_json(text: &str) -> Result<Self, String> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let read = serde_json::from_str(text);
        read.map(|OfServices { kv }| kv).map_err(|error| {
            format!("{error}; say for example {{\"kv\": {{\"num_ops_per_min\": 1000}}}}")
        })
    }

    /// The same text.
    pub fn to_json(&self) -> String {
        serde_json::to_string(&OfServices { kv: *self }).expect("numbers are JSON")
    }

    /// Whether nothing is limited.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_as_they_are_written_and_nonsense_is_refused() {
        let all = [
            r#"{"kv":{"num_connections":1,"num_ops_per_min":2,"#,
            r#""ingress_mib_per_min":3,"egress_mib_per_min":4}}"#,
        ]
        .concat();
        for text in [all.as_str(), r#"{"kv":{"num_ops_per_min":7}}"#, r#"{"kv":{}}"#] {
            assert_eq!(UserLimits::from_json(text).unwrap().to_json(), text);
        }
        assert!(UserLimits::from_json("").unwrap().is_none());
        for text in ["{", r#"{"kv":{"num_ops":1}}"#, r#"{"kv":{"num_connections":-1}}"#] {
            assert!(UserLimits::from_json(text).unwrap_err().contains("num_ops_per_min"), "{text}");
        }
    }
}
