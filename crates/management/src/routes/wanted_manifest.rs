//! All scopes and collections that a client wants a bucket to have, as it says it.
//!
//! ```text
//! {"scopes":[{"name":text,"collections":[{"name":text,"maxTTL":seconds,"history":bool}]}]}
//! ```
//!
//! `uid` may stand in each object, as in what the node shows, and means nothing: names say what is
//! what.

use document::{WantedCollection, WantedManifest, WantedScope};
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::collections::max_ttl_of;
use super::named_bucket::Fields;

/// What is wrong, by the name of the field.
type Refusal = (String, String);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Said {
    #[serde(default, rename = "uid")]
    _uid: Option<IgnoredAny>,
    scopes: Vec<SaidScope>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SaidScope {
    #[serde(default, rename = "uid")]
    _uid: Option<IgnoredAny>,
    name: String,
    #[serde(default)]
    collections: Vec<SaidCollection>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SaidCollection {
    #[serde(default, rename = "uid")]
    _uid: Option<IgnoredAny>,
    name: String,
    #[serde(rename = "maxTTL")]
    max_ttl: Option<i64>,
    history: Option<bool>,
}

/// Reads the body, and `validOnUid` behind the question mark.
pub(super) fn read(query: &Fields, body: &[u8]) -> Result<WantedManifest, Refusal> {
    let said: Said = serde_json::from_slice(body)
        .map_err(|error| ("_".to_owned(), format!("Invalid manifest: {error}")))?;
    let mut wanted = WantedManifest { valid_on_uid: None, scopes: Vec::new() };
    for (name, value) in query {
        let refuse = |why: &str| (name.clone(), why.to_owned());
        match name.as_str() {
            "validOnUid" => {
                let uid = u64::from_str_radix(value, 16);
                let why = "The value must be a hexadecimal manifest uid";
                wanted.valid_on_uid = Some(uid.map_err(|_| refuse(why))?);
            }
            // Which bucket is meant: who has found it has looked at it.
            "bucket_uuid" => {}
            _ => return Err(refuse("Unsupported key")),
        }
    }
    wanted.scopes = said.scopes.into_iter().map(SaidScope::wanted).collect::<Result<_, _>>()?;
    Ok(wanted)
}

impl SaidScope {
    fn wanted(self) -> Result<WantedScope, Refusal> {
        let collections = self.collections.into_iter().map(SaidCollection::wanted);
        Ok(WantedScope { name: self.name, collections: collections.collect::<Result<_, _>>()? })
    }
}

impl SaidCollection {
    fn wanted(self) -> Result<WantedCollection, Refusal> {
        let out_of_range = || ("maxTTL".to_owned(), "The value must be an integer".to_owned());
        let max_ttl = self.max_ttl.map(|said| max_ttl_of(said).ok_or_else(out_of_range));
        let (name, history) = (self.name, self.history);
        Ok(WantedCollection { name, max_ttl: max_ttl.transpose()?, history })
    }
}
