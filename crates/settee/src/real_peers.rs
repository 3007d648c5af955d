//! Other nodes, asked over their data and management ports.

use std::time::Duration;

use anyhow::{Context, bail, ensure};
use bucket::manifest_json;
use client::{Connection, ConnectionOptions, Login};
use cluster::{NodeAddress, StorageFigures, Usage, Uuid};
use document::uri::escaped;
use node::{
    COPIES_GROUP, CompactionChange, Copies, Introduction, OfferPurpose, PeerLogin, PeerRefusal,
    Peers, PlanOffer, UsersOffer, copies_of,
};
use protocol::Opcode;
use protocol::client::Request;
use serde_json::Value;

use crate::peer_agent::{PeerAgent, authorization, body_of};

/// The nodes that the network leads to.
pub(crate) struct RealPeers {
    /// How long an answer may take.
    pub(crate) patience: Duration,
}

impl Peers for RealPeers {
    fn copies(&self, node: &NodeAddress, login: &PeerLogin) -> anyhow::Result<Copies> {
        Ok(copies_of(&self.connect_to_meant(node, login)?.statistics(COPIES_GROUP)?))
    }

    fn exchange_manifest(
        &self,
        node: &NodeAddress,
        login: &PeerLogin,
        ours: &str,
    ) -> anyhow::Result<String> {
        let mut connection = self.connect_to_meant(node, login)?;
        let theirs = connection.call(&Request::new(Opcode::CollectionsGetManifest))?;
        let theirs = String::from_utf8(theirs.value().to_vec())?;
        if uid_of(&theirs)? < uid_of(ours)? {
            let opcode = Opcode::CollectionsSetManifest;
            let set = Request { value: ours.as_bytes(), ..Request::new(opcode) };
            let taken = connection.call(&set)?;
            if !taken.is_success() {
                let status = client::status_name(taken.status_code());
                anyhow::bail!("the node does not take the manifest: {status}");
            }
        }
        Ok(theirs)
    }

    fn exchange_users(
        &self,
        node: &NodeAddress,
        login: &PeerLogin,
        offer: UsersOffer<'_>,
    ) -> anyhow::Result<String> {
        let asked = PeerAgent::new(node, login.connector.as_deref(), self.patience)?;
        let follows =
            offer.follows.map_or_else(String::new, |revision| format!("?follows={revision}"));
        let request = asked.agent.post(asked.url(&format!("/settee/users{follows}")));
        let request = request.content_type("application/json");
        let who = authorization(&login.user, &login.password);
        let answer = request.header("Authorization", who).send(offer.registry)?;
        ensure!(answer.status().is_success(), "{}", body_of(answer)?);
        body_of(answer)
    }

    fn exchange_plan(
        &self,
        node: &NodeAddress,
        login: &PeerLogin,
        offer: PlanOffer<'_>,
    ) -> anyhow::Result<String> {
        // A bucket that is made waits for disks.
        let (query, patience) = match offer.purpose {
            OfferPurpose::Trial => ("?just_validate=1", self.patience),
            OfferPurpose::Order => ("", CARRY_OUT_TIME_MAX),
            OfferPurpose::AwaitedOrder => ("?wait_for_deletions=1", CARRY_OUT_TIME_MAX),
        };
        let asked = PeerAgent::new(node, login.connector.as_deref(), patience)?;
        let who = authorization(&login.user, &login.password);
        let request = asked.agent.put(asked.url(&format!("/settee/clusterMap{query}")));
        let request = request.content_type("application/json").header("Authorization", &who);
        let answer = request.send(offer.plan)?;
        match answer.status().as_u16() {
            // It has a newer one, which it tells.
            200 | 409 => {}
            400 => return Err(PeerRefusal(reason_of(&body_of(answer)?)).into()),
            // It cannot now.
            503 => bail!(reason_of(&body_of(answer)?)),
            status => bail!("status {status}: {}", body_of(answer)?),
        }
        let request = asked.agent.get(asked.url("/settee/clusterMap"));
        let answer = request.header("Authorization", &who).call()?;
        ensure!(answer.status().is_success(), "{}", body_of(answer)?);
        body_of(answer)
    }

    fn introduction(&self, node: &NodeAddress, login: &PeerLogin) -> anyhow::Result<Introduction> {
        let asked = PeerAgent::new(node, login.connector.as_deref(), self.patience)?;
        let who = authorization(&login.user, &login.password);
        let request = asked.agent.get(asked.url("/nodes/self"));
        let answer = request.header("Authorization", &who).call()?;
        ensure!(answer.status().is_success(), "{}", body_of(answer)?);
        let said: Value = serde_json::from_str(&body_of(answer)?)?;
        let uuid = said.get("nodeUUID").and_then(Value::as_str).and_then(Uuid::parse);
        let uuid = uuid.context("it does not say who it is")?;
        Ok(Introduction { uuid, storage: storage_of(&said) })
    }

    fn order_compaction(
        &self,
        node: &NodeAddress,
        login: &PeerLogin,
        order: CompactionChange,
    ) -> anyhow::Result<()> {
        let asked = PeerAgent::new(node, login.connector.as_deref(), self.patience)?;
        let url = asked.url(&format!("/settee/buckets/{}/compaction", escaped(&login.bucket)));
        let who = authorization(&login.user, &login.password);
        let answer = match order {
            CompactionChange::Begin => {
                asked.agent.post(url).header("Authorization", who).send_empty()?
            }
            CompactionChange::Cancel => {
                asked.agent.delete(url).header("Authorization", who).call()?
            }
        };
        let status = answer.status();
        ensure!(status.is_success(), "status {status}: {}", reason_of(&body_of(answer)?));
        Ok(())
    }

    fn flush(&self, node: &NodeAddress, login: &PeerLogin) -> anyhow::Result<()> {
        let patient = Self { patience: CARRY_OUT_TIME_MAX };
        let flushed = patient.connect(node, login)?.call(&Request::new(Opcode::Flush))?;
        let status = client::status_name(flushed.status_code());
        ensure!(flushed.is_success(), "{status} {}", String::from_utf8_lossy(flushed.value()));
        Ok(())
    }
}

/// What a node has, by its description; 0 where that does not say.
fn storage_of(said: &Value) -> StorageFigures {
    let bytes = |name: &str| {
        said.pointer(&format!("/storageTotals/{name}")).and_then(Value::as_u64).unwrap_or_default()
    };
    let usage = |total, used| Usage { total_bytes: bytes(total), used_bytes: bytes(used) };
    StorageFigures {
        memory: usage("ram/total", "ram/used"),
        quota: usage("ram/quotaTotal", "ram/quotaUsed"),
        disk: usage("hdd/total", "hdd/used"),
        disk_free_bytes: bytes("hdd/free"),
        memory_used_by_data_bytes: bytes("ram/usedByData"),
        disk_used_by_data_bytes: bytes("hdd/usedByData"),
    }
}

/// How long a node may take to do its part of a plan, or to empty a bucket.
const CARRY_OUT_TIME_MAX: Duration = Duration::from_secs(30);

/// What a node says in words, if it says it as nodes do.
fn reason_of(body: &str) -> String {
    let said: Option<Value> = serde_json::from_str(body).ok();
    let reason = said.as_ref().and_then(|said| said.get("_")?.as_str());
    reason.unwrap_or(body).to_owned()
}

impl RealPeers {
    /// Whether the bucket of a node is in memory alone.
    pub(crate) fn is_ephemeral(
        &self,
        node: &NodeAddress,
        login: &PeerLogin,
    ) -> anyhow::Result<bool> {
        let statistics = self.statistics(node, login, "config")?;
        Ok(statistics.iter().any(|(name, kind)| name == "ep_bucket_type" && kind == "ephemeral"))
    }

    fn statistics(
        &self,
        node: &NodeAddress,
        login: &PeerLogin,
        group: &str,
    ) -> anyhow::Result<Vec<(String, String)>> {
        Ok(self.connect(node, login)?.statistics(group)?)
    }

    /// A connection to the bucket that is meant, where that is said, and to no other of its name.
    fn connect_to_meant(
        &self,
        node: &NodeAddress,
        login: &PeerLogin,
    ) -> anyhow::Result<Connection> {
        let mut connection = self.connect(node, login)?;
        if let Some(meant) = login.bucket_uuid {
            let map = connection.call(&Request::new(Opcode::GetClusterConfig))?;
            let is_meant = uuid_told_by(map.value()) == Some(meant);
            ensure!(is_meant, "the node has another bucket of that name");
        }
        Ok(connection)
    }

    fn connect(&self, node: &NodeAddress, login: &PeerLogin) -> anyhow::Result<Connection> {
        let mut options = ConnectionOptions::new("settee");
        options.login = Some(Login::new(login.user.clone(), login.password.clone()));
        options.bucket = Some(login.bucket.clone());
        options.timeout = self.patience;
        let host = node.host.clone();
        let Some(connector) = &login.connector else {
            let address = client::ServerAddress::new(host, node.data_port);
            return Ok(Connection::open(&address, &options)?);
        };
        let ports = node.tls.context("the map says no ports behind TLS of the node")?;
        let address = client::ServerAddress::new(host, ports.data);
        let socket = client::connection::connect(&address, &options)?;
        let session = connector.connect_blocking(&node.host, socket)?;
        Ok(Connection::over(session, &address, &options)?)
    }
}

/// The identity of the bucket that a map is about.
fn uuid_told_by(map: &[u8]) -> Option<Uuid> {
    let map: Value = serde_json::from_slice(map).ok()?;
    Uuid::parse(map.get("uuid")?.as_str()?)
}

/// The uid of a manifest.
fn uid_of(manifest: &str) -> anyhow::Result<u64> {
    let manifest = manifest_json::decode(manifest.as_bytes()).map_err(anyhow::Error::msg)?;
    Ok(manifest.uid)
}

#[cfg(test)]
mod tests {
    use node::{BucketSettings, Node, NodeConfig};

    use super::*;
    use crate::real_world::real_world;
    use crate::setting_values::NetworkLoop;

    #[test]
    fn a_map_of_a_bucket_tells_which_one_it_is() {
        let uuid = Uuid::parse("0123456789abcdef0123456789abcdef");
        let map = br#"{"rev":1,"name":"b","uuid":"0123456789abcdef0123456789abcdef"}"#;
        assert!(uuid.is_some() && uuid_told_by(map) == uuid);
        for other in [&b""[..], br#"{"rev":1}"#, br#"{"uuid":7}"#, br#"{"uuid":"x"}"#] {
            assert_eq!(uuid_told_by(other), None);
        }
    }

    #[test]
    fn a_node_says_how_far_the_copies_of_the_bucket_are_that_is_meant_and_of_no_other() {
        let directory = tempfile::tempdir().unwrap();
        let bucket = BucketSettings {
            name: "travel".to_owned(),
            vbuckets: Some(4),
            memory_quota_bytes: 64 << 20,
            journal_size_bytes: 64 << 20,
            ..BucketSettings::default()
        };
        let config = NodeConfig {
            data_dir: directory.path().join("data"),
            port: 0,
            password: Some("password".into()),
            threads: 1,
            buckets: vec![bucket],
            ..NodeConfig::default()
        };
        let world = real_world(config.pool_options(), NetworkLoop::Epoll).unwrap();
        let (user, peers) = (config.user.clone(), RealPeers { patience: CARRY_OUT_TIME_MAX });
        let node = Node::start(world, config, 8091).unwrap();
        assert!(node.wait_until_serving(CARRY_OUT_TIME_MAX));
        let address = node.membership().cluster_map().this_address;
        let own = node.membership().bucket_map("travel").unwrap().uuid;
        let copies = |bucket_uuid| {
            let (user, password) = (user.clone(), "password".to_owned());
            let bucket = "travel".to_owned();
            let login = PeerLogin { user, password, bucket, bucket_uuid, connector: None };
            peers.copies(&address, &login)
        };
        assert_eq!(copies(None).unwrap().len(), 4);
        assert_eq!(copies(Some(own)).unwrap().len(), 4);
        let another = copies(Some(own.derived("another"))).unwrap_err().to_string();
        assert!(another.contains("another bucket of that name"), "{another}");
        node.stop().unwrap();
    }

    #[test]
    fn what_a_node_has_is_read_from_its_description() {
        let ram = serde_json::json!({"total": 9, "used": 4, "quotaTotal": 7, "quotaUsed": 3});
        let said =
            serde_json::json!({"storageTotals": {"ram": ram, "hdd": {"free": 2, "total": -1}}});
        let usage = |total_bytes, used_bytes| Usage { total_bytes, used_bytes };
        let expected = StorageFigures {
            memory: usage(9, 4),
            quota: usage(7, 3),
            disk_free_bytes: 2,
            ..StorageFigures::default()
        };
        assert_eq!(storage_of(&said), expected);
        assert_eq!(storage_of(&Value::Null), StorageFigures::default(), "of a version before");
    }
}
