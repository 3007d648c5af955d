//! Groups about scopes and collections.

use document::{CollectionId, Manifest, ManifestCollection, ManifestScope};
use protocol::collections::{CollectionPath, scope_of};
use vbucket::Vbucket;

use super::emitter::{Emitter, NoGroup, vbucket_argument};
use crate::collection_statistics::{COLLECTION_STATISTICS, collection_counts};

/// Collections times vBuckets that are told of in one answer.
const DETAILS_MAX: usize = 100_000;

/// Group "collections": all, or the one of a path.
pub(super) fn collections(emitter: &mut Emitter<'_, '_>, argument: &str) -> Result<(), NoGroup> {
    let path = match argument {
        "" => None,
        path => Some(CollectionPath::parse(path).ok_or(NoGroup::BadArgument)?),
    };
    let manifest = emitter.part.bucket.manifest();
    let is_told = |(scope, collection): &(&ManifestScope, &ManifestCollection)| {
        emitter.sight.sees(&scope.name, &collection.name)
            && path
                .is_none_or(|path| scope.name == path.scope && collection.name == path.collection)
    };
    let told: Vec<_> = manifest.collections().filter(is_told).collect();
    if told.is_empty() && path.is_some() {
        return Err(NoGroup::NotInManifest);
    }
    let sums = collection_counts(&emitter.part.bucket);
    emitter.emit("manifest_uid", format_args!("{:x}", manifest.uid));
    for (scope, collection) in told {
        let prefix = format!("0x{:x}:0x{:x}", scope.id.0, collection.id.0);
        let here = sums.get(&collection.id).copied().unwrap_or_default();
        emitter.emit(&format!("{prefix}:name"), &collection.name);
        emitter.emit(&format!("{prefix}:scope_name"), &scope.name);
        for statistic in COLLECTION_STATISTICS {
            for name in statistic.names_in("collections") {
                emitter.emit(&format!("{prefix}:{name}"), (statistic.read)(&here));
            }
        }
        if let Some(seconds) = collection.max_ttl {
            emitter.emit(&format!("{prefix}:maxTTL"), seconds);
        }
    }
    Ok(())
}

/// Group "scopes": all, or the one of a name.
pub(super) fn scopes(emitter: &mut Emitter<'_, '_>, argument: &str) -> Result<(), NoGroup> {
    let name = match argument {
        "" => None,
        name => Some(scope_of(name).ok_or(NoGroup::BadArgument)?),
    };
    let manifest = emitter.sight.seen_of(&emitter.part.bucket.manifest());
    let is_told = |scope: &&ManifestScope| name.is_none_or(|name| scope.name == name);
    let told: Vec<_> = manifest.scopes.iter().filter(is_told).collect();
    if told.is_empty() && name.is_some() {
        return Err(NoGroup::NotInManifest);
    }
    let sums = collection_counts(&emitter.part.bucket);
    emitter.emit("manifest_uid", format_args!("{:x}", manifest.uid));
    for scope in told {
        let prefix = format!("0x{:x}", scope.id.0);
        let of =
            |collection: &ManifestCollection| sums.get(&collection.id).map(|here| here.documents);
        let items: u64 = scope.collections.iter().filter_map(of).sum();
        emitter.emit(&format!("{prefix}:name"), &scope.name);
        emitter.emit(&format!("{prefix}:collections"), scope.collections.len());
        emitter.emit(&format!("{prefix}:items"), items);
    }
    Ok(())
}

/// Group "collections-details": what each vBucket, or one, has of each collection.
pub(super) fn details(emitter: &mut Emitter<'_, '_>, argument: &str) -> Result<(), NoGroup> {
    let wanted = vbucket_argument(argument)?;
    let bucket = emitter.part.bucket.clone();
    let manifest = emitter.sight.seen_of(&bucket.manifest());
    let count = usize::from(bucket.config().vbucket_count) * manifest.collections().count();
    if wanted.is_none() && count > DETAILS_MAX {
        return Err(NoGroup::TooMuch);
    }
    let mut lines = Vec::new();
    bucket.for_each_vbucket(|vbid, vbucket| {
        if wanted.is_none_or(|wanted| wanted == vbid) {
            lines.push((vbid, details_of(vbucket, &manifest)));
        }
    });
    if wanted.is_some() && lines.is_empty() {
        return Err(NoGroup::NoSuchVbucket);
    }
    for (vbid, lines) in lines {
        for (name, value) in lines {
            emitter.emit(&format!("vb_{vbid}:{name}"), value);
        }
    }
    Ok(())
}

/// In the order of the manifest; of a replica, what it has that the manifest has, too.
fn details_of(vbucket: &Vbucket, manifest: &Manifest) -> Vec<(String, String)> {
    let mut lines = vec![("manifest:uid".to_owned(), format!("{:x}", vbucket.manifest_uid()))];
    for (scope, collection) in manifest.collections() {
        let prefix = format!("0x{:x}:0x{:x}", scope.id.0, collection.id.0);
        let mut say = |name: &str, value: u64| {
            lines.push((format!("{prefix}:{name}"), value.to_string()));
        };
        if collection.id == CollectionId::DEFAULT {
            let count = vbucket.default_collection_count();
            say("items", u64::try_from(count).unwrap_or(u64::MAX));
        } else if let Some(here) = vbucket.collection(collection.id) {
            say("items", here.item_count());
            say("start_seqno", here.start_seqno.0);
            say("high_seqno", here.high_seqno.0);
        }
    }
    lines
}
