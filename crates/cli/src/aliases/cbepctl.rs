//! `cbepctl`: what changes of a bucket while the node runs.

use clap::{Error, Parser, Subcommand};
use platform::redaction::Secret;

use super::login::{DataTls, Words, data_port, flag, refused};

/// Parameters of a running node's bucket, with cbepctl's options
#[derive(Parser)]
#[command(name = "cbepctl", disable_version_flag = true)]
struct Cbepctl {
    /// The node's data port
    #[arg(value_name = "HOST[:PORT]")]
    host: String,
    /// Who logs in
    #[arg(short = 'u', long = "username", global = true)]
    user: Option<String>,
    /// The user's password
    #[arg(short = 'p', long, global = true)]
    password: Option<Secret>,
    /// The bucket
    #[arg(short = 'b', long, global = true)]
    bucket: Option<String>,
    #[command(flatten)]
    tls: DataTls,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Set a parameter until the node stops
    Set {
        /// flush_param, checkpoint_param, dcp_param, vbucket_param or config_param
        group: String,
        /// The parameter's name
        name: String,
        /// The new value
        value: String,
        /// Of which vBucket a vbucket_param is
        vbid: Option<u16>,
    },
    /// Wait until everything is durable
    Drain,
    /// Go on making writes durable: that never stops here
    Start,
    /// Stop making writes durable: that cannot be
    Stop,
}

/// The command line of ours that does the same.
pub(super) fn translate(words: Words) -> Result<Words, Error> {
    let Cbepctl { host, user, password, bucket, tls, verb } = Cbepctl::try_parse_from(words)?;
    let action = match verb {
        Verb::Set { group, name, value, vbid } => {
            let vbid = vbid.map(|vbid| vbid.to_string());
            [vec!["set".to_owned(), group, name, value], flag("--vbucket", vbid.as_deref())]
                .concat()
        }
        Verb::Drain => vec!["drain".to_owned()],
        Verb::Start | Verb::Stop => {
            let why = "a node never stops making writes durable; `drain` waits until all are";
            return Err(refused(why.to_owned()));
        }
    };
    Ok([
        vec!["engine-control".to_owned()],
        action,
        data_port(&host)?,
        flag("--user", user.as_deref()),
        flag("--password", password.as_deref()),
        flag("--bucket", bucket.as_deref()),
        tls.words()?,
    ]
    .concat())
}
