//! Which server a tool talks to, and as whom.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use client::{ClientError, Connection, ConnectionOptions, Login, ServerAddress};
use platform::redaction::Secret;
use protocol::Status;

use crate::encryption::TlsArguments;

/// The port of Couchbase-like servers.
const DATA_PORT: u16 = 11210;
/// Theirs behind TLS.
const ENCRYPTED_PORT: u16 = 11207;
/// The port of memcached.
const MEMCACHED_PORT: u16 = 11211;

/// The options that all tools share.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Server")]
pub struct ServerArguments {
    /// `couchbase://HOST:PORT/BUCKET`, `couchbases://` for TLS, or `memcached://HOST:PORT` for a
    /// server without Couchbase's extensions; takes precedence over --host and --port, and where it
    /// names a bucket over --bucket
    #[arg(short = 'U', long, value_name = "URL")]
    pub spec: Option<String>,
    /// Host name or address
    #[arg(long, env = "SETTEE_HOST", default_value = "127.0.0.1")]
    pub host: String,
    /// Data port [default: 11210, with --tls 11207, with --memcached 11211]
    #[arg(long, env = "SETTEE_PORT")]
    pub port: Option<u16>,
    /// Bucket [default: with a user "default", otherwise whatever the server gives]
    #[arg(long, env = "SETTEE_BUCKET")]
    pub bucket: Option<String>,
    /// Who logs in [default: with a password "Administrator", otherwise nobody]
    #[arg(short = 'u', long, visible_alias = "username", env = "SETTEE_USER")]
    pub user: Option<String>,
    /// The user's password
    #[arg(short = 'P', long, env = "SETTEE_PASSWORD", hide_env_values = true)]
    pub password: Option<Secret>,
    /// A file with the password, for where none is said
    #[arg(long, value_name = "FILE", env = "SETTEE_PASSWORD_FILE")]
    pub password_file: Option<PathBuf>,
    /// How to log in: SCRAM-SHA512, SCRAM-SHA256, SCRAM-SHA1 or PLAIN
    #[arg(long, default_value = "SCRAM-SHA512", value_name = "MECHANISM")]
    pub sasl: String,
    /// Speak as a memcached client: no login, no bucket, one vBucket
    #[arg(long)]
    pub memcached: bool,
    /// How long to wait for an answer
    #[arg(long, default_value_t = 10.0, value_name = "SECONDS")]
    pub timeout: f64,
    #[command(flatten)]
    pub(crate) tls: TlsArguments,
}

/// Where to connect, and how.
#[derive(Clone, Debug)]
pub struct Target {
    /// The first node that answers is used. Never empty.
    pub nodes: Vec<ServerAddress>,
    /// How to connect.
    pub options: ConnectionOptions,
}

impl ServerArguments {
    /// Makes sense of the options.
    pub fn target(&self) -> anyhow::Result<Target> {
        let Place { nodes, bucket, scheme: Scheme { is_classic, is_encrypted } } = self.place()?;
        let is_certified = self.tls.is_user_certified();
        ensure!(is_encrypted || !is_certified, "--client-cert is shown behind TLS: say --tls, too");
        let mut options = ConnectionOptions::new("settee-cli");
        options.timeout = self.time_to_wait()?;
        options.is_classic = is_classic;
        options.tls = is_encrypted.then(|| self.tls.connector()).transpose()?;
        let user = self.user_to_log_in();
        if let Some(user) = user.filter(|_| !is_classic) {
            let password = self.password_to_log_in()?.context("--user needs --password")?;
            let login = Login::new(user, &*password).with_mechanism(&self.sasl);
            options.login = Some(login.with_context(|| format!("no mechanism {}", self.sasl))?);
        }
        let default = || (user.is_some() || is_certified).then(|| "default".to_owned());
        options.bucket = bucket.or_else(default).filter(|_| !is_classic);
        Ok(Target { nodes, options })
    }

    /// The bucket that is said, if one is.
    pub(crate) fn said_bucket(&self) -> anyhow::Result<Option<String>> {
        Ok(self.place()?.bucket)
    }

    /// Whether the data port is asked by TLS.
    pub(crate) fn is_encrypted(&self) -> anyhow::Result<bool> {
        Ok(self.place()?.scheme.is_encrypted)
    }

    /// How long to wait for an answer.
    pub(crate) fn time_to_wait(&self) -> anyhow::Result<Duration> {
        ensure!(self.timeout > 0.0 && self.timeout < 1e6, "--timeout is a time in seconds");
        Ok(Duration::from_secs_f64(self.timeout))
    }

    /// A password alone is the administrator's, by the name that a node gives it by default. Where
    /// a certificate says who asks, nobody logs in.
    pub(crate) fn user_to_log_in(&self) -> Option<&str> {
        if self.tls.is_user_certified() {
            return None;
        }
        let has_password = self.password.is_some() || self.password_file.is_some();
        self.user.as_deref().or(has_password.then_some("Administrator"))
    }

    /// The password that is said, or else that of the file.
    pub(crate) fn password_to_log_in(&self) -> anyhow::Result<Option<Secret>> {
        let Some(path) = self.password_file.as_ref().filter(|_| self.password.is_none()) else {
            return Ok(self.password.clone());
        };
        let text = platform::files::read_text(path).with_context(|| {
            format!("--password-file {} cannot be read; name a readable file", path.display())
        })?;
        Ok(Some(text.trim_end_matches(['\r', '\n']).into()))
    }

    fn place(&self) -> anyhow::Result<Place> {
        let scheme = Scheme { is_classic: self.memcached, is_encrypted: self.tls.is_wanted };
        let mut place = if let Some(spec) = &self.spec {
            Place::parse(spec, scheme)
                .with_context(|| format!("--spec {spec} is no connection string"))?
        } else {
            let port = self.port.unwrap_or(scheme.default_port());
            Place { nodes: vec![ServerAddress::new(&self.host, port)], bucket: None, scheme }
        };
        if place.bucket.is_none() {
            place.bucket = self.bucket.clone();
        }
        Ok(place)
    }
}

impl Target {
    /// Connects to the first node that answers.
    pub fn connect(&self) -> anyhow::Result<(ServerAddress, Connection)> {
        // What a node takes from the same variable may be several.
        let is_one = self.options.bucket.as_ref().is_none_or(|name| !name.contains(','));
        ensure!(is_one, "SETTEE_BUCKET or --bucket has several names; say one with --bucket");
        let mut failure = None;
        for node in &self.nodes {
            match Connection::open(node, &self.options) {
                Ok(connection) => return Ok((node.clone(), connection)),
                Err(error) => failure = Some(error),
            }
        }
        Err(explain(failure.expect("there is a node")))
    }
}

/// Adds what the user can do about it.
pub(crate) fn explain(error: ClientError) -> anyhow::Error {
    let hint = match error.refusal() {
        Some(Status::Eaccess | Status::NoBucket) => {
            "log in with --user and --password, and name a bucket with --bucket"
        }
        Some(Status::AuthError) => "check --user and --password",
        Some(Status::KeyEnoent) => "check --bucket",
        _ => match error {
            ClientError::Lost { ref cause, .. } if cause.kind() == ErrorKind::InvalidData => {
                "TLS: check --ca, and whether this is a port behind TLS"
            }
            ClientError::Nonsense { .. } => {
                "is this a node's data port? one behind TLS wants --tls, memcached's --memcached"
            }
            ClientError::Unreachable { .. } => "is the server running? check --host and --port",
            ClientError::Lost { .. } => "the server has ended or lets nobody in; its log says why",
            _ => return error.into(),
        },
    };
    anyhow::Error::new(error).context(hint).context("the server cannot be used")
}

struct Place {
    nodes: Vec<ServerAddress>,
    bucket: Option<String>,
    scheme: Scheme,
}

/// How a server is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Scheme {
    is_classic: bool,
    is_encrypted: bool,
}

impl Place {
    /// What a connection string says, and `flags` where it leaves that open.
    fn parse(spec: &str, flags: Scheme) -> anyhow::Result<Self> {
        let (scheme, rest) = spec.split_once("://").unwrap_or(("couchbase", spec));
        let scheme = match scheme {
            "couchbase" => flags,
            "couchbases" => Scheme { is_encrypted: true, ..flags },
            "memcached" => Scheme { is_classic: true, ..flags },
            other => bail!("the scheme is couchbase, couchbases or memcached, not {other}"),
        };
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        ensure!(query.is_empty(), "options behind '?' are not supported");
        let (hosts, bucket) = rest.split_once('/').unwrap_or((rest, ""));
        let port = scheme.default_port();
        let nodes = hosts.split([',', ';']).map(|host| parse_host(host, port));
        let nodes = nodes.collect::<anyhow::Result<_>>()?;
        let bucket = (!bucket.is_empty()).then(|| bucket.to_owned());
        Ok(Self { nodes, bucket, scheme })
    }
}

impl Scheme {
    fn default_port(self) -> u16 {
        match self {
            Self { is_classic: true, .. } => MEMCACHED_PORT,
            Self { is_encrypted: true, .. } => ENCRYPTED_PORT,
            _ => DATA_PORT,
        }
    }
}

fn parse_host(text: &str, default_port: u16) -> anyhow::Result<ServerAddress> {
    // "[::1]:11210" or "[::1]"
    if let Some((host, rest)) = text.strip_prefix('[').and_then(|text| text.split_once(']')) {
        let port = rest.strip_prefix(':').map_or(Ok(default_port), str::parse);
        return Ok(ServerAddress::new(host, port.context("the port is a number")?));
    }
    let (host, port) = match text.split_once(':') {
        Some((host, port)) => {
            // "host:12000=mcd", as libcouchbase writes it
            let port = port.strip_suffix("=mcd").unwrap_or(port);
            (host, port.parse().with_context(|| format!("{port} is no port"))?)
        }
        None => (text, default_port),
    };
    ensure!(!host.is_empty(), "a host is missing");
    Ok(ServerAddress::new(host, port))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use platform::Files;
    use platform::files::RealFiles;

    use super::*;

    #[derive(clap::Parser)]
    struct Command {
        #[command(flatten)]
        server: ServerArguments,
    }

    #[test]
    fn a_password_alone_is_the_administrators() {
        for (line, is_login, bucket) in [
            ("tool --password p", true, Some("default")),
            ("tool --password p --bucket b", true, Some("b")),
            ("tool --user bob --password p", true, Some("default")),
            ("tool", false, None),
            ("tool --memcached --password p", false, None),
        ] {
            let command = Command::try_parse_from(line.split(' ')).unwrap();
            let options = command.server.target().unwrap().options;
            assert_eq!(options.login.is_some(), is_login, "{line}");
            assert_eq!(options.bucket.as_deref(), bucket, "{line}");
        }
        let refused = |line: &str| {
            let command = Command::try_parse_from(line.split(' ')).unwrap();
            format!("{:#}", command.server.target().unwrap_err())
        };
        assert!(refused("tool --user bob").contains("needs --password"), "a user needs a password");
        let certified = "tool --password p --client-cert c --client-key k";
        assert!(refused(certified).contains("say --tls"), "a certificate needs TLS");
        let alone = Command::try_parse_from(["tool", "--client-cert", "c"]);
        assert!(alone.is_err(), "a certificate needs its key");
    }

    #[test]
    fn a_bucket_is_said_beside_the_nodes_or_in_their_connection_string() {
        let server = |line: &str| Command::try_parse_from(line.split(' ')).unwrap().server;
        for (line, bucket) in [
            ("tool --bucket b", Some("b")),
            ("tool --spec couchbase://h --bucket b", Some("b")),
            ("tool --spec couchbase://h/c --bucket b", Some("c")),
            ("tool --spec couchbase://h", None),
        ] {
            assert_eq!(server(line).said_bucket().unwrap().as_deref(), bucket, "{line}");
        }
        let several = server("tool --user u --password p --bucket a,b").target().unwrap();
        let error = several.connect().unwrap_err().to_string();
        assert!(error.contains("several names"), "{error}");
    }

    #[test]
    fn a_password_may_be_in_a_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("password");
        RealFiles.replace_all(&path, b"of the file\n").unwrap();
        let command = |more: &[&str]| {
            let file = ["tool", "--password-file", path.to_str().unwrap()];
            Command::try_parse_from([&file[..], more].concat()).unwrap().server
        };
        for (more, password) in [(&[][..], "of the file"), (&["--password", "said"], "said")] {
            let server = command(more);
            assert_eq!(server.user_to_log_in(), Some("Administrator"));
            assert_eq!(&*server.password_to_log_in().unwrap().unwrap(), password);
        }
        RealFiles.remove(&path).unwrap();
        let error = format!("{:#}", command(&[]).target().unwrap_err());
        assert!(error.contains("password cannot be read; name a readable file"), "{error}");
    }

    #[test]
    fn connection_strings_are_understood() {
        let node = ServerAddress::new;
        let plain = Scheme { is_classic: false, is_encrypted: false };
        let classic = Scheme { is_classic: true, ..plain };
        let encrypted = Scheme { is_encrypted: true, ..plain };
        for (spec, nodes, bucket, scheme) in [
            ("couchbase://localhost/b", vec![node("localhost", 11210)], Some("b"), plain),
            ("couchbase://127.0.0.1:12000", vec![node("127.0.0.1", 12000)], None, plain),
            ("couchbase://h:12000=mcd/", vec![node("h", 12000)], None, plain),
            ("couchbase://a,b:1/x", vec![node("a", 11210), node("b", 1)], Some("x"), plain),
            ("couchbase://[::1]:5/x", vec![node("::1", 5)], Some("x"), plain),
            ("[::1]", vec![node("::1", 11210)], None, plain),
            ("memcached://h", vec![node("h", 11211)], None, classic),
            ("h/x", vec![node("h", 11210)], Some("x"), plain),
            ("couchbases://h,i:7", vec![node("h", 11207), node("i", 7)], None, encrypted),
        ] {
            let place = Place::parse(spec, plain).unwrap();
            assert_eq!(place.nodes, nodes, "{spec}");
            assert_eq!((place.bucket.as_deref(), place.scheme), (bucket, scheme));
        }
        for spec in ["http://h", "couchbase://", "h:port", "h/b?x=1", "a,,b"] {
            assert!(Place::parse(spec, plain).is_err(), "{spec}");
        }
    }
}
