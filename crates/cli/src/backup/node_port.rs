//! A node's REST port, as a backup uses it.

use std::io::{BufRead, BufReader, Read};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use protocol::Opcode;
use protocol::client::Request;
use serde::Deserialize;
use serde_json::Value;
use ureq::{Agent, Body};

use super::manifest::BucketPart;
use crate::server_arguments::{ServerArguments, explain};

/// How long a node may take to bring its files up to date.
const BEGIN_TIME_MAX: Duration = Duration::from_secs(600);
/// Bytes of the catalogue, at most.
const CATALOGUE_BYTES_MAX: u64 = 64 << 20;
/// Bytes that are read at a time.
const READ_BYTES: usize = 256 << 10;

/// The port, and who asks.
#[derive(Clone)]
pub(super) struct NodePort {
    agent: Agent,
    url: String,
    authorization: String,
}

/// A backup that the node holds as long as this lives.
pub(super) struct HeldBackup {
    pub(super) catalogue: Catalogue,
    /// The answer that stays open.
    _answer: BufReader<ureq::BodyReader<'static>>,
}

/// What the node has.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Catalogue {
    pub(super) backup: String,
    pub(super) bucket: BucketPart,
    pub(super) node: String,
    pub(super) cut_seconds: f64,
    pub(super) vbuckets: Vec<Listed>,
    pub(super) deleted: Vec<u16>,
    pub(super) empty: Vec<u16>,
}

/// One vBucket.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Listed {
    pub(super) vbid: u16,
    pub(super) state: String,
    pub(super) bytes: u64,
    pub(super) late: bool,
}

impl NodePort {
    /// The port at `management`, or the one that the node's data port tells.
    pub(super) fn find(
        server: &ServerArguments,
        management: Option<&str>,
    ) -> anyhow::Result<(Self, String)> {
        let user = server.user_to_log_in().context("log in with --username and --password")?;
        let password = server.password.as_ref().context("--username needs --password")?;
        let credentials = STANDARD.encode(format!("{user}:{password}"));
        let target = server.target()?;
        let bucket = target.options.bucket.unwrap_or_else(|| "default".to_owned());
        let url = match management {
            Some(url) => url.trim_end_matches('/').to_owned(),
            None => ask_data_port(server)?,
        };
        ensure!(url.starts_with("http://"), "--management is a URL such as http://127.0.0.1:8091");
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .proxy(None)
            .timeout_connect(Some(Duration::from_secs_f64(server.timeout)))
            .timeout_recv_response(Some(BEGIN_TIME_MAX));
        let agent = config.build().into();
        Ok((Self { agent, url, authorization: format!("Basic {credentials}") }, bucket))
    }

    /// Has the node hold the state of its files.
    pub(super) fn begin(&self, bucket: &str) -> anyhow::Result<HeldBackup> {
        let body = self.get(&format!("/pools/default/buckets/{bucket}/backup"))?;
        let mut answer = BufReader::new(body.into_reader());
        let mut line = String::new();
        (&mut answer).take(CATALOGUE_BYTES_MAX).read_line(&mut line)?;
        let catalogue = serde_json::from_str(&line)
            .with_context(|| format!("{} gives no backups; is it a settee node?", self.url))?;
        Ok(HeldBackup { catalogue, _answer: answer })
    }

    /// Gives a vBucket's bytes to `sink`.
    pub(super) fn read(
        &self,
        catalogue: &Catalogue,
        vbid: u16,
        mut sink: impl FnMut(&[u8]) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let (bucket, backup) = (&catalogue.bucket.name, &catalogue.backup);
        let body = self.get(&format!("/pools/default/buckets/{bucket}/backup/{backup}/{vbid}"))?;
        let mut reader = body.into_reader();
        let mut buffer = vec![0; READ_BYTES];
        loop {
            let count = reader.read(&mut buffer).context("the node broke off; its log says why")?;
            if count == 0 {
                return Ok(());
            }
            sink(&buffer[..count])?;
        }
    }

    fn get(&self, path: &str) -> anyhow::Result<Body> {
        let request = self.agent.get(format!("{}{path}", self.url));
        let answer = request.header("Authorization", &self.authorization).call();
        let mut answer = answer.with_context(|| {
            format!("{} cannot be reached; check --spec or --management", self.url)
        })?;
        match answer.status().as_u16() {
            200 => Ok(answer.into_body()),
            401 => bail!("{} does not know this user; check --username and --password", self.url),
            404 => bail!("{} has no such bucket or backup; check --bucket", self.url),
            status => {
                let text = answer.body_mut().read_to_string().unwrap_or_default();
                let said: Value = serde_json::from_str(&text).unwrap_or_default();
                let reason = said.get("_").and_then(Value::as_str).unwrap_or(&text);
                bail!("{} refuses ({status}): {reason}", self.url)
            }
        }
    }
}

/// The URL of the REST port, by the cluster's configuration.
fn ask_data_port(server: &ServerArguments) -> anyhow::Result<String> {
    let (node, mut connection) = server.target()?.connect()?;
    let answer = connection.call(&Request::new(Opcode::GetClusterConfig)).map_err(explain)?;
    let config: Value = serde_json::from_slice(answer.value()).unwrap_or_default();
    let nodes = config.get("nodesExt").and_then(Value::as_array);
    let is_this = |node: &&Value| node.get("thisNode").and_then(Value::as_bool) == Some(true);
    let this = nodes.and_then(|nodes| nodes.iter().find(is_this).or(nodes.first()));
    let port = this.and_then(|node| node.get("services")?.get("mgmt")?.as_u64());
    let port = port.context("the node does not tell its REST port; say it with --management")?;
    let host = &node.host;
    Ok(if host.contains(':') {
        format!("http://[{host}]:{port}")
    } else {
        format!("http://{host}:{port}")
    })
}
