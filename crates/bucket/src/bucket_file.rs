//! What a bucket's directory says about the bucket: `bucket.json`, and the mark of a clean stop.

use std::path::Path;

use document::Vbid;
use document::limits::VBUCKET_COUNT_MAX;
use platform::{FileErrorKind, Files};
use serde::{Deserialize, Serialize};

use crate::absent_vbuckets::{AbsentVbuckets, LIST_NAME};
use crate::adoption::{self, Adoption};
use crate::bucket_type::BucketType;
use crate::config::BucketConfig;
use crate::named::Named;
use crate::start_up::OpenError;

/// The version of this file's layout.
const FORMAT: u32 = 1;
const DESCRIPTION_NAME: &str = "bucket.json";
const CLEAN_MARK_NAME: &str = "clean-stop";

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
}

/// Reads the description in `directory`, or writes one for a new bucket.
pub(crate) fn open_or_create(
    files: &dyn Files,
    directory: &Path,
    config: &BucketConfig,
) -> Result<BucketFile, OpenError> {
    let path = directory.join(DESCRIPTION_NAME);
    match files.read_all(&path) {
        Ok(content) => parse(&content)
            .map_err(str::to_owned)
            .and_then(|description| check_type(description, config.bucket_type))
            .map_err(|what| OpenError::BadDescription { path, what }),
        Err(error) if error.kind == FileErrorKind::NotFound => {
            let description = match adoption::look(files, directory)? {
                Adoption::Nothing => fresh(config),
                Adoption::Files { vbucket_count } => {
                    let adopted = BucketFile {
                        vbucket_count,
                        bucket_type: BucketType::Couchbase,
                        ..fresh(config)
                    };
                    check_type(adopted, config.bucket_type)
                        .map_err(|what| OpenError::BadDescription { path: path.clone(), what })?
                }
            };
            let json = serde_json::to_vec_pretty(&description).expect("the description is JSON");
            files.replace_all(&path, &json)?;
            Ok(description)
        }
        Err(error) => Err(error.into()),
    }
}

/// Describes a bucket whose files were put into `directory`: a new bucket, whatever it was a copy
/// of, whose last stop was no clean one, without the vBuckets that were `deleted`.
///
/// # Errors
/// The description is not there then, or it is as it was to be.
pub fn describe_restored(
    files: &dyn Files,
    directory: &Path,
    name: &str,
    vbucket_count: u16,
    deleted: &[Vbid],
) -> Result<(), OpenError> {
    AbsentVbuckets::open(files, directory)?.add(files, deleted)?;
    let config = BucketConfig { vbucket_count, ..BucketConfig::named(name) };
    let json = serde_json::to_vec_pretty(&fresh(&config)).expect("the description is JSON");
    Ok(files.replace_all(&directory.join(DESCRIPTION_NAME), &json)?)
}

/// Whether the last stop was a clean one: everything acknowledged is in the files. The mark goes
/// at once, so that a crash from now on is seen as one.
pub(crate) fn take_clean_mark(files: &dyn Files, directory: &Path) -> Result<bool, OpenError> {
    match files.remove(&directory.join(CLEAN_MARK_NAME)) {
        Ok(()) => {
            files.sync_directory(directory)?;
            Ok(true)
        }
        Err(error) if error.kind == FileErrorKind::NotFound => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Says that everything acknowledged is in the files.
pub(crate) fn leave_clean_mark(files: &dyn Files, directory: &Path) -> Result<(), OpenError> {
    Ok(files.replace_all(&directory.join(CLEAN_MARK_NAME), b"")?)
}

/// Whether a name in the directory is one of this module's.
pub(crate) fn is_own_name(name: &str) -> bool {
    [DESCRIPTION_NAME, CLEAN_MARK_NAME, LIST_NAME].contains(&name)
}

fn fresh(config: &BucketConfig) -> BucketFile {
    let mut uuid = [0; 16];
    platform::random::secret(&mut uuid);
    BucketFile {
        format: FORMAT,
        name: config.name.clone(),
        uuid: format!("{:032x}", u128::from_be_bytes(uuid)),
        vbucket_count: config.vbucket_count,
        bucket_type: config.bucket_type.unwrap_or_default(),
    }
}

/// A type that was asked for has to be the one that the bucket has: documents of the one are not
/// there for the other.
fn check_type(description: BucketFile, wanted: Option<BucketType>) -> Result<BucketFile, String> {
    match wanted {
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
