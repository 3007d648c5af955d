//! The management port of a member, as the cluster uses it: handing it the map, and asking what is
//! left of it.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cluster::ClusterPlan;
use serde::Deserialize;
use ureq::Agent;
use ureq::http::Response;

use super::directory::{Description, Member};

/// What a node says of its map.
#[derive(Deserialize)]
struct MapAnswer {
    pending: Vec<Pending>,
    /// The copies that are not whole yet. Only who asks for the map is told.
    #[serde(default)]
    incomplete: Vec<u16>,
}

/// A vBucket that is not yet what the map says.
#[derive(Deserialize)]
struct Pending {
    vbucket: u16,
    wanted: String,
    reason: String,
}

/// Has a member carry out a plan, within `patience`. Returned is what of it is left, in words.
pub(super) fn hand_over(
    plan: &ClusterPlan,
    member: &Member,
    cluster: &Description,
    patience: Duration,
) -> anyhow::Result<Vec<String>> {
    let request = agent(patience).put(map_url(member)).content_type("application/json");
    let request = request.header("Authorization", authorization(cluster));
    let answer = request.send(plan.to_json());
    let mut answer = answer.with_context(|| format!("{} does not answer", member.name))?;
    if !answer.status().is_success() {
        let reason = answer.body_mut().read_to_string().unwrap_or_default();
        bail!("{} refuses the map: {} {reason}", member.name, answer.status());
    }
    what_is_left(answer)
}

/// What of the map that it has is left, and which copies are not whole yet, in words.
pub(super) fn pending(
    member: &Member,
    cluster: &Description,
    patience: Duration,
) -> anyhow::Result<Vec<String>> {
    let request = agent(patience).get(map_url(member));
    let answer = request.header("Authorization", authorization(cluster)).call();
    let answer = answer.with_context(|| format!("{} does not answer", member.name))?;
    what_is_left(answer)
}

fn agent(patience: Duration) -> Agent {
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .proxy(None)
        .timeout_connect(Some(patience))
        .timeout_global(Some(patience));
    config.build().into()
}

fn map_url(member: &Member) -> String {
    format!("http://{}:{}/settee/clusterMap", member.host, member.mgmt)
}

fn authorization(cluster: &Description) -> String {
    let credentials = STANDARD.encode(format!("{}:{}", cluster.user, cluster.password));
    format!("Basic {credentials}")
}

fn what_is_left(mut answer: Response<ureq::Body>) -> anyhow::Result<Vec<String>> {
    let text = answer.body_mut().read_to_string()?;
    let MapAnswer { pending, incomplete } = serde_json::from_str(&text)?;
    let mut lines = in_words(pending);
    if !incomplete.is_empty() {
        lines.push(format!("not whole yet: vBuckets {}", listed(&incomplete)));
    }
    Ok(lines)
}

/// Numbers as people list them.
pub(super) fn listed(vbuckets: &[u16]) -> String {
    let numbers: Vec<String> = vbuckets.iter().map(u16::to_string).collect();
    numbers.join(", ")
}

/// One line for each reason, with its vBuckets.
fn in_words(pending: Vec<Pending>) -> Vec<String> {
    let mut reasons: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for Pending { vbucket, wanted, reason } in pending {
        reasons.entry((wanted, reason)).or_default().push(vbucket.to_string());
    }
    let line = |((wanted, reason), vbuckets): ((String, String), Vec<String>)| {
        format!("not {wanted} yet: vBuckets {}: {reason}", vbuckets.join(", "))
    };
    reasons.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vbuckets_with_one_reason_are_told_together() {
        let pending = |vbucket, reason: &str| Pending {
            vbucket,
            wanted: "active".to_owned(),
            reason: reason.to_owned(),
        };
        let lines = in_words(vec![pending(1, "b"), pending(3, "a"), pending(5, "b")]);
        assert_eq!(lines, ["not active yet: vBuckets 3: a", "not active yet: vBuckets 1, 5: b"]);
    }
}
