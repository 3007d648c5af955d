//! A manifest as JSON: on the wire, for tools, and in the bucket's directory. Source:
//! docs/specification/protocol.md, section 9.2.

use document::{CollectionId, Manifest, ManifestCollection, ManifestScope, ScopeId};
use serde::{Deserialize, Serialize};

/// Ids and uids are hexadecimal texts.
#[derive(Serialize, Deserialize)]
struct ManifestForm {
    uid: String,
    scopes: Vec<ScopeForm>,
    /// What the next ones get; only between nodes of this server and in its files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    next_scope_uid: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    next_collection_uid: Option<String>,
    /// Whether vBuckets may follow a newer one: only in files, after a restore.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    may_be_behind: bool,
}

#[derive(Serialize, Deserialize)]
struct ScopeForm {
    name: String,
    uid: String,
    collections: Vec<CollectionForm>,
}

#[derive(Serialize, Deserialize)]
struct CollectionForm {
    name: String,
    uid: String,
    #[serde(rename = "maxTTL", default, skip_serializing_if = "Option::is_none")]
    max_ttl: Option<u32>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    history: bool,
}

/// The manifest as clients read it.
pub fn encode(manifest: &Manifest) -> String {
    let form = ManifestForm { next_scope_uid: None, next_collection_uid: None, ..form(manifest) };
    serde_json::to_string(&form).expect("a manifest is JSON")
}

/// The manifest with which ids come next.
pub fn encode_whole(manifest: &Manifest) -> String {
    serde_json::to_string(&form(manifest)).expect("a manifest is JSON")
}

/// The same in the file of a bucket that was just restored.
pub(crate) fn encode_restored(manifest: &Manifest) -> String {
    let form = ManifestForm { may_be_behind: true, ..form(manifest) };
    serde_json::to_string(&form).expect("a manifest is JSON")
}

/// Reads either form. What does not say which ids come next goes on behind its own.
///
/// # Errors
/// What is wrong, in words.
pub fn decode(text: &[u8]) -> Result<Manifest, String> {
    decode_file(text).map(|(manifest, _)| manifest)
}

/// Reads any form, and whether vBuckets may follow a newer manifest.
pub(crate) fn decode_file(text: &[u8]) -> Result<(Manifest, bool), String> {
    let form: ManifestForm =
        serde_json::from_slice(text).map_err(|error| format!("it is no manifest: {error}"))?;
    let may_be_behind = form.may_be_behind;
    let number = |text: &str| {
        let number = text.strip_prefix("0x").unwrap_or(text);
        u64::from_str_radix(number, 16).map_err(|_| format!("`{text}` is no uid"))
    };
    let id = |text: &str| {
        let id = number(text)?;
        u32::try_from(id).map_err(|_| format!("`{text}` is no id"))
    };
    let mut scopes = Vec::with_capacity(form.scopes.len());
    for scope in form.scopes {
        let mut collections = Vec::with_capacity(scope.collections.len());
        for collection in scope.collections {
            let CollectionForm { name, uid, max_ttl, history } = collection;
            let id = CollectionId(id(&uid)?);
            collections.push(ManifestCollection { id, name, max_ttl, history });
        }
        let id = ScopeId(id(&scope.uid)?);
        scopes.push(ManifestScope { id, name: scope.name, collections });
    }
    let next = |said: Option<String>| said.map_or(Ok(0), |said| id(&said));
    let manifest = Manifest {
        uid: number(&form.uid)?,
        scopes,
        next_scope: next(form.next_scope_uid)?,
        next_collection: next(form.next_collection_uid)?,
    };
    let manifest = manifest.continuing(&Manifest::default());
    manifest.check().map_err(|error| error.to_string())?;
    Ok((manifest, may_be_behind))
}

fn form(manifest: &Manifest) -> ManifestForm {
    let Manifest { uid, scopes, next_scope, next_collection } = manifest;
    let collection = |collection: &ManifestCollection| {
        let ManifestCollection { id, name, max_ttl, history } = collection;
        let (name, uid) = (name.clone(), format!("{:x}", id.0));
        CollectionForm { name, uid, max_ttl: *max_ttl, history: *history }
    };
    let scope = |scope: &ManifestScope| ScopeForm {
        name: scope.name.clone(),
        uid: format!("{:x}", scope.id.0),
        collections: scope.collections.iter().map(collection).collect(),
    };
    ManifestForm {
        uid: format!("{uid:x}"),
        scopes: scopes.iter().map(scope).collect(),
        next_scope_uid: Some(format!("{next_scope:x}")),
        next_collection_uid: Some(format!("{next_collection:x}")),
        may_be_behind: false,
    }
}

#[cfg(test)]
mod tests {
    use document::ManifestEdit;

    use super::*;

    #[test]
    fn a_manifest_reads_back_and_the_first_one_is_what_clients_know() {
        let first = concat!(
            r#"{"uid":"0","scopes":[{"name":"_default","uid":"0","#,
            r#""collections":[{"name":"_default","uid":"0"}]}]}"#
        );
        assert_eq!(encode(&Manifest::default()), first);
        assert_eq!(decode(first.as_bytes()), Ok(Manifest::default()));
        let scope = "s";
        let create = |collection, max_ttl| ManifestEdit::CreateCollection {
            scope,
            collection,
            max_ttl,
            history: true,
        };
        let drop = ManifestEdit::DropCollection { scope, collection: "d" };
        let edits =
            [ManifestEdit::CreateScope { scope }, create("c", Some(5)), create("d", None), drop];
        let fold = |manifest: Manifest, edit| manifest.edited(edit).unwrap();
        let manifest = edits.into_iter().fold(Manifest::default(), fold);
        assert_eq!(decode_file(encode_whole(&manifest).as_bytes()), Ok((manifest.clone(), false)));
        assert_eq!(
            decode_file(encode_restored(&manifest).as_bytes()),
            Ok((manifest.clone(), true))
        );
        let said = decode(encode(&manifest).as_bytes()).unwrap();
        assert_eq!((said.next_collection, manifest.next_collection), (10, 11));
        assert!(encode(&manifest).contains(r#"{"name":"c","uid":"9","maxTTL":5,"history":true}"#));
    }

    #[test]
    fn what_is_no_manifest_is_refused() {
        for text in [
            "",
            "{}",
            "[]",
            r#"{"uid":"x","scopes":[]}"#,
            r#"{"uid":"1","scopes":[]}"#,
            r#"{"uid":1,"scopes":[]}"#,
            r#"{"uid":"1","scopes":[{"name":"_default","uid":"fffffffff","collections":[]}]}"#,
        ] {
            assert!(decode(text.as_bytes()).is_err(), "{text}");
        }
    }
}
