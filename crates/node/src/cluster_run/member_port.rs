//! The ports of a member, as the cluster uses them: handing it the map, and asking how far its
//! replicas are.

use std::time::Duration;

use anyhow::{Context, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use client::{Connection, ConnectionOptions, Login};
use cluster::ClusterPlan;
use ureq::Agent;

use super::directory::{Description, Member};

/// Has a member carry out a plan, within `patience`.
pub(super) fn hand_over(
    plan: &ClusterPlan,
    member: &Member,
    cluster: &Description,
    patience: Duration,
) -> anyhow::Result<()> {
    let credentials = STANDARD.encode(format!("{}:{}", cluster.user, cluster.password));
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .proxy(None)
        .timeout_connect(Some(patience))
        .timeout_global(Some(patience));
    let agent: Agent = config.build().into();
    let url = format!("http://{}:{}/settee/clusterMap", member.host, member.mgmt);
    let answer = agent
        .put(&url)
        .header("Authorization", format!("Basic {credentials}"))
        .content_type("application/json")
        .send(plan.to_json());
    let mut answer = answer.with_context(|| format!("{} does not answer", member.name))?;
    if !answer.status().is_success() {
        let reason = answer.body_mut().read_to_string().unwrap_or_default();
        bail!("{} refuses the map: {} {reason}", member.name, answer.status());
    }
    Ok(())
}

/// The high prepared seqno of each vBucket that a member holds.
pub(super) fn prepared_seqnos(
    member: &Member,
    cluster: &Description,
    patience: Duration,
) -> anyhow::Result<Vec<(u16, u64)>> {
    let mut options = ConnectionOptions::new("settee cluster-run");
    options.login = Some(Login::new(cluster.user.clone(), cluster.password.clone()));
    options.bucket = Some(cluster.bucket.clone());
    options.timeout = patience;
    let address = client::NodeAddress::new(member.host.clone(), member.kv);
    let mut connection = Connection::open(&address, &options)?;
    let statistics = connection.statistics("vbucket-details")?;
    Ok(statistics.iter().filter_map(|(name, value)| prepared_seqno(name, value)).collect())
}

/// From `vb_17:high_prepared_seqno 5`.
fn prepared_seqno(name: &str, value: &str) -> Option<(u16, u64)> {
    let vbid = name.strip_prefix("vb_")?.strip_suffix(":high_prepared_seqno")?;
    Some((vbid.parse().ok()?, value.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prepared_seqnos_are_found_among_the_statistics() {
        assert_eq!(prepared_seqno("vb_17:high_prepared_seqno", "5"), Some((17, 5)));
        for (name, value) in [("vb_17", "active"), ("vb_17:high_seqno", "5"), ("x", "5")] {
            assert_eq!(prepared_seqno(name, value), None);
        }
    }
}
