//! `settee restore`: a bucket that appears in a data directory whole, or not at all.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, bail};
use bucket::{BucketConfig, ConflictResolution, Named, RestoredBucket, manifest_json};
use cli::RestoreArguments;
use node::{BucketSettings, DataDirectory};
use platform::files::{RealFiles, remove_tree};
use platform::{Entropy, Files};

/// Puts a backup into a data directory.
pub fn restore(arguments: &RestoreArguments) -> anyhow::Result<ExitCode> {
    let files: Arc<dyn Files> = Arc::new(RealFiles);
    let directory =
        DataDirectory::open(&*files, &Entropy::real(), &arguments.data_dir, &[&arguments.bucket])?;
    let bucket = directory.bucket(&*files, &arguments.bucket)?;
    let name = bucket.file_name().map(|name| name.to_string_lossy().into_owned());
    if name.as_deref() != Some(&arguments.bucket) || arguments.bucket.starts_with('.') {
        bail!("--bucket {} is no name of a bucket", arguments.bucket);
    }
    if files.exists(&bucket)? {
        bail!(
            "there is a bucket {} in {} already, and nothing of it is overwritten; give another \
             --data-dir or --bucket, or move {} away",
            arguments.bucket,
            arguments.data_dir.display(),
            bucket.display()
        );
    }
    let buckets = bucket.parent().context("a bucket is in a directory")?;
    // No node serves a bucket whose name begins with a dot.
    let fresh = buckets.join(format!(".restoring-{}", arguments.bucket));
    if files.exists(&fresh)? {
        // Of a restore that was cut off; the lock says that it does not run.
        remove_tree(&fresh)?;
    }
    files.create_directories(&fresh)?;
    let restored = fill(arguments, &files, &fresh);
    if restored.is_err() {
        // If it stays, nobody serves it, and the next restore removes it.
        drop(remove_tree(&fresh));
    }
    let restored = restored?;
    files.rename(&fresh, &bucket)?;
    files.sync_directory(buckets)?;
    cli::backup::report(arguments, &restored)
}

/// All files of the bucket, durable.
fn fill(
    arguments: &RestoreArguments,
    files: &Arc<dyn Files>,
    directory: &Path,
) -> anyhow::Result<cli::backup::RestoreReport> {
    let restored = cli::backup::fetch(arguments, Arc::clone(files), directory)?;
    let rule = &restored.conflict_resolution;
    let rule = ConflictResolution::by_name(rule).map_err(anyhow::Error::msg)?;
    let bucket = BucketConfig {
        vbucket_count: restored.vbucket_count,
        conflict_resolution: Some(rule),
        ..BucketConfig::named(&arguments.bucket)
    };
    let manifest = restored.collections.as_ref().map(|text| manifest_json::decode(text.as_bytes()));
    let manifest = manifest.transpose().map_err(anyhow::Error::msg);
    let manifest = manifest.context("the scopes and collections of the backup are damaged")?;
    BucketSettings::keep_restored(&restored.settings, &**files, directory)
        .context("the bucket's settings in the backup are damaged, or a newer version's")?;
    let restored_bucket = RestoredBucket { manifest, deleted: &restored.deleted };
    bucket::describe_restored(&**files, directory, &bucket, &restored_bucket)?;
    files.sync_directory(directory)?;
    Ok(restored)
}
