//! `mctimings`: the histograms of a node's data port.

use clap::{Arg, ArgAction, Error, Parser};
use platform::redaction::Secret;

use super::login::{DataTls, Words, data_port, flag, without_meaning};

/// Histograms by the commands that they are of: those of a family are in one.
const FAMILIES: [(&str, &[&str]); 4] = [
    ("get_cmd", &["GET", "GETQ", "GETK", "GETKQ", "GAT", "GET_LOCKED"]),
    (
        "store_cmd",
        &["SET", "SETQ", "ADD", "ADDQ", "REPLACE", "APPEND", "PREPEND", "DELETE", "TOUCH"],
    ),
    ("arith_cmd", &["INCREMENT", "DECREMENT"]),
    ("get_stats_cmd", &["STAT"]),
];

/// Histograms of a node, with mctimings' options
#[derive(Parser)]
#[command(
    name = "mctimings",
    disable_version_flag = true,
    disable_help_flag = true,
    arg = Arg::new("help").long("help").action(ArgAction::Help).help("Print help"),
    arg = without_meaning("verbose").short('v')
)]
struct Mctimings {
    /// Commands, whose family is shown, or histograms by their names; all when left out
    names: Vec<String>,
    /// The node's data port
    #[arg(short = 'h', long, default_value = "127.0.0.1", value_name = "HOST[:PORT]")]
    host: String,
    /// The node's data port, when it is not said with the host
    #[arg(short = 'p', long)]
    port: Option<u16>,
    /// Who logs in
    #[arg(short = 'u', long)]
    user: Option<String>,
    /// The user's password
    #[arg(short = 'P', long)]
    password: Option<Secret>,
    /// The bucket
    #[arg(short = 'b', long)]
    bucket: Option<String>,
    /// One JSON object instead of drawings
    #[arg(short = 'j', long)]
    json: bool,
    #[command(flatten)]
    tls: DataTls,
}

/// The command line of ours that does the same.
pub(super) fn translate(words: Words) -> Result<Words, Error> {
    let Mctimings { names, host, port, user, password, bucket, json, tls } =
        Mctimings::try_parse_from(words)?;
    let mut histograms: Words = names.iter().map(|name| histogram_of(name)).collect();
    histograms.dedup();
    Ok([
        vec!["timings".to_owned()],
        histograms,
        data_port(&host)?,
        flag("--port", port.map(|port| port.to_string()).as_deref()),
        flag("--user", user.as_deref()),
        flag("--password", password.as_deref()),
        flag("--bucket", bucket.as_deref()),
        tls.words()?,
        json.then(|| "--json".to_owned()).into_iter().collect(),
    ]
    .concat())
}

/// A name that is of no command is a histogram's own.
fn histogram_of(name: &str) -> String {
    let family = FAMILIES.iter().find(|(_, commands)| commands.contains(&name));
    family.map_or(name, |(family, _)| *family).to_owned()
}
