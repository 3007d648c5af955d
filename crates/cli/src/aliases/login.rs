//! Which node a well-known tool means, and as whom, in the words of ours.

use clap::error::ErrorKind;
use clap::{Arg, ArgAction, Error};

/// Words of a command line.
pub(super) type Words = Vec<String>;

/// A flag with its value, if there is one.
pub(super) fn flag(name: &str, value: Option<&str>) -> Words {
    value.map_or_else(Words::new, |value| vec![name.to_owned(), value.to_owned()])
}

/// `HOST` or `HOST:PORT` of a data port.
pub(super) fn data_port(text: &str) -> Result<Words, Error> {
    let (host, port) = host_and_port(text)?;
    Ok([flag("--host", Some(host)), flag("--port", port)].concat())
}

/// `HOST`, `HOST:PORT`, or either behind `http://`, `https://`, `couchbase://` or `couchbases://`,
/// of a cluster: its REST port.
pub(super) fn rest_port(text: &str) -> Result<Words, Error> {
    let (rest, scheme, default_port) = match text.split_once("://") {
        None => (text, "http", "8091"),
        Some(("http" | "couchbase", rest)) => (rest, "http", "8091"),
        Some(("https" | "couchbases", rest)) => (rest, "https", "18091"),
        Some((scheme, _)) => {
            return Err(refused(format!("{scheme}:// is not spoken here; say http://HOST:8091")));
        }
    };
    let (host, port) = host_and_port(rest.trim_end_matches('/'))?;
    // An address with colons stands in brackets.
    let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    let url = format!("{scheme}://{host}:{}", port.unwrap_or(default_port));
    Ok(flag("--management", Some(&url)))
}

fn host_and_port(text: &str) -> Result<(&str, Option<&str>), Error> {
    let bad = || refused(format!("{text:?} is not HOST or HOST:PORT"));
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']').ok_or_else(bad)?;
            (
                host,
                if rest.is_empty() { None } else { Some(rest.strip_prefix(':').ok_or_else(bad)?) },
            )
        }
        None => text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
    };
    let is_port = port.is_none_or(|port| port.parse::<u16>().is_ok_and(|port| port > 0));
    if host.is_empty() || !is_port { Err(bad()) } else { Ok((host, port)) }
}

/// What the original says of TLS.
#[derive(clap::Args)]
pub(super) struct Trust {
    /// Who signs the cluster's certificates (PEM)
    #[arg(long, global = true, value_name = "FILE", aliases = ["ca", "tls-ca", "ssl-ca"])]
    cacert: Option<String>,
    /// Believe whoever answers
    #[arg(long, global = true, alias = "no-verify")]
    no_ssl_verify: bool,
    /// A client's certificate, whose user asks (PEM)
    #[arg(long, global = true, value_name = "FILE", aliases = ["tls-cert", "ssl-cert"])]
    client_cert: Option<String>,
    /// The key of that certificate (PEM)
    #[arg(long, global = true, value_name = "FILE", aliases = ["tls-key", "ssl-key"])]
    client_key: Option<String>,
}

impl Trust {
    pub(super) fn words(&self) -> Words {
        let blind = self.no_ssl_verify.then(|| "--no-verify".to_owned());
        [
            flag("--ca", self.cacert.as_deref()),
            blind.into_iter().collect(),
            flag("--client-cert", self.client_cert.as_deref()),
            flag("--client-key", self.client_key.as_deref()),
        ]
        .concat()
    }
}

/// What the original says of TLS at data ports.
#[derive(clap::Args)]
pub(super) struct DataTls {
    /// Speak TLS; a client's certificate, its key and who signs the cluster's certificates (PEM)
    /// can be said with it
    #[arg(
        long,
        global = true,
        alias = "ssl",
        num_args = 0..=1,
        require_equals = true,
        value_name = "CERT,KEY[,CA]"
    )]
    tls: Option<Option<String>>,
    #[command(flatten)]
    trust: Trust,
}

impl DataTls {
    pub(super) fn words(&self) -> Result<Words, Error> {
        let mut words = Words::new();
        if let Some(files) = &self.tls {
            words.push("--tls".to_owned());
            words.extend(files.as_deref().map(files_of).transpose()?.unwrap_or_default());
        }
        words.extend(self.trust.words());
        Ok(words)
    }
}

/// The files behind `--tls=`.
fn files_of(text: &str) -> Result<Words, Error> {
    let files: Vec<_> = text.split(',').collect();
    let (certificate, key, authority) = match files[..] {
        [certificate, key] => (certificate, key, None),
        [certificate, key, authority] => (certificate, key, Some(authority)),
        _ => return Err(refused(format!("--tls={text} is not CERT,KEY or CERT,KEY,CA"))),
    };
    Ok([
        flag("--client-cert", Some(certificate)),
        flag("--client-key", Some(key)),
        flag("--ca", authority),
    ]
    .concat())
}

/// A flag of the original that changes nothing here.
pub(super) fn without_meaning(name: &'static str) -> Arg {
    let help = "Accepted, and without meaning here";
    Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
}

/// An option of the original whose value nobody needs, because the verb is refused with what to do.
pub(super) fn unheard(name: &'static str) -> Arg {
    Arg::new(name).long(name).num_args(1).help("Accepted, and without meaning here")
}

/// What the tool is told that does not map.
pub(super) fn refused(why: String) -> Error {
    Error::raw(ErrorKind::ValueValidation, format!("{why}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_said_in_the_ways_of_the_original_and_nothing_else_is_one() {
        for (text, words) in [
            ("10.0.0.1", "--host 10.0.0.1"),
            ("node:11999", "--host node --port 11999"),
            ("[::1]:11210", "--host ::1 --port 11210"),
            ("[::1]", "--host ::1"),
        ] {
            assert_eq!(data_port(text).unwrap().join(" "), words, "{text}");
        }
        for (text, url) in [
            ("node", "http://node:8091"),
            ("node:9000", "http://node:9000"),
            ("http://node:8091/", "http://node:8091"),
            ("couchbase://node", "http://node:8091"),
            ("[::1]:9000", "http://[::1]:9000"),
            ("https://node", "https://node:18091"),
            ("couchbases://node", "https://node:18091"),
            ("https://node:9000/", "https://node:9000"),
        ] {
            assert_eq!(rest_port(text).unwrap(), ["--management", url], "{text}");
        }
        for text in ["", ":1", "node:", "node:x", "node:0", "[::1", "[::1]1", "ftp://node"] {
            assert!(rest_port(text).is_err(), "{text}");
        }
    }
}
