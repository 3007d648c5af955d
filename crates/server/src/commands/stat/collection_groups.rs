//! Groups about scopes and collections.

use document::{CollectionId, Manifest, ManifestCollection, ManifestScope, ScopeId};
use protocol::collections::{CollectionPath, scope_of};
use vbucket::Vbucket;

use super::emitter::{Emitter, NoGroup, id_argument, vbucket_argument};
use crate::buckets::BucketPart;
use crate::collection_statistics::{COLLECTION_STATISTICS, collection_counts};

/// Collections times vBuckets that are told of in one answer.
const DETAILS_MAX: usize = 100_000;

/// Whether a collection is asked for.
type IsWanted<'a> = dyn Fn(&ManifestScope, &ManifestCollection) -> bool + 'a;

/// Group "collections": all, or the one of a path.
pub(super) fn collections(
    emitter: &mut Emitter<'_, '_>,
    part: &BucketPart,
    argument: &str,
) -> Result<(), NoGroup> {
    if argument.is_empty() {
        return tell_collections(emitter, part, None);
    }
    let path = CollectionPath::parse(argument).ok_or(NoGroup::BadArgument)?;
    let is_it = |scope: &ManifestScope, collection: &ManifestCollection| {
        scope.name == path.scope && collection.name == path.collection
    };
    tell_collections(emitter, part, Some(&is_it))
}

/// Group "collections-byid": the one of an id.
pub(super) fn collections_by_id(
    emitter: &mut Emitter<'_, '_>,
    part: &BucketPart,
    argument: &str,
) -> Result<(), NoGroup> {
    let id = CollectionId(id_argument(argument)?);
    tell_collections(emitter, part, Some(&|_, collection| collection.id == id))
}

/// Group "scopes": all, or the one of a name.
pub(super) fn scopes(
    emitter: &mut Emitter<'_, '_>,
    part: &BucketPart,
    argument: &str,
) -> Result<(), NoGroup> {
    if argument.is_empty() {
        return tell_scopes(emitter, part, None);
    }
    let name = scope_of(argument).ok_or(NoGroup::BadArgument)?;
    tell_scopes(emitter, part, Some(&|scope| scope.name == name))
}

/// Group "scopes-byid": the one of an id.
pub(super) fn scopes_by_id(
    emitter: &mut Emitter<'_, '_>,
    part: &BucketPart,
    argument: &str,
) -> Result<(), NoGroup> {
    let id = ScopeId(id_argument(argument)?);
    tell_scopes(emitter, part, Some(&|scope| scope.id == id))
}

/// Tells of all collections that the user may know, or of one.
fn tell_collections(
    emitter: &mut Emitter<'_, '_>,
    part: &BucketPart,
    wanted: Option<&IsWanted<'_>>,
) -> Result<(), NoGroup> {
    let manifest = part.bucket.manifest();
    let is_told = |(scope, collection): &(&ManifestScope, &ManifestCollection)| {
        emitter.listener.sight.sees(&scope.name, &collection.name)
            && wanted.is_none_or(|is_wanted| is_wanted(scope, collection))
    };
    let told: Vec<_> = manifest.collections().filter(is_told).collect();
    if told.is_empty() && wanted.is_some() {
        return Err(NoGroup::NotInManifest);
    }
    let sums = collection_counts(&part.bucket);
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

/// The same of scopes.
fn tell_scopes(
    emitter: &mut Emitter<'_, '_>,
    part: &BucketPart,
    wanted: Option<&dyn Fn(&ManifestScope) -> bool>,
) -> Result<(), NoGroup> {
    let manifest = emitter.listener.sight.seen_of(&part.bucket.manifest());
    let is_told = |scope: &&ManifestScope| wanted.is_none_or(|is_wanted| is_wanted(scope));
    let told: Vec<_> = manifest.scopes.iter().filter(is_told).collect();
    if told.is_empty() && wanted.is_some() {
        return Err(NoGroup::NotInManifest);
    }
    let sums = collection_counts(&part.bucket);
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
pub(super) fn details(
    emitter: &mut Emitter<'_, '_>,
    part: &BucketPart,
    argument: &str,
) -> Result<(), NoGroup> {
    let manifest = emitter.listener.sight.seen_of(&part.bucket.manifest());
    let count = manifest.collections().count();
    tell_details(emitter, part, argument, count, |vbucket| details_of(vbucket, &manifest))
}

/// Group "scopes-details": what each vBucket, or one, has of each scope.
pub(super) fn scopes_details(
    emitter: &mut Emitter<'_, '_>,
    part: &BucketPart,
    argument: &str,
) -> Result<(), NoGroup> {
    let manifest = emitter.listener.sight.seen_of(&part.bucket.manifest());
    let count = manifest.collections().count().max(manifest.scopes.len());
    tell_details(emitter, part, argument, count, |vbucket| scopes_of(vbucket, &manifest))
}

/// Tells what `describe` says, of `count` parts, about all vBuckets or the one of the argument.
fn tell_details(
    emitter: &mut Emitter<'_, '_>,
    part: &BucketPart,
    argument: &str,
    count: usize,
    describe: impl Fn(&Vbucket) -> Vec<(String, String)>,
) -> Result<(), NoGroup> {
    let wanted = vbucket_argument(argument)?;
    if wanted.is_none() && usize::from(part.bucket.config().vbucket_count) * count > DETAILS_MAX {
        return Err(NoGroup::TooMuch);
    }
    let mut lines = Vec::new();
    part.bucket.for_each_vbucket(|vbid, vbucket| {
        if wanted.is_none_or(|wanted| wanted == vbid) {
            lines.push((vbid, describe(vbucket)));
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
    let mut lines = vec![manifest_of(vbucket)];
    for (scope, collection) in manifest.collections() {
        let prefix = format!("0x{:x}:0x{:x}", scope.id.0, collection.id.0);
        let mut say = |name: &str, value: u64| {
            lines.push((format!("{prefix}:{name}"), value.to_string()));
        };
        if let Some(count) = items_of(vbucket, collection.id) {
            say("items", count);
        }
        if let Some(here) = vbucket.collection(collection.id) {
            say("start_seqno", here.start_seqno.0);
            say("high_seqno", here.high_seqno.0);
        }
    }
    lines
}

/// The same by scopes.
fn scopes_of(vbucket: &Vbucket, manifest: &Manifest) -> Vec<(String, String)> {
    let mut lines = vec![manifest_of(vbucket)];
    for scope in &manifest.scopes {
        let prefix = format!("0x{:x}", scope.id.0);
        let here = scope.collections.iter().filter_map(|it| items_of(vbucket, it.id));
        let items: Vec<u64> = here.collect();
        lines.push((format!("{prefix}:name"), scope.name.clone()));
        lines.push((format!("{prefix}:collections"), items.len().to_string()));
        lines.push((format!("{prefix}:items"), items.iter().sum::<u64>().to_string()));
    }
    lines
}

fn manifest_of(vbucket: &Vbucket) -> (String, String) {
    ("manifest:uid".to_owned(), format!("{:x}", vbucket.manifest_uid()))
}

/// Documents of a collection; `None` if the vBucket has not heard of it.
fn items_of(vbucket: &Vbucket, collection: CollectionId) -> Option<u64> {
    if collection == CollectionId::DEFAULT {
        return Some(u64::try_from(vbucket.default_collection_count()).unwrap_or(u64::MAX));
    }
    vbucket.collection(collection).map(|here| here.item_count())
}
