//! Taking a node in again that was given up, and with it what no node has active.

use std::collections::BTreeMap;

use anyhow::{Context, bail};
use node::{Copies, ask_kept};

use super::super::member_port;
use super::super::process::Doing;
use super::{CARRY_OUT_TIME_MAX, Supervisor};

/// What becomes of the vBuckets that no node has active. Nodes are their indices in the cluster.
#[derive(Default)]
struct Revival {
    /// Who is to have them active, by bucket.
    chosen: BTreeMap<String, BTreeMap<u16, usize>>,
    /// Of which nobody has anything.
    gone: Vec<(String, u16)>,
    /// Of which it is not known who has everything.
    in_doubt: Vec<(String, u16)>,
    /// Of which a node has the most that is given up still.
    elsewhere: BTreeMap<usize, Vec<(String, u16)>>,
    /// Who does not say what it has, and why.
    silent: Vec<String>,
}

impl Supervisor {
    /// Takes a node in. One that is a member already may have copies that are to be served.
    pub(super) fn recover(&mut self, node: u16, is_forced: bool) -> anyhow::Result<String> {
        if self.process(node)?.doing() == Doing::Nothing {
            self.restart(node, false)?;
        }
        let index = usize::from(node);
        let revival = self.revival(index, is_forced);
        let planned = self.cluster.nodes[index].planned();
        let joined = match self.plan.index_of(&planned.name) {
            Some(_) if !self.plan.unserved().is_empty() => self.plan.clone(),
            _ => {
                let joined = self.plan.joined(planned);
                joined.with_context(|| format!("n_{node} cannot be taken in"))?
            }
        };
        let in_plan = |index: usize| joined.index_of(&self.cluster.nodes.get(index)?.name);
        let and = in_plan(index).with_context(|| format!("n_{node} is no member"))?;
        let choose = |bucket: &str, vbid: u16| in_plan(*revival.chosen.get(bucket)?.get(&vbid)?);
        let plan = joined.revived(and, choose);
        self.adopt(plan)?;
        let left = self.hand_over_to_members()?;
        let told = revival.in_words(node);
        Ok(format!(
            "n_{node} holds the copies that were missing, once it has received them{told}{left}"
        ))
    }

    /// Who is to have active what no node has: who has the most of it, if all that were ever
    /// started say what they have kept. Without one of these nobody knows that what it has is not
    /// newer; who is forced to goes past it.
    fn revival(&self, index: usize, is_forced: bool) -> Revival {
        let unserved = self.plan.unserved();
        let mut revival = Revival::default();
        if unserved.is_empty() {
            return revival;
        }
        let is_near = |node: usize| node == index || self.is_member(node);
        let all = 0..self.cluster.nodes.len();
        // Of equals the first one is chosen.
        let (near, far): (Vec<usize>, Vec<usize>) =
            all.filter(|&node| node != index).partition(|&node| is_near(node));
        let nodes: Vec<usize> = std::iter::once(index).chain(near).chain(far).collect();
        let buckets: Vec<&str> = unserved.keys().map(String::as_str).collect();
        let standing = ask_kept(&buckets, &nodes, |bucket, node| self.kept(bucket, node));
        revival.silent = standing.silent().into_iter().map(str::to_owned).collect();
        let may_choose = revival.silent.is_empty() || is_forced;
        let nodes: Vec<usize> =
            nodes.into_iter().filter(|&node| !is_forced || is_near(node)).collect();
        for (bucket, vbids) in unserved {
            for vbid in vbids {
                let named = (bucket.clone(), vbid);
                match standing.kept(&bucket, vbid, &nodes) {
                    _ if !may_choose => revival.in_doubt.push(named),
                    None => revival.gone.push(named),
                    Some(choice) if !choice.is_safe && !is_forced => revival.in_doubt.push(named),
                    Some(choice) if !is_near(choice.member) => {
                        revival.elsewhere.entry(choice.member).or_default().push(named);
                    }
                    Some(choice) => {
                        let of_bucket = revival.chosen.entry(bucket.clone()).or_default();
                        of_bucket.insert(vbid, choice.member);
                    }
                }
            }
        }
        revival
    }

    /// What a node has of a bucket. One that was given up and never heard of it may think still
    /// that it serves; it is told first.
    fn kept(&self, bucket: &str, index: usize) -> anyhow::Result<Copies> {
        let told = || -> anyhow::Result<Copies> {
            match self.processes[index].doing() {
                Doing::Runs if !self.is_member(index) => {
                    let member = &self.cluster.nodes[index];
                    member_port::hand_over(&self.plan, member, &self.cluster, CARRY_OUT_TIME_MAX)?;
                }
                Doing::Runs => {}
                Doing::Hangs => bail!("it hangs"),
                Doing::Nothing => bail!("it does not run"),
            }
            self.copies(bucket, index)
        };
        told().with_context(|| format!("n_{index}"))
    }
}

impl Revival {
    /// For the person who takes in `node`; nothing where all is served.
    fn in_words(&self, node: u16) -> String {
        let mut words = String::new();
        let served: usize = self.chosen.values().map(BTreeMap::len).sum();
        if served > 0 {
            words += &format!(
                "; {served} vBuckets that no node served go on with what nodes had kept of them"
            );
        }
        if !self.gone.is_empty() {
            let vbuckets = member_port::listed_by_bucket(&self.gone);
            words += &format!("; nobody who answers has the vBuckets {vbuckets}");
        }
        for (other, vbuckets) in &self.elsewhere {
            let vbuckets = member_port::listed_by_bucket(vbuckets);
            words += &format!(
                "; n_{other} has the most of the vBuckets {vbuckets}, which are served once it is \
                 taken in (--recover {other})"
            );
        }
        if !self.in_doubt.is_empty() {
            let vbuckets = member_port::listed_by_bucket(&self.in_doubt);
            let why = match self.silent.as_slice() {
                [] => "each of their copies may lack what another one has".to_owned(),
                silent => format!("not all say what they have of them ({})", silent.join("; ")),
            };
            words += &format!(
                "; the vBuckets {vbuckets} are not served, because {why}: take the others in, or \
                 lose what they alone have with --recover {node} --force"
            );
        }
        words
    }
}
