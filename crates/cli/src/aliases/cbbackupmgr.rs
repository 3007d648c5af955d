//! `cbbackupmgr`: backups, as far as they are made alike.

use clap::{Error, Parser, Subcommand};
use platform::redaction::Secret;

use super::login::{Trust, Words, flag, refused, rest_port, unheard};

/// Backups, with cbbackupmgr's options: the archive and the repository are one target
#[derive(Parser)]
#[command(name = "cbbackupmgr", disable_version_flag = true)]
struct Cbbackupmgr {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Prepare a repository: a target needs no preparation
    Config(Place),
    /// Back a bucket up
    Backup {
        #[command(flatten)]
        place: Place,
        #[command(flatten)]
        trust: Trust,
        /// The cluster
        #[arg(short = 'c', long)]
        cluster: String,
        /// Who logs in
        #[arg(short = 'u', long)]
        username: Option<String>,
        /// The user's password
        #[arg(short = 'p', long)]
        password: Option<Secret>,
        /// The bucket: a backup is of one
        #[arg(long, value_name = "BUCKET")]
        include_data: Option<String>,
        /// vBuckets that are read at the same time
        #[arg(short = 't', long)]
        threads: Option<u8>,
    },
    /// List the backups of a repository
    #[command(visible_alias = "list")]
    Info {
        #[command(flatten)]
        place: Place,
        /// As JSON
        #[arg(short = 'j', long)]
        json: bool,
    },
    /// Put a backup back: not into a running node
    #[command(
        arg = unheard("cluster").short('c'),
        arg = unheard("username").short('u'),
        arg = unheard("password").short('p'),
        arg = unheard("threads").short('t'),
        arg = unheard("include-data"),
        arg = unheard("map-data")
    )]
    Restore(Place),
}

#[derive(clap::Args)]
struct Place {
    /// The archive: a directory, or s3://BUCKET/PREFIX
    #[arg(short = 'a', long)]
    archive: String,
    /// The repository in it
    #[arg(short = 'r', long)]
    repo: String,
}

impl Place {
    fn target(&self) -> String {
        format!("{}/{}", self.archive.trim_end_matches('/'), self.repo)
    }

    fn flag(&self) -> Words {
        flag("--target", Some(&self.target()))
    }
}

/// The command line of ours that does the same.
pub(super) fn translate(words: Words) -> Result<Words, Error> {
    match Cbbackupmgr::try_parse_from(words)?.verb {
        Verb::Config(place) => {
            Ok([vec!["backup".to_owned(), "--info".to_owned()], place.flag()].concat())
        }
        Verb::Backup { place, trust, cluster, username, password, include_data, threads } => {
            let Some(bucket) = include_data else {
                let why = "a backup is of one bucket: say which with --include-data BUCKET";
                return Err(refused(why.to_owned()));
            };
            Ok([
                vec!["backup".to_owned()],
                place.flag(),
                rest_port(&cluster)?,
                trust.words(),
                flag("--user", username.as_deref()),
                flag("--password", password.as_deref()),
                flag("--bucket", Some(&bucket)),
                flag("--parallel", threads.map(|count| count.clamp(1, 8).to_string()).as_deref()),
            ]
            .concat())
        }
        Verb::Info { place, json } => Ok([
            vec!["backup".to_owned(), "--info".to_owned()],
            place.flag(),
            json.then(|| "--json".to_owned()).into_iter().collect(),
        ]
        .concat()),
        Verb::Restore(place) => {
            let target = place.target();
            Err(refused(format!(
                "a backup is put into the data directory of a node that does not run: settee \
                 restore --target {target} --data-dir DIRECTORY --bucket BUCKET"
            )))
        }
    }
}
