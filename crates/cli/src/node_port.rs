//! A node's REST port, as tools use it.

use std::time::Duration;

use anyhow::{Context, bail, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use client::PortKind;
use protocol::Opcode;
use protocol::client::Request;
use serde_json::{Value, json};
use ureq::http::Response;
use ureq::{Agent, Body, RequestBuilder};

use crate::server_arguments::{ServerArguments, explain};

/// How long a node may take before it answers: to bring its files up to date, for a backup.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(600);

/// The port, and who asks.
#[derive(Clone)]
pub(crate) struct NodePort {
    agent: Agent,
    pub(crate) url: String,
    /// `None` where a certificate says who asks.
    authorization: Option<String>,
}

impl NodePort {
    /// The port at `management`, or the one that the node's data port tells.
    pub(crate) fn find(
        server: &ServerArguments,
        management: Option<&str>,
    ) -> anyhow::Result<(Self, String)> {
        let authorization = authorization_of(server)?;
        let bucket = server.said_bucket()?.unwrap_or_else(|| "default".to_owned());
        let url = match management {
            Some(url) => url.trim_end_matches('/').to_owned(),
            None => ask_data_port(server)?,
        };
        let is_encrypted = url.starts_with("https://");
        ensure!(
            is_encrypted || url.starts_with("http://"),
            "--management is a URL such as http://127.0.0.1:8091, or https://127.0.0.1:18091"
        );
        ensure!(
            is_encrypted || !(server.is_encrypted()? || server.tls.is_user_certified()),
            "TLS is asked for, and --management {url} is without it; say https://"
        );
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .proxy(None)
            .timeout_connect(Some(server.time_to_wait()?))
            .timeout_recv_response(Some(ANSWER_TIME_MAX));
        let agent = if is_encrypted {
            config.https_only(true).tls_config(server.tls.http()?).build().into()
        } else {
            config.build().into()
        };
        Ok((Self { agent, url, authorization }, bucket))
    }

    /// Another node's port, asked by the same user.
    pub(crate) fn at(&self, url: String) -> Self {
        Self { url, ..self.clone() }
    }

    /// What the node answers with 200.
    pub(crate) fn get(&self, path: &str) -> anyhow::Result<Body> {
        self.get_unless_it_changes(path)?.or_else(|why| bail!("{} refuses: {why}", self.url))
    }

    /// What the node answers with 200; or why there is nothing for now, because something is being
    /// changed.
    pub(crate) fn get_unless_it_changes(&self, path: &str) -> anyhow::Result<Result<Body, String>> {
        let request = self.agent.get(format!("{}{path}", self.url));
        let mut answer = self.heard(self.authorized(request).call())?;
        let status = answer.status().as_u16();
        match status {
            200 => return Ok(Ok(answer.into_body())),
            404 => bail!("{} has no such bucket or backup; check --bucket", self.url),
            _ => {}
        }
        let said = json_of(&mut answer);
        if let Some(permissions) = said.get("permissions") {
            bail!("{} refuses: the user needs {permissions}", self.url);
        }
        let reason = said.get("_").and_then(Value::as_str).unwrap_or_default();
        ensure!(status == 409, "{} refuses ({status}): {reason}", self.url);
        Ok(Err(reason.to_owned()))
    }

    /// What a node answers that is asked for what it has at hand; one that hangs is not waited for
    /// any longer than `patience`.
    pub(crate) fn get_soon(&self, path: &str, patience: Duration) -> anyhow::Result<Value> {
        let request = self.agent.get(format!("{}{path}", self.url));
        let request = request.config().timeout_global(Some(patience)).build();
        let mut answer = self.heard(self.authorized(request).call())?;
        let status = answer.status().as_u16();
        ensure!(status != 404, "{} has no such bucket; check --bucket", self.url);
        let said = json_of(&mut answer);
        let reason = said.get("_").and_then(Value::as_str).unwrap_or_default();
        ensure!(status == 200, "{} refuses ({status}): {reason}", self.url);
        Ok(said)
    }

    /// Whether the node answers at all within `patience`, whatever it says.
    pub(crate) fn hear(&self, path: &str, patience: Duration) -> anyhow::Result<()> {
        let request = self.agent.get(format!("{}{path}", self.url));
        let request = request.config().timeout_global(Some(patience)).build();
        self.authorized(request).call()?;
        Ok(())
    }

    /// What the node answers with 200; `None` where it has nothing there.
    pub(crate) fn get_if_any(&self, path: &str) -> anyhow::Result<Option<Value>> {
        let request = self.agent.get(format!("{}{path}", self.url));
        let mut answer = self.heard(self.authorized(request).call())?;
        match answer.status().as_u16() {
            404 => Ok(None),
            status => Ok(Some(self.accept((status, json_of(&mut answer)))?)),
        }
    }

    /// Has the node do something: the status, and what it says in JSON.
    pub(crate) fn post(&self, path: &str, fields: &[(&str, &str)]) -> anyhow::Result<(u16, Value)> {
        let request = self.agent.post(format!("{}{path}", self.url));
        let request = self.authorized(request);
        let mut answer = self.heard(request.send_form(fields.iter().copied()))?;
        Ok((answer.status().as_u16(), json_of(&mut answer)))
    }

    /// Has the node put something in the place of what there is: the status, and what it says in
    /// JSON.
    pub(crate) fn put(&self, path: &str, fields: &[(&str, &str)]) -> anyhow::Result<(u16, Value)> {
        let request = self.agent.put(format!("{}{path}", self.url));
        let request = self.authorized(request);
        let mut answer = self.heard(request.send_form(fields.iter().copied()))?;
        Ok((answer.status().as_u16(), json_of(&mut answer)))
    }

    /// Has the node remove something: the status, and what it says in JSON.
    pub(crate) fn delete(&self, path: &str) -> anyhow::Result<(u16, Value)> {
        let request = self.agent.delete(format!("{}{path}", self.url));
        let request = self.authorized(request);
        let mut answer = self.heard(request.call())?;
        Ok((answer.status().as_u16(), json_of(&mut answer)))
    }

    /// Takes an answer for what it is: done, or refused for these reasons.
    ///
    /// # Errors
    /// The reasons.
    pub(crate) fn accept(&self, (status, answer): (u16, Value)) -> anyhow::Result<Value> {
        if (200..300).contains(&status) {
            return Ok(answer);
        }
        let url = &self.url;
        if let Some(permissions) = answer.get("permissions") {
            bail!("{url} refuses: the user needs {permissions}");
        }
        bail!("{url} refuses ({status}): {}", reasons(&answer).join("; "))
    }

    fn authorized<B>(&self, request: RequestBuilder<B>) -> RequestBuilder<B> {
        match &self.authorization {
            Some(authorization) => request.header("Authorization", authorization),
            None => request,
        }
    }

    fn heard(&self, answer: Result<Response<Body>, ureq::Error>) -> anyhow::Result<Response<Body>> {
        let answer = answer.with_context(|| {
            let others = if self.url.starts_with("https://") { ", and --ca" } else { "" };
            format!("{} cannot be reached; check --spec or --management{others}", self.url)
        })?;
        if answer.status().as_u16() == 401 {
            let what = match self.authorization {
                Some(_) => "--username and --password",
                None => "--client-cert, and whether the node asks for certificates",
            };
            bail!("{} does not know this user; check {what}", self.url);
        }
        Ok(answer)
    }
}

/// What a user and a password become; nothing where a certificate says who asks.
fn authorization_of(server: &ServerArguments) -> anyhow::Result<Option<String>> {
    if server.tls.is_user_certified() {
        return Ok(None);
    }
    let user = server.user_to_log_in().context("log in with --username and --password")?;
    let password = server.password_to_log_in()?.context("--username needs --password")?;
    let credentials = STANDARD.encode(format!("{user}:{}", &*password));
    Ok(Some(format!("Basic {credentials}")))
}

/// The body, if there is one; a text that is no JSON as the reason.
fn json_of(answer: &mut Response<Body>) -> Value {
    let text = answer.body_mut().read_to_string().unwrap_or_default();
    if text.is_empty() {
        return Value::Null;
    }
    serde_json::from_str(&text).unwrap_or_else(|_| json!({"_": text.trim()}))
}

/// Why something is refused, in each of the forms in which nodes say it.
fn reasons(answer: &Value) -> Vec<&str> {
    let errors = answer.get("errors").and_then(Value::as_object);
    let reasons = errors.into_iter().flat_map(|errors| errors.values()).filter_map(Value::as_str);
    reasons.chain(answer.get("_").and_then(Value::as_str)).chain(answer.as_str()).collect()
}

/// The URL of the REST port, by the cluster's configuration.
fn ask_data_port(server: &ServerArguments) -> anyhow::Result<String> {
    let mut target = server.target()?;
    // Where the port is does not depend on a bucket, and there may be none of that name.
    target.options.bucket = None;
    let (node, mut connection) = target.connect()?;
    let answer = connection.call(&Request::new(Opcode::GetClusterConfig)).map_err(explain)?;
    let config: Value = serde_json::from_slice(answer.value()).unwrap_or_default();
    let nodes = config.get("nodesExt").and_then(Value::as_array);
    let is_this = |node: &&Value| node.get("thisNode").and_then(Value::as_bool) == Some(true);
    let this = nodes.and_then(|nodes| nodes.iter().find(is_this).or(nodes.first()));
    let (scheme, service) = match connection.port_kind() {
        PortKind::Plain => ("http", "mgmt"),
        PortKind::Encrypted => ("https", "mgmtSSL"),
    };
    let port = this.and_then(|node| node.get("services")?.get(service)?.as_u64());
    let port = port.context("the node does not tell its REST port; say it with --management")?;
    let host = &node.host;
    Ok(if host.contains(':') {
        format!("{scheme}://[{host}]:{port}")
    } else {
        format!("{scheme}://{host}:{port}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_says_why_in_several_forms() {
        for (answer, expected) in [
            (json!({"errors": {"a": "x", "b": "y"}, "summaries": {}}), vec!["x", "y"]),
            (json!({"_": "x"}), vec!["x"]),
            (json!("x"), vec!["x"]),
            (json!({}), vec![]),
        ] {
            assert_eq!(reasons(&answer), expected, "{answer}");
        }
    }
}
