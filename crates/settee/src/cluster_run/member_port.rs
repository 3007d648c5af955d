//! The management port of a member, as the cluster uses it: handing it the map, and asking what is
//! left of it.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use cluster::ClusterPlan;
use serde::Deserialize;
use ureq::http::Response;

use super::directory::{Description, Member};
use crate::peer_agent::{PeerAgent, authorization};

const MAP_PATH: &str = "/settee/clusterMap";
/// How often a member is handed a map that is to settle. Each time it waits for its replicator, and
/// asks its disk again.
const SETTLE_TRIES_MAX: usize = 3;

/// What a node says of its map.
#[derive(Deserialize)]
struct MapAnswer {
    pending: Vec<Pending>,
    /// The copies that are not whole yet. Only who asks for the map is told.
    #[serde(default)]
    incomplete: Incomplete,
    /// Why nobody may rest on the map yet. Only who hands it over is told, and not by the version
    /// before.
    #[serde(default)]
    unsettled: Vec<String>,
}

/// A vBucket that is not yet what the map says.
#[derive(Deserialize)]
struct Pending {
    /// Said where the node has several.
    bucket: Option<String>,
    vbucket: u16,
    wanted: String,
    reason: String,
}

/// vBuckets whose copies are not whole yet.
#[derive(Deserialize)]
#[serde(untagged)]
enum Incomplete {
    OfTheBucket(Vec<u16>),
    /// Where the node has several.
    ByBucket(BTreeMap<String, Vec<u16>>),
}

impl Default for Incomplete {
    fn default() -> Self {
        Self::OfTheBucket(Vec::new())
    }
}

/// Has a member carry out a plan, within `patience`. Returned is what of it is left, in words.
pub(super) fn hand_over(
    plan: &ClusterPlan,
    member: &Member,
    cluster: &Description,
    patience: Duration,
) -> anyhow::Result<Vec<String>> {
    Ok(in_words(put(plan, member, cluster, patience)?, &[]))
}

/// The same for a plan on which others rest, whatever becomes of the member. Who may go on with the
/// plan before has not carried it out.
pub(super) fn settle(
    plan: &ClusterPlan,
    member: &Member,
    cluster: &Description,
    patience: Duration,
) -> anyhow::Result<()> {
    settled_within(SETTLE_TRIES_MAX, &member.name, || put(plan, member, cluster, patience))
}

fn settled_within(
    tries_max: usize,
    member: &str,
    mut ask: impl FnMut() -> anyhow::Result<MapAnswer>,
) -> anyhow::Result<()> {
    for _ in 1..tries_max {
        if ask()?.unsettled.is_empty() {
            return Ok(());
        }
    }
    ensure_settled(&ask()?, member)
}

fn ensure_settled(answer: &MapAnswer, member: &str) -> anyhow::Result<()> {
    let unsettled = answer.unsettled.join("; ");
    ensure!(unsettled.is_empty(), "the map has not settled on {member} yet: {unsettled}");
    Ok(())
}

fn put(
    plan: &ClusterPlan,
    member: &Member,
    cluster: &Description,
    patience: Duration,
) -> anyhow::Result<MapAnswer> {
    let asked = PeerAgent::new(&member.planned().address, cluster.connector(), patience)?;
    let request = asked.agent.put(asked.url(MAP_PATH)).content_type("application/json");
    let who = authorization(&cluster.user, &cluster.password);
    let request = request.header("Authorization", who);
    let answer = request.send(plan.to_json());
    let mut answer = answer.with_context(|| format!("{} does not answer", member.name))?;
    if !answer.status().is_success() {
        let reason = answer.body_mut().read_to_string().unwrap_or_default();
        bail!("{} refuses the map: {} {reason}", member.name, answer.status());
    }
    parsed(answer)
}

/// What of the map that it has is left, and which copies are not whole yet, in words: of these
/// buckets, or of all where none is said.
pub(super) fn pending(
    member: &Member,
    cluster: &Description,
    buckets: &[String],
    patience: Duration,
) -> anyhow::Result<Vec<String>> {
    let asked = PeerAgent::new(&member.planned().address, cluster.connector(), patience)?;
    let request = asked.agent.get(asked.url(MAP_PATH));
    let who = authorization(&cluster.user, &cluster.password);
    let answer = request.header("Authorization", who).call();
    let answer = answer.with_context(|| format!("{} does not answer", member.name))?;
    Ok(in_words(parsed(answer)?, buckets))
}

fn parsed(mut answer: Response<ureq::Body>) -> anyhow::Result<MapAnswer> {
    Ok(serde_json::from_str(&answer.body_mut().read_to_string()?)?)
}

/// vBuckets of one bucket or several as people list them.
pub(super) fn listed_by_bucket(vbuckets: &[(String, u16)]) -> String {
    let mut by_bucket: BTreeMap<&str, Vec<u16>> = BTreeMap::new();
    for (bucket, vbid) in vbuckets {
        by_bucket.entry(bucket).or_default().push(*vbid);
    }
    let has_names = by_bucket.len() > 1;
    let one = |(bucket, vbids): (&str, Vec<u16>)| {
        let vbids = listed(&vbids);
        if has_names { format!("{vbids} of {bucket}") } else { vbids }
    };
    let parts: Vec<String> = by_bucket.into_iter().map(one).collect();
    parts.join(", ")
}

/// Numbers as people list them.
fn listed(vbuckets: &[u16]) -> String {
    let numbers: Vec<String> = vbuckets.iter().map(u16::to_string).collect();
    numbers.join(", ")
}

/// One line for each reason, with its vBuckets, then one for each bucket with copies that are not
/// whole. A node with one bucket does not say which.
fn in_words(answer: MapAnswer, buckets: &[String]) -> Vec<String> {
    let is_asked = |bucket: Option<&String>| {
        buckets.is_empty() || bucket.is_none_or(|bucket| buckets.contains(bucket))
    };
    let mut reasons: BTreeMap<(String, String, String), Vec<u16>> = BTreeMap::new();
    for Pending { bucket, vbucket, wanted, reason } in answer.pending {
        if is_asked(bucket.as_ref()) {
            reasons.entry((of(bucket.as_ref()), wanted, reason)).or_default().push(vbucket);
        }
    }
    let line = |((of, wanted, reason), vbuckets): ((String, String, String), Vec<u16>)| {
        format!("not {wanted} yet: vBuckets {}{of}: {reason}", listed(&vbuckets))
    };
    let mut lines: Vec<String> = reasons.into_iter().map(line).collect();
    let incomplete: Vec<(Option<String>, Vec<u16>)> = match answer.incomplete {
        Incomplete::OfTheBucket(vbuckets) => vec![(None, vbuckets)],
        Incomplete::ByBucket(all) => {
            all.into_iter().map(|(bucket, vbuckets)| (Some(bucket), vbuckets)).collect()
        }
    };
    for (bucket, vbuckets) in incomplete {
        if !vbuckets.is_empty() && is_asked(bucket.as_ref()) {
            let (vbuckets, of) = (listed(&vbuckets), of(bucket.as_ref()));
            lines.push(format!("not whole yet: vBuckets {vbuckets}{of}"));
        }
    }
    lines
}

fn of(bucket: Option<&String>) -> String {
    bucket.map_or_else(String::new, |bucket| format!(" of {bucket}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(answer: &str, buckets: &[&str]) -> Vec<String> {
        let buckets: Vec<String> = buckets.iter().map(|name| (*name).to_owned()).collect();
        in_words(serde_json::from_str(answer).unwrap(), &buckets)
    }

    #[test]
    fn who_says_why_nobody_may_rest_on_a_map_has_not_settled() {
        let settled = |answer| ensure_settled(&serde_json::from_str(answer).unwrap(), "n_1");
        settled(r#"{"pending": [], "unsettled": []}"#).unwrap();
        settled(r#"{"pending": []}"#).unwrap();
        let why = settled(r#"{"pending": [], "unsettled": ["a", "b"]}"#).unwrap_err().to_string();
        assert_eq!(why, "the map has not settled on n_1 yet: a; b");
    }

    #[test]
    fn who_has_not_settled_is_asked_again_and_not_for_ever() {
        for (settles_at, asked, is_settled) in [(1, 1, true), (3, 3, true), (4, 3, false)] {
            let mut count = 0;
            let settled = settled_within(3, "n_1", || {
                count += 1;
                let unsettled = if count < settles_at { r#"["a"]"# } else { "[]" };
                let answer = format!(r#"{{"pending": [], "unsettled": {unsettled}}}"#);
                Ok(serde_json::from_str(&answer)?)
            });
            assert_eq!((count, settled.is_ok()), (asked, is_settled));
        }
    }

    #[test]
    fn vbuckets_with_one_reason_are_told_together() {
        let answer = r#"{"pending": [
            {"vbucket": 1, "wanted": "active", "reason": "b"},
            {"vbucket": 3, "wanted": "active", "reason": "a"},
            {"vbucket": 5, "wanted": "active", "reason": "b"}], "incomplete": [2, 4]}"#;
        let told = [
            "not active yet: vBuckets 3: a",
            "not active yet: vBuckets 1, 5: b",
            "not whole yet: vBuckets 2, 4",
        ];
        assert_eq!(lines(answer, &[]), told);
        assert_eq!(lines(answer, &["default"]), told, "the node has no other");
    }

    #[test]
    fn of_several_buckets_those_are_told_that_were_asked_for() {
        let answer = r#"{"pending": [
            {"bucket": "orders", "vbucket": 1, "wanted": "active", "reason": "a"},
            {"bucket": "travel", "vbucket": 1, "wanted": "active", "reason": "a"}],
            "incomplete": {"orders": [], "travel": [7]}}"#;
        let of_orders = ["not active yet: vBuckets 1 of orders: a"];
        let of_travel =
            ["not active yet: vBuckets 1 of travel: a", "not whole yet: vBuckets 7 of travel"];
        assert_eq!(lines(answer, &["orders"]), of_orders);
        assert_eq!(lines(answer, &["travel"]), of_travel);
        assert_eq!(lines(answer, &[]), [&of_orders[..], &of_travel[..]].concat());
    }
}
