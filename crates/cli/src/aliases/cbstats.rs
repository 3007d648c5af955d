//! `cbstats`: the statistics of a node's data port.

use clap::{Error, Parser};
use platform::redaction::Secret;

use super::login::{DataTls, Words, data_port, flag};

/// Statistics of a node, with cbstats' options
#[derive(Parser)]
#[command(name = "cbstats", disable_version_flag = true)]
struct Cbstats {
    /// The node's data port
    #[arg(value_name = "HOST[:PORT]")]
    host: String,
    /// The group, and what it is asked about; `timings` is drawn
    #[arg(value_name = "GROUP", required = true)]
    group: Vec<String>,
    /// Who logs in
    #[arg(short = 'u', long = "username")]
    user: Option<String>,
    /// The user's password
    #[arg(short = 'p', long)]
    password: Option<Secret>,
    /// The bucket
    #[arg(short = 'b', long)]
    bucket: Option<String>,
    /// One JSON object instead of lines
    #[arg(short = 'j', long)]
    json: bool,
    #[command(flatten)]
    tls: DataTls,
}

/// The command line of ours that does the same.
pub(super) fn translate(words: Words) -> Result<Words, Error> {
    let Cbstats { host, mut group, user, password, bucket, json, tls } =
        Cbstats::try_parse_from(words)?;
    // The group as it is, which is how all are told.
    if group.len() > 1 && group.first().is_some_and(|word| word == "raw") {
        group.remove(0);
    }
    let is_drawn = group == ["timings"];
    Ok([
        vec![if is_drawn { "timings" } else { "stats" }.to_owned()],
        if is_drawn { Words::new() } else { group },
        data_port(&host)?,
        flag("--user", user.as_deref()),
        flag("--password", password.as_deref()),
        flag("--bucket", bucket.as_deref()),
        tls.words()?,
        json.then(|| "--json".to_owned()).into_iter().collect(),
    ]
    .concat())
}
