//! `settee backup` and `settee restore`: a bucket's files in objects, and back.

mod checked;
mod crew;
pub(crate) mod dates;
mod directory;
mod held_backup;
mod info;
mod make;
mod manifest;
mod map;
mod parts;
mod restore;
mod s3;
mod signature;
mod spool;
mod target;
mod watch;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::builder::RangedU64ValueParser;
use platform::Clock;
use platform::files::RealFiles;
use serde_json::json;

use crate::output::print;
use crate::server_arguments::ServerArguments;
pub use restore::{RestoreReport, fetch};
pub use target::TargetArguments;

/// Back a bucket of a running node up, or list backups
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = BACKUP_HELP)]
pub struct BackupArguments {
    #[command(flatten)]
    target: TargetArguments,
    #[command(flatten)]
    server: ServerArguments,
    /// The node's REST port, as http://HOST:8091 [default: what the data port tells]
    #[arg(long, value_name = "URL", help_heading = "Server")]
    management: Option<String>,
    /// The backup's name [default: that of an interrupted one, or the bucket's name and the time]
    #[arg(long)]
    name: Option<String>,
    /// List the backups in the target, and ask no node
    #[arg(long)]
    info: bool,
    /// vBuckets that are read at the same time, 1 to 8
    #[arg(long, default_value_t = 4, value_parser = parallel_parser())]
    parallel: usize,
    /// The result as JSON
    #[arg(long)]
    json: bool,
}

/// Put a backup into the data directory of a node that does not run
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = RESTORE_HELP)]
pub struct RestoreArguments {
    #[command(flatten)]
    target: TargetArguments,
    /// The data directory of a node that does not run; made if it is missing
    #[arg(long, value_name = "DIRECTORY", default_value = "settee-data", env = "SETTEE_DATA_DIR")]
    pub data_dir: PathBuf,
    /// The name of the bucket that is made; there must be none of that name
    #[arg(long, default_value = "default", env = "SETTEE_BUCKET")]
    pub bucket: String,
    /// Which backup [default: the newest one of a bucket of that name]
    #[arg(long)]
    name: Option<String>,
    /// vBuckets that are fetched at the same time, 1 to 8
    #[arg(long, default_value_t = 4, value_parser = parallel_parser())]
    parallel: usize,
    /// The result as JSON
    #[arg(long)]
    json: bool,
}

/// A node sends no more vBuckets at the same time.
fn parallel_parser() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..=8)
}

const BACKUP_HELP: &str = "\
The node brings the files of all vBuckets up to date and holds them as they are: every write that
was answered before is in the backup, and each vBucket is as it was at one moment. A node that
cannot do that, because a file is damaged or its disk fails, gives no backup. The node goes
on serving, and what is written, compacted or deleted meanwhile changes nothing in the backup.

Of a cluster any node will do: its map names the others, and each gives the vBuckets that are active
on it. A node that cannot be reached is an error, and nothing is stored.

A backup is a set of objects, <name>/<vBucket>.<state>.<sha256>.couch, each a couchstore file that
settee verify-file and settee dump read, and <name>/manifest.json, which is stored last: without it
there is no backup. Run an interrupted backup again: what is stored already is not stored again.

Who knows cbbackupmgr: --target is the archive and the repository in one, and every backup is a
full one.

Examples:
  settee backup --target /backups --password secret
  settee backup --target /backups --spec couchbase://10.0.0.5 --password secret --bucket shop
  settee backup --target s3://company/settee --endpoint http://10.0.0.9:9000 --password secret
  settee backup --target /backups --info";

const RESTORE_HELP: &str = "\
Every object is compared with the manifest and checked as settee verify-file does. The bucket
appears when all is there and durable, and not before; settee serve --data-dir DIRECTORY then serves
it. Its vBuckets begin a new branch of their histories: clients that stream changes see that.

Examples:
  settee restore --target /backups --data-dir /srv/settee
  settee restore --target /backups --data-dir /srv/settee --name default-20240229T235959Z
  settee restore --target s3://company/settee --data-dir /srv/settee --bucket shop";

/// Runs `settee backup`.
pub fn run(arguments: &BackupArguments) -> anyhow::Result<ExitCode> {
    let files = Arc::new(RealFiles);
    if arguments.info {
        return info::run(&*arguments.target.open(files)?, arguments.json);
    }
    let made = make::make(arguments, files, &Clock::real())?;
    let (manifest, seconds) = (&made.manifest, made.seconds);
    if arguments.json {
        let result = json!({
            "backup": manifest.name,
            "vbuckets": manifest.vbuckets.len(),
            "nodes": manifest.nodes.len(),
            "deleted": manifest.deleted.len(),
            "empty": manifest.empty.len(),
            "reused": made.reused,
            "documents": manifest.documents(),
            "bytes": manifest.bytes(),
            "cut_milliseconds": manifest.cut_milliseconds,
            "seconds": seconds,
        });
        print(&format!("{result}\n"))?;
    } else {
        print(&format!(
            "backup {}: {} documents, {:.1} MB in {} vBuckets of {}, {} of them stored before; the \
             files are of moments {} ms apart; it took {seconds:.1} s\n",
            manifest.name,
            manifest.documents(),
            manifest.bytes() as f64 / 1e6,
            manifest.vbuckets.len(),
            of_nodes(manifest.nodes.len()),
            made.reused,
            manifest.cut_milliseconds,
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn of_nodes(count: usize) -> String {
    if count == 1 { "one node".to_owned() } else { format!("{count} nodes") }
}

/// Says what a restore came to.
pub fn report(arguments: &RestoreArguments, restored: &RestoreReport) -> anyhow::Result<ExitCode> {
    let RestoreReport { backup, documents, bytes, vbuckets, deleted, .. } = restored;
    let deleted = deleted.len();
    let (bucket, directory) = (&arguments.bucket, arguments.data_dir.display());
    if arguments.json {
        let result = json!({
            "backup": backup,
            "bucket": bucket,
            "vbuckets": vbuckets,
            "deleted": deleted,
            "documents": documents,
            "bytes": bytes,
        });
        print(&format!("{result}\n"))?;
    } else {
        print(&format!(
            "restored {backup}: {documents} documents, {:.1} MB in {vbuckets} vBuckets; {deleted} \
             were deleted before\n\
             serve them with: settee serve --data-dir {directory} --bucket {bucket}\n",
            *bytes as f64 / 1e6,
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}
