//! Having replicas become active: when a node is given up, and before one that holds its documents
//! in memory alone stops in order.

use std::collections::BTreeMap;

use anyhow::{Context, bail, ensure};
use cluster::ClusterPlan;
use node::{
    Copies, Members, PeerLogin, Peers, Replicas, Standing, ask_replicas, ask_replicas_behind,
};

use super::super::member_port;
use super::super::process::Doing;
use super::{CARRY_OUT_TIME_MAX, FAREWELL_TIME_MAX, STATISTICS_TIME_MAX, STEP, Supervisor};
use crate::real_peers::RealPeers;

/// The members, asked how far they are.
const PEERS: RealPeers = RealPeers { patience: STATISTICS_TIME_MAX };
/// How long replicas may take to be whole while the node serves that is to be given up.
const FOLLOW_TIME_MAX: std::time::Duration = std::time::Duration::from_secs(5);
/// How long replicas may take to get what they lack of a node that keeps still.
const DRAIN_TIME_MAX: std::time::Duration = std::time::Duration::from_secs(15);

/// A failover as it speaks to members.
struct GivingUp<'a> {
    supervisor: &'a Supervisor,
    lost: usize,
}

impl Members for GivingUp<'_> {
    fn say_farewell(&self, plan: &ClusterPlan) {
        self.supervisor.say_farewell(plan, self.lost);
    }

    fn hand_over(&self, plan: &ClusterPlan, member: usize) -> anyhow::Result<()> {
        let Supervisor { cluster, processes, .. } = self.supervisor;
        let index = self.supervisor.index_of(member)?;
        if processes[index].doing() == Doing::Runs {
            member_port::settle(plan, &cluster.nodes[index], cluster, CARRY_OUT_TIME_MAX)?;
        }
        Ok(())
    }

    fn copies(&self, bucket: &str, member: usize) -> anyhow::Result<Copies> {
        let index = self.supervisor.index_of(member)?;
        let copies = self.supervisor.copies(bucket, index);
        copies.with_context(|| format!("n_{index}"))
    }
}

impl Supervisor {
    /// Gives a node up. Again, it tells everybody of the map again.
    pub(super) fn failover(&mut self, node: u16, is_forced: bool) -> anyhow::Result<String> {
        self.process(node)?;
        let lost = usize::from(node);
        let Some(in_plan) = self.plan.index_of(&self.cluster.nodes[lost].name) else {
            let left = self.tell_of_loss(lost)?;
            return Ok(format!("n_{node} was given up before; the members have the map{left}"));
        };
        let replicas = Replicas::of(&self.plan, in_plan);
        // What is refused now has changed nothing.
        let in_doubt = self.in_doubt(lost, &replicas, is_forced)?;
        refuse_loss(node, &in_doubt, is_forced)?;
        let fence = self.plan.without(in_plan);
        let fence = fence.with_context(|| format!("n_{node} cannot be given up"))?;
        // Whatever comes of it, the next map is newer.
        self.plan.revision = fence.revision;
        let promoted = self.promote_behind(&fence, lost, in_plan, &replicas, is_forced);
        if promoted.is_err() {
            self.go_on_as_before()?;
        }
        promoted.with_context(|| format!("n_{node} cannot be given up"))?;
        let left = self.tell_of_loss(lost)?;
        let chains = self.plan.buckets.values().flat_map(|bucket| &bucket.chains);
        let unserved = match chains.filter(|chain| chain.first() == Some(&None)).count() {
            0 => String::new(),
            count => format!("; {count} vBuckets had no replica and are not served"),
        };
        Ok(format!("n_{node} is given up, its replicas are promoted{unserved}{left}"))
    }

    /// The vBuckets of a node of which no replica is sure to have everything. Of one that still
    /// serves replicas get what they lack, so that a moment is given to them: who has just been
    /// taken in again has to hear first how far the node is.
    fn in_doubt(
        &self,
        lost: usize,
        replicas: &Replicas,
        is_forced: bool,
    ) -> anyhow::Result<Vec<(String, u16)>> {
        let deadline = self.clock.now().after(FOLLOW_TIME_MAX);
        loop {
            let in_doubt = self.standing(lost, replicas, is_forced)?.in_doubt(replicas);
            let goes_on = self.processes[lost].doing() == Doing::Runs && !is_forced;
            if in_doubt.is_empty() || !goes_on || self.clock.now() > deadline {
                return Ok(in_doubt);
            }
            platform::threads::pause(STEP);
        }
    }

    /// Promotes the replicas that are the furthest once they do not follow the node any more.
    fn promote_behind(
        &mut self,
        fence: &ClusterPlan,
        lost: usize,
        in_plan: usize,
        replicas: &Replicas,
        is_forced: bool,
    ) -> anyhow::Result<()> {
        let members = GivingUp { supervisor: self, lost };
        let standing = ask_replicas_behind(fence, replicas, is_forced, &members)?;
        say_silent(&standing);
        let choose = |bucket: &str, vbid: u16, replicas: &[usize]| {
            let first = replicas.first().copied();
            standing.furthest(bucket, vbid, replicas).or(first).expect("there are several")
        };
        let plan = self.plan.failed_over(in_plan, choose)?;
        self.adopt(plan)
    }

    /// The map is what it was, under a newer revision.
    fn go_on_as_before(&mut self) -> anyhow::Result<()> {
        let mut plan = self.plan.clone();
        plan.revision.revision += 1;
        self.adopt(plan)?;
        self.hand_over_to_members()?;
        Ok(())
    }

    /// A node that is given up stops serving before others begin, if it can be told.
    fn say_farewell(&self, plan: &ClusterPlan, lost: usize) {
        if self.processes[lost].doing() == Doing::Runs {
            let member = &self.cluster.nodes[lost];
            drop(member_port::hand_over(plan, member, &self.cluster, FAREWELL_TIME_MAX));
        }
    }

    fn tell_of_loss(&self, lost: usize) -> anyhow::Result<String> {
        self.say_farewell(&self.plan, lost);
        self.hand_over_to_members()
    }

    /// Before a node whose documents are in memory alone stops, or starts after it has ended, has
    /// others become active in its place. Whether anything was handed over.
    pub(super) fn hand_over_roles(&mut self, node: u16, is_forced: bool) -> anyhow::Result<bool> {
        let index = usize::from(node);
        let in_plan = self.plan.index_of(&self.cluster.nodes[index].name);
        let Some(in_plan) = in_plan else { return Ok(false) };
        let replicas = Replicas::of(&self.plan, in_plan);
        if replicas.is_empty() || !self.is_ephemeral() {
            return Ok(false);
        }
        let (standing, own) = if self.processes[index].doing() == Doing::Runs {
            let drained = self.drain(index, in_plan, &replicas, is_forced);
            if drained.is_err() {
                // It goes on as before, by a map that is newer than the one that it has.
                self.go_on_as_before()?;
            }
            drained.with_context(|| format!("n_{node} cannot be restarted without a loss"))?
        } else {
            (self.standing(index, &replicas, is_forced)?, BTreeMap::new())
        };
        let choose = |bucket: &str, vbid: u16, replicas: &[usize]| {
            let own = own.get(bucket).and_then(|copies: &Copies| copies.get(&vbid));
            match own {
                Some(own) => standing.furthest_behind(bucket, vbid, replicas, own),
                None => standing.furthest(bucket, vbid, replicas),
            }
        };
        self.adopt(self.plan.handed_over(in_plan, choose))?;
        self.hand_over_to_members()?;
        Ok(true)
    }

    /// Has a node keep still until somebody has everything of each of its vBuckets. Returns how far
    /// others are then, and what the node has.
    fn drain(
        &mut self,
        index: usize,
        in_plan: usize,
        replicas: &Replicas,
        is_forced: bool,
    ) -> anyhow::Result<(Standing, BTreeMap<String, Copies>)> {
        // Those who do not answer are heard of before anything has changed.
        self.standing(index, replicas, is_forced)?;
        let still = self.plan.held_still(in_plan);
        // Whatever comes of it, the next map is newer.
        self.plan.revision = still.revision;
        let member = &self.cluster.nodes[index];
        member_port::hand_over(&still, member, &self.cluster, CARRY_OUT_TIME_MAX)?;
        let names = self.plan.buckets.keys();
        let copies_of = |name: &String| -> anyhow::Result<(String, Copies)> {
            Ok((name.clone(), self.copies(name, index)?))
        };
        let own: BTreeMap<String, Copies> = names.map(copies_of).collect::<anyhow::Result<_>>()?;
        let deadline = self.clock.now().after(DRAIN_TIME_MAX);
        loop {
            let standing = self.standing(index, replicas, is_forced)?;
            let lacks = |&(bucket, vbid, replicas): &(&str, u16, &[usize])| {
                let own = own.get(bucket).and_then(|copies| copies.get(&vbid));
                own.is_some_and(|own| !standing.has_reached(bucket, vbid, replicas, own))
            };
            let count = replicas.all().filter(lacks).count();
            let is_late = self.clock.now() > deadline;
            if count == 0 || (is_late && is_forced) {
                return Ok((standing, own));
            }
            if is_late {
                bail!(
                    "of {count} vBuckets no other node has everything yet; try again later, or \
                     lose what they lack with --force"
                );
            }
            platform::threads::pause(STEP);
        }
    }

    /// How far the replicas of what is active on a node are.
    fn standing(
        &self,
        index: usize,
        replicas: &Replicas,
        is_forced: bool,
    ) -> anyhow::Result<Standing> {
        let members = GivingUp { supervisor: self, lost: index };
        let standing = ask_replicas(replicas, is_forced, &members)?;
        say_silent(&standing);
        Ok(standing)
    }

    /// The copies that a node says it has of a bucket.
    pub(super) fn copies(&self, bucket: &str, index: usize) -> anyhow::Result<Copies> {
        match self.processes[index].doing() {
            Doing::Runs => {
                let address = self.cluster.nodes[index].planned().address;
                PEERS.copies(&address, &self.login(bucket))
            }
            Doing::Hangs => bail!("it hangs"),
            Doing::Nothing => bail!("it does not run"),
        }
    }

    /// The node that is a member of the map by this index.
    fn index_of(&self, member: usize) -> anyhow::Result<usize> {
        let name = &self.plan.nodes[member].name;
        let index = self.cluster.nodes.iter().position(|node| node.name == *name);
        index.with_context(|| format!("{name} is in map.json, and no node of this directory"))
    }

    /// Whether documents are in memory alone, as far as anybody says. The buckets are of one type.
    fn is_ephemeral(&self) -> bool {
        let running = self.cluster.nodes.iter().zip(&self.processes);
        let mut running = running.filter(|(_, process)| process.doing() == Doing::Runs);
        running.any(|(member, _)| {
            let login = self.login(&self.cluster.bucket);
            PEERS.is_ephemeral(&member.planned().address, &login).unwrap_or(false)
        })
    }

    fn login(&self, bucket: &str) -> PeerLogin {
        PeerLogin {
            user: self.cluster.user.clone(),
            password: self.cluster.password.clone(),
            bucket: bucket.to_owned(),
            // Who was away when a bucket was deleted has that one still.
            bucket_uuid: self.plan.buckets.get(bucket).and_then(|planned| planned.uuid),
            connector: self.cluster.connector.clone(),
        }
    }

    /// From now on this is the map. It is written first: whoever starts later starts with it.
    pub(super) fn adopt(&mut self, plan: ClusterPlan) -> anyhow::Result<()> {
        assert!(plan.revision > self.plan.revision, "maps only become newer");
        self.directory.write_plan(&plan)?;
        self.plan = plan;
        Ok(())
    }
}

/// Copies of which nobody knows what they lack are promoted by force alone.
fn refuse_loss(node: u16, in_doubt: &[(String, u16)], is_forced: bool) -> anyhow::Result<()> {
    if in_doubt.is_empty() {
        return Ok(());
    }
    let vbuckets = member_port::listed_by_bucket(in_doubt);
    ensure!(
        is_forced,
        "nothing is changed, because no replica of the vBuckets {vbuckets} that answers is sure \
         to be whole, and what they lack would be lost: have n_{node} serve until they are \
         (--restart {node}, then --status), or lose it with --force"
    );
    super::say(&format!("without what the replicas of the vBuckets {vbuckets} lack"));
    Ok(())
}

fn say_silent(standing: &Standing) {
    for silent in standing.silent() {
        super::say(&format!("without an answer of {silent}"));
    }
}
