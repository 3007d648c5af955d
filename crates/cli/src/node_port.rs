//! A node's REST port, as tools use it.

use std::time::Duration;

use anyhow::{Context, bail, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use protocol::Opcode;
use protocol::client::Request;
use serde_json::{Value, json};
use ureq::http::Response;
use ureq::{Agent, Body};

use crate::server_arguments::{ServerArguments, explain};

/// How long a node may take before it answers: to bring its files up to date, for a backup.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(600);

/// The port, and who asks.
#[derive(Clone)]
pub(crate) struct NodePort {
    agent: Agent,
    pub(crate) url: String,
    authorization: String,
}

impl NodePort {
    /// The port at `management`, or the one that the node's data port tells.
    pub(crate) fn find(
        server: &ServerArguments,
        management: Option<&str>,
    ) -> anyhow::Result<(Self, String)> {
        let user = server.user_to_log_in().context("log in with --username and --password")?;
        let password = server.password.as_ref().context("--username needs --password")?;
        let credentials = STANDARD.encode(format!("{user}:{}", &**password));
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
            .timeout_recv_response(Some(ANSWER_TIME_MAX));
        let agent = config.build().into();
        Ok((Self { agent, url, authorization: format!("Basic {credentials}") }, bucket))
    }

    /// What the node answers with 200.
    pub(crate) fn get(&self, path: &str) -> anyhow::Result<Body> {
        let request = self.agent.get(format!("{}{path}", self.url));
        let mut answer = self.heard(request.header("Authorization", &self.authorization).call())?;
        match answer.status().as_u16() {
            200 => Ok(answer.into_body()),
            404 => bail!("{} has no such bucket or backup; check --bucket", self.url),
            status => {
                let said = json_of(&mut answer);
                let reason = said.get("_").and_then(Value::as_str).unwrap_or_default();
                bail!("{} refuses ({status}): {reason}", self.url)
            }
        }
    }

    /// Has the node do something: the status, and what it says in JSON.
    pub(crate) fn post(&self, path: &str, fields: &[(&str, &str)]) -> anyhow::Result<(u16, Value)> {
        let request = self.agent.post(format!("{}{path}", self.url));
        let request = request.header("Authorization", &self.authorization);
        let mut answer = self.heard(request.send_form(fields.iter().copied()))?;
        Ok((answer.status().as_u16(), json_of(&mut answer)))
    }

    /// Has the node put something in the place of what there is: the status, and what it says in
    /// JSON.
    pub(crate) fn put(&self, path: &str, fields: &[(&str, &str)]) -> anyhow::Result<(u16, Value)> {
        let request = self.agent.put(format!("{}{path}", self.url));
        let request = request.header("Authorization", &self.authorization);
        let mut answer = self.heard(request.send_form(fields.iter().copied()))?;
        Ok((answer.status().as_u16(), json_of(&mut answer)))
    }

    /// Has the node remove something: the status, and what it says in JSON.
    pub(crate) fn delete(&self, path: &str) -> anyhow::Result<(u16, Value)> {
        let request = self.agent.delete(format!("{}{path}", self.url));
        let request = request.header("Authorization", &self.authorization);
        let mut answer = self.heard(request.call())?;
        Ok((answer.status().as_u16(), json_of(&mut answer)))
    }

    fn heard(&self, answer: Result<Response<Body>, ureq::Error>) -> anyhow::Result<Response<Body>> {
        let answer = answer.with_context(|| {
            format!("{} cannot be reached; check --spec or --management", self.url)
        })?;
        if answer.status().as_u16() == 401 {
            bail!("{} does not know this user; check --username and --password", self.url);
        }
        Ok(answer)
    }
}

/// The body; a text that is no JSON as the reason.
fn json_of(answer: &mut Response<Body>) -> Value {
    let text = answer.body_mut().read_to_string().unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_else(|_| json!({"_": text.trim()}))
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
