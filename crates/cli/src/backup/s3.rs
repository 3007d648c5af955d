//! Objects in an S3-compatible store, by its HTTP interface.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use platform::{Clock, File, Files, OpenMode};
use sha2::{Digest, Sha256};
use ureq::http::Response;
use ureq::{Agent, Body, SendBody};

use super::crew::Moved;
use super::dates;
use super::signature::{Request, Signer, encode};
use super::spool::{hex, remove_if_there};
use super::target::{Object, Target};

/// Bytes that are read at a time.
const READ_BYTES: usize = 256 << 10;
/// Bytes of one page of a list, or of an error, at most.
const TEXT_BYTES_MAX: u64 = 16 << 20;
const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);
/// How long a store may take to answer a request that it has.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(60);

/// How an S3-compatible store is asked.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct S3Settings {
    /// The store's URL, as http://HOST:9000; TLS is not supported
    #[arg(long, value_name = "URL", env = "AWS_ENDPOINT_URL")]
    endpoint: Option<String>,
    /// The store's region
    #[arg(long, env = "AWS_REGION", default_value = "us-east-1")]
    region: String,
    /// Who asks the store
    #[arg(long, value_name = "ID", env = "AWS_ACCESS_KEY_ID", hide_env_values = true)]
    access_key_id: Option<String>,
    /// The key of who asks; better said in the environment
    #[arg(long, value_name = "KEY", env = "AWS_SECRET_ACCESS_KEY", hide_env_values = true)]
    secret_access_key: Option<String>,
    /// The token of temporary keys
    #[arg(long, value_name = "TOKEN", env = "AWS_SESSION_TOKEN", hide_env_values = true)]
    session_token: Option<String>,
}

/// A prefix in a bucket of a store.
pub(super) struct S3Target {
    files: Arc<dyn Files>,
    agent: Agent,
    clock: Clock,
    signer: Signer,
    /// With scheme, without a path.
    endpoint: String,
    bucket: String,
    /// Empty, or with a slash at its end.
    prefix: String,
    spool: PathBuf,
    spool_is_made: Mutex<bool>,
}

impl S3Target {
    /// `place` is `BUCKET/PREFIX`. The store is not asked yet.
    pub(super) fn open(
        place: &str,
        settings: &S3Settings,
        files: Arc<dyn Files>,
    ) -> anyhow::Result<Self> {
        let (bucket, prefix) = place.split_once('/').unwrap_or((place, ""));
        ensure!(!bucket.is_empty(), "--target s3://BUCKET/PREFIX needs a bucket");
        let prefix = prefix.trim_matches('/');
        let endpoint = settings.endpoint.as_ref().context("an S3 target needs --endpoint")?;
        ensure!(endpoint.starts_with("http://"), "--endpoint is http://HOST:PORT, without TLS");
        let needed = "an S3 target needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY";
        let signer = Signer {
            region: settings.region.clone(),
            key_id: said(&settings.access_key_id).context(needed)?,
            secret: said(&settings.secret_access_key).context(needed)?,
            session_token: said(&settings.session_token),
        };
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_connect(Some(CONNECT_TIME_MAX))
            .timeout_recv_response(Some(ANSWER_TIME_MAX));
        Ok(Self {
            files,
            agent: config.build().into(),
            clock: Clock::real(),
            signer,
            endpoint: endpoint.trim_end_matches('/').to_owned(),
            bucket: bucket.to_owned(),
            prefix: if prefix.is_empty() { String::new() } else { format!("{prefix}/") },
            spool: platform::process::temporary_path("settee-backup"),
            spool_is_made: Mutex::new(false),
        })
    }

    /// Sends a request; `body` is what `payload_sha256` says.
    fn ask(
        &self,
        (method, path, query): (&str, &str, &str),
        payload_sha256: &str,
        body: Option<&mut FileReader<'_>>,
    ) -> anyhow::Result<Response<Body>> {
        let path = encode(path, true);
        let date = dates::compact(u64::from(self.clock.wall_time().seconds()));
        let host = self.endpoint.strip_prefix("http://").unwrap_or_default();
        let signed = Request { method, host, path: &path, query, payload_sha256, date: &date };
        let mut request = ureq::http::Request::builder()
            .method(method)
            .uri(format!("{}{path}?{query}", self.endpoint));
        for (name, value) in self.signer.headers(&signed) {
            request = request.header(name, value);
        }
        let answer = match body {
            Some(body) => {
                let request = request.header("content-length", body.left());
                self.agent.run(request.body(SendBody::from_reader(body))?)
            }
            None => self.agent.run(request.body(())?),
        };
        answer.with_context(|| format!("the store {} cannot be asked", self.endpoint))
    }

    fn object_path(&self, name: &str) -> String {
        format!("/{}/{}{name}", self.bucket, self.prefix)
    }
}

/// A variable that is empty says nothing.
fn said(value: &Option<String>) -> Option<String> {
    value.clone().filter(|value| !value.is_empty())
}

/// What the store says of a request that it refuses.
fn refusal(mut answer: Response<Body>, what: &str) -> anyhow::Error {
    let status = answer.status();
    let text = answer.body_mut().with_config().limit(TEXT_BYTES_MAX).read_to_string();
    let text = text.unwrap_or_default();
    let field = |name| element(&text, name).unwrap_or_default();
    anyhow::anyhow!("the store refuses {what} ({status}): {} {}", field("Code"), field("Message"))
}

/// The content of the first element of that name.
fn element(xml: &str, name: &str) -> Option<String> {
    let (_, rest) = xml.split_once(&format!("<{name}>"))?;
    let (content, _) = rest.split_once(&format!("</{name}>"))?;
    let plain = content.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
    Some(plain.replace("&apos;", "'").replace("&amp;", "&"))
}

impl Target for S3Target {
    fn describe(&self) -> String {
        format!("s3://{}/{} at {}", self.bucket, self.prefix, self.endpoint)
    }

    fn list(&self, prefix: &str) -> anyhow::Result<Vec<Object>> {
        let path = format!("/{}", self.bucket);
        let whole = encode(&format!("{}{prefix}", self.prefix), false);
        let (mut objects, mut token) = (Vec::new(), None);
        loop {
            let from =
                token.map(|token: String| format!("continuation-token={}&", encode(&token, false)));
            let query = format!("{}list-type=2&prefix={whole}", from.unwrap_or_default());
            let mut answer = self.ask(("GET", &path, &query), &digest_of_nothing(), None)?;
            if answer.status() != 200 {
                return Err(refusal(answer, "a list"));
            }
            let text = answer.body_mut().with_config().limit(TEXT_BYTES_MAX).read_to_string()?;
            for part in text.split("<Contents>").skip(1) {
                let key = element(part, "Key").context("the store lists an object without name")?;
                let bytes = element(part, "Size").and_then(|size| size.parse().ok());
                let bytes = bytes.context("the store lists an object without size")?;
                if let Some(name) = key.strip_prefix(&self.prefix) {
                    objects.push(Object { name: name.to_owned(), bytes });
                }
            }
            token = element(&text, "NextContinuationToken");
            if token.is_none() {
                return Ok(objects);
            }
        }
    }

    fn get(
        &self,
        name: &str,
        sink: &mut dyn FnMut(&[u8]) -> anyhow::Result<()>,
    ) -> anyhow::Result<bool> {
        let path = self.object_path(name);
        let answer = self.ask(("GET", &path, ""), &digest_of_nothing(), None)?;
        match answer.status().as_u16() {
            200 => {}
            404 => return Ok(false),
            _ => return Err(refusal(answer, name)),
        }
        let mut reader = answer.into_body().into_reader();
        let mut buffer = vec![0; READ_BYTES];
        loop {
            let count = reader.read(&mut buffer).context("the store broke off")?;
            if count == 0 {
                return Ok(true);
            }
            sink(&buffer[..count])?;
        }
    }

    fn put_file(&self, name: &str, path: &Path, moved: &Moved) -> anyhow::Result<()> {
        let file = self.files.open(path, OpenMode::Read)?;
        let digest = FileReader::new(&*file, moved)?.digest()?;
        let mut body = FileReader::new(&*file, moved)?;
        let answer = self.ask(("PUT", &self.object_path(name), ""), &digest, Some(&mut body))?;
        if answer.status() != 200 {
            return Err(refusal(answer, name));
        }
        remove_if_there(&*self.files, path)
    }

    fn delete(&self, name: &str) -> anyhow::Result<()> {
        let path = self.object_path(name);
        let answer = self.ask(("DELETE", &path, ""), &digest_of_nothing(), None)?;
        match answer.status().as_u16() {
            200 | 204 | 404 => Ok(()),
            _ => bail!(refusal(answer, name)),
        }
    }

    fn files(&self) -> &dyn Files {
        &*self.files
    }

    fn spool_path(&self, name: &str) -> anyhow::Result<PathBuf> {
        let mut is_made = self.spool_is_made.lock().unwrap_or_else(PoisonError::into_inner);
        if !*is_made {
            self.files.create_directories(&self.spool)?;
            *is_made = true;
        }
        let path = self.spool.join(name);
        remove_if_there(&*self.files, &path)?;
        Ok(path)
    }
}

impl Drop for S3Target {
    fn drop(&mut self) {
        if *self.spool_is_made.lock().unwrap_or_else(PoisonError::into_inner) {
            // What stays is in the directory for temporary files.
            drop(platform::files::remove_tree(&self.spool));
        }
    }
}

fn digest_of_nothing() -> String {
    hex(&Sha256::digest(b""))
}

/// A file from its beginning to its end.
struct FileReader<'a> {
    file: &'a dyn File,
    moved: &'a Moved,
    position: u64,
    size: u64,
}

impl<'a> FileReader<'a> {
    fn new(file: &'a dyn File, moved: &'a Moved) -> anyhow::Result<Self> {
        Ok(Self { file, moved, position: 0, size: file.size()? })
    }

    fn left(&self) -> u64 {
        self.size.saturating_sub(self.position)
    }

    fn digest(mut self) -> anyhow::Result<String> {
        let mut digest = Sha256::new();
        let mut buffer = vec![0; READ_BYTES];
        loop {
            let count = self.read(&mut buffer)?;
            if count == 0 {
                return Ok(hex(&digest.finalize()));
            }
            digest.update(&buffer[..count]);
        }
    }
}

impl Read for FileReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(buffer, self.position).map_err(io::Error::other)?;
        self.position += count as u64;
        self.moved.beat();
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_found_and_decoded() {
        let xml = "<a><Key>x&amp;lt;&lt;</Key><Key>y</Key></a>";
        assert_eq!(element(xml, "Key").as_deref(), Some("x&lt;<"));
        assert_eq!(element("<Key>open", "Key"), None);
        assert_eq!(element("", "Key"), None);
    }
}
