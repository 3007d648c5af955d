//! What a bucket's directory says about the bucket: `bucket.json`, and the mark of a clean stop.

use std::path::Path;

use document::limits::VBUCKET_COUNT_MAX;
use document::{Manifest, Vbid};
use platform::{Entropy, FileError, FileErrorKind, Files};
use serde::{Deserialize, Serialize};
use storage::{LastStop, Witnesses};

use super::absent_vbuckets::{AbsentVbuckets, LIST_NAME};
use super::adoption;
use super::adoption::Adoption;
use super::deletion::DELETED_MARK_NAME;
use super::lost_description;
use super::open_error::OpenError;
use crate::collections::manifest_json;
use crate::config::{BucketConfig, BucketType, ConflictResolution, Named};

/// The version of this file's layout.
const FORMAT: u32 = 1;
pub(crate) const DESCRIPTION_NAME: &str = "bucket.json";
pub(super) const CLEAN_MARK_NAME: &str = "clean-stop";
/// Which scopes and collections there are, once that was changed.
pub(crate) const MANIFEST_NAME: &str = "manifest.json";
/// The mark of a clean stop, once the bucket has been opened after it.
pub(super) const LAST_STOP_NAME: &str = "last-stop";
/// What a node keeps beside it.
pub const SETTINGS_NAME: &str = "settings.json";
/// What it means that they are gone, and what to do.
pub(super) const LOST_SETTINGS: &str = "is missing, and was there: quota, eviction, durability and \
     time to live of the bucket are those of a start; put the file back from a copy of the \
     directory, or say them again with `settee bucket edit`";

/// What is fixed when a bucket is made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BucketFile {
    format: u32,
    pub(crate) name: String,
    /// 32 hexadecimal digits.
    pub(crate) uuid: String,
    pub(crate) vbucket_count: u16,
    /// Absent in the files of older versions, which knew one type.
    #[serde(default)]
    pub(crate) bucket_type: BucketType,
    /// Absent in the files of older versions, which knew one.
    #[serde(default)]
    pub(crate) conflict_resolution: ConflictResolution,
    /// Whether settings were kept beside it when it was opened: that they are gone is told.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    has_settings: bool,
}

/// Whether a description that can be read is in `directory`: a bucket of this server is, or was.
pub fn is_described(files: &dyn Files, directory: &Path) -> bool {
    let content = files.read_all(&directory.join(DESCRIPTION_NAME));
    content.is_ok_and(|content| parse(&content).is_ok())
}

/// Reads the description in `directory`, or writes one for a new bucket.
pub(crate) fn open_or_create(
    files: &dyn Files,
    directory: &Path,
    config: &BucketConfig,
    entropy: &Entropy,
) -> Result<BucketFile, OpenError> {
    let path = directory.join(DESCRIPTION_NAME);
    match files.read_all(&path) {
        Ok(content) => parse(&content)
            .map_err(str::to_owned)
            .and_then(|description| check_fixed(description, config))
            .map_err(|what| OpenError::BadDescription { path, what }),
        Err(error) if error.kind == FileErrorKind::NotFound => {
            lost_description::check(files, directory)?;
            let description = match adoption::look(files, directory)? {
                Adoption::Nothing => fresh(config, entropy),
                Adoption::Files { vbucket_count, others } => {
                    let demanded = config.demands_vbucket_count.then_some(config.vbucket_count);
                    let count = Adoption::vbucket_count(vbucket_count, &others, demanded);
                    let refuse = |what| OpenError::BadDescription { path: directory.into(), what };
                    let adopted = BucketFile {
                        vbucket_count: count.map_err(refuse)?,
                        bucket_type: BucketType::Couchbase,
                        ..fresh(config, entropy)
                    };
                    check_fixed(adopted, config)
                        .map_err(|what| OpenError::BadDescription { path: path.clone(), what })?
                }
            };
            write(files, directory, &description)?;
            Ok(description)
        }
        Err(error) => Err(error.into()),
    }
}

/// Reads the description in `directory`, if there is one, and makes none.
///
/// # Errors
/// A bucket with that description does not open, or not as `config` says it.
pub(super) fn check_description(
    files: &dyn Files,
    directory: &Path,
    config: Option<&BucketConfig>,
) -> Result<(), OpenError> {
    let path = directory.join(DESCRIPTION_NAME);
    match files.read_all(&path) {
        Err(error) if error.kind == FileErrorKind::NotFound => {
            lost_description::check(files, directory)
        }
        content => {
            let described = parse(&content?).map_err(str::to_owned);
            let checked = described.and_then(|described| match config {
                Some(config) => check_fixed(described, config),
                None => Ok(described),
            });
            checked.map(drop).map_err(|what| OpenError::BadDescription { path, what })
        }
    }
}

/// Notes in the description that settings are kept beside it, once there are; and tells where they
/// were, and are not any more.
pub(crate) fn note_settings(
    files: &dyn Files,
    directory: &Path,
    description: &mut BucketFile,
) -> Result<(), OpenError> {
    let settings = directory.join(SETTINGS_NAME);
    match (files.exists(&settings)?, description.has_settings) {
        (true, false) => {
            description.has_settings = true;
            // On a disk that takes nothing the next start notes it.
            drop(write(files, directory, description));
        }
        (false, true) => {
            tracing::warn!(file = %settings.display(), "settings.json {LOST_SETTINGS}")
        }
        _ => {}
    }
    Ok(())
}

/// Whether settings were kept in `directory`, and are not any more.
pub(super) fn has_lost_settings(files: &dyn Files, directory: &Path) -> bool {
    let content = files.read_all(&directory.join(DESCRIPTION_NAME));
    let noted = content.is_ok_and(|content| parse(&content).is_ok_and(|it| it.has_settings));
    noted && files.exists(&directory.join(SETTINGS_NAME)).is_ok_and(|exists| !exists)
}

fn write(files: &dyn Files, directory: &Path, description: &BucketFile) -> Result<(), FileError> {
    let json = serde_json::to_vec_pretty(description).expect("the description is JSON");
    files.replace_all(&directory.join(DESCRIPTION_NAME), &json)
}

/// What is known of a bucket whose files were put into a directory.
#[derive(Clone, Debug)]
pub struct RestoredBucket<'a> {
    /// Its scopes and collections, where the copy says them; vBuckets may follow newer ones.
    pub manifest: Option<Manifest>,
    /// The vBuckets that are not to be there.
    pub deleted: &'a [Vbid],
}

/// Describes a bucket whose files were put into `directory`: a new bucket, whatever it was a copy
/// of, whose last stop was no clean one.
///
/// # Errors
/// The description is not there then, or it is as it was to be.
pub fn describe_restored(
    files: &dyn Files,
    directory: &Path,
    config: &BucketConfig,
    restored: &RestoredBucket<'_>,
) -> Result<(), OpenError> {
    AbsentVbuckets::open(files, directory)?.add(files, restored.deleted)?;
    if let Some(manifest) = &restored.manifest {
        let text = manifest_json::encode_restored(manifest);
        files.replace_all(&directory.join(MANIFEST_NAME), text.as_bytes())?;
    }
    // Behind the list: a bucket that is described begins vBuckets without a file empty, but for
    // those on it.
    Ok(write(files, directory, &fresh(config, &Entropy::real()))?)
}

/// What the directory says of the last stop.
pub(crate) fn last_stop(
    files: &dyn Files,
    directory: &Path,
    config: &BucketConfig,
) -> Result<LastStop, OpenError> {
    let accepts_lost_journal = config.accepts_lost_journal;
    let stop = |was_clean, witnesses| LastStop { was_clean, witnesses, accepts_lost_journal };
    match read_witnesses(files, &directory.join(CLEAN_MARK_NAME))? {
        Mark::Absent => {}
        Mark::Empty => return Ok(stop(true, None)),
        Mark::Witnesses(witnesses) => return Ok(stop(true, Some(witnesses))),
        // That it is there says that the stop was a clean one; of no file it says that it is whole.
        Mark::Damaged => return Ok(stop(true, Some(Witnesses::default()))),
    }
    match read_witnesses(files, &directory.join(LAST_STOP_NAME))? {
        Mark::Witnesses(witnesses) => Ok(stop(false, Some(witnesses))),
        Mark::Absent | Mark::Empty | Mark::Damaged => Ok(stop(false, None)),
    }
}

/// What there is of a mark.
enum Mark {
    Absent,
    /// One of an older version, or of a run without a journal: it says nothing of files.
    Empty,
    Witnesses(Witnesses),
    Damaged,
}

fn read_witnesses(files: &dyn Files, path: &Path) -> Result<Mark, OpenError> {
    let mark = match files.read_all(path) {
        Ok(text) if text.is_empty() => Mark::Empty,
        Ok(text) => Witnesses::decode(&text).map_or(Mark::Damaged, Mark::Witnesses),
        Err(error) if error.kind == FileErrorKind::NotFound => Mark::Absent,
        Err(error) if error.kind == FileErrorKind::Failed => Mark::Damaged,
        Err(error) => return Err(error.into()),
    };
    if matches!(mark, Mark::Damaged) {
        let file = path.display();
        tracing::error!(
            %file,
            "the mark of the last stop is damaged: files are believed without a second witness, \
             and vBuckets begin new branches of history; compare with a replica or a backup"
        );
    }
    Ok(mark)
}

/// The bucket begins to change: a crash from now on is seen as one. What the mark tells of files
/// holds until a journal tells that; where there is none, nobody says later what has become of it,
/// and an empty one stays, which says that a bucket of this server is here.
pub(crate) fn begin_run(
    files: &dyn Files,
    directory: &Path,
    keeps_journal: bool,
) -> Result<(), OpenError> {
    let (mark, last_stop) = (directory.join(CLEAN_MARK_NAME), directory.join(LAST_STOP_NAME));
    let changed = if keeps_journal {
        files.rename(&mark, &last_stop)
    } else {
        // In this order: what it said of files must not outlast a newer mark.
        empty_mark(files, &last_stop)?;
        files.remove(&mark)
    };
    if_there(changed)?;
    Ok(files.sync_directory(directory)?)
}

/// Has the mark at `path` say nothing of files. A full disk, which has no room for that, keeps
/// nobody from a start: then there is none.
fn empty_mark(files: &dyn Files, path: &Path) -> Result<(), FileError> {
    if files.read_all(path).is_ok_and(|text| text.is_empty()) {
        return Ok(());
    }
    files.replace_all(path, b"").or_else(|_| if_there(files.remove(path)))
}

/// The result of a change of a file that need not be there.
fn if_there(changed: Result<(), FileError>) -> Result<(), FileError> {
    match changed {
        Err(error) if error.kind == FileErrorKind::NotFound => Ok(()),
        changed => changed,
    }
}

/// Says that everything acknowledged is in the files, and where those are.
pub(crate) fn leave_clean_mark(
    files: &dyn Files,
    directory: &Path,
    witnesses: &Witnesses,
) -> Result<(), OpenError> {
    Ok(files.replace_all(&directory.join(CLEAN_MARK_NAME), &witnesses.encode())?)
}

/// Whether a name in the directory is one of this module's, or one that it has in the making.
pub(crate) fn is_own_name(name: &str) -> bool {
    let name = name.strip_suffix(".new").unwrap_or(name);
    let own = [
        DESCRIPTION_NAME,
        CLEAN_MARK_NAME,
        LAST_STOP_NAME,
        LIST_NAME,
        MANIFEST_NAME,
        SETTINGS_NAME,
        DELETED_MARK_NAME,
    ];
    own.contains(&name) || own.iter().any(|own| own.strip_suffix(".json") == Some(name))
}

fn fresh(config: &BucketConfig, entropy: &Entropy) -> BucketFile {
    let uuid = config.uuid.clone().unwrap_or_else(|| {
        let mut uuid = [0; 16];
        entropy.fill(&mut uuid);
        format!("{:032x}", u128::from_be_bytes(uuid))
    });
    BucketFile {
        format: FORMAT,
        name: config.name.clone(),
        uuid,
        vbucket_count: config.vbucket_count,
        bucket_type: config.bucket_type.unwrap_or_default(),
        conflict_resolution: config.conflict_resolution.unwrap_or_default(),
        has_settings: false,
    }
}

/// A type that was asked for has to be the one that the bucket has: documents of the one are not
/// there for the other. So has a number of vBuckets, and so has the way in which versions win: by
/// another one, other versions would have won so far.
fn check_fixed(description: BucketFile, config: &BucketConfig) -> Result<BucketFile, String> {
    let (wanted, count) = (config.vbucket_count, description.vbucket_count);
    if config.demands_vbucket_count && wanted != count {
        return Err(format!(
            "says that the bucket has {count} vBuckets, not {wanted}: their number is fixed when a \
             bucket is made; leave --vbuckets out, or give another directory"
        ));
    }
    let resolution = description.conflict_resolution;
    if let Some(wanted) = config.conflict_resolution.filter(|wanted| *wanted != resolution) {
        return Err(format!(
            "says that the bucket resolves conflicts by `{}`, not by `{}`: that is fixed when a \
             bucket is made; leave --conflict-resolution out, or give another directory",
            resolution.name(),
            wanted.name()
        ));
    }
    match config.bucket_type {
        Some(wanted) if wanted != description.bucket_type => Err(format!(
            "says that the bucket is of the type `{}`; start it as that, or give `{}` another \
             directory",
            description.bucket_type.name(),
            wanted.name()
        )),
        _ => Ok(description),
    }
}

fn parse(content: &[u8]) -> Result<BucketFile, &'static str> {
    let description: BucketFile = serde_json::from_slice(content)
        .map_err(|_| "is not a bucket description; restore it from a backup")?;
    if description.format != FORMAT {
        return Err("was written by a newer version; use that version");
    }
    let count = description.vbucket_count;
    if !count.is_power_of_two() || count > VBUCKET_COUNT_MAX {
        return Err("has a vBucket count that is no power of two up to 32768");
    }
    Ok(description)
}
