//! Giving a node up: who takes its place, and in which order members are spoken to until that is
//! decided. The nodes carry out maps; whoever manages the cluster makes them with this.

mod choice;
mod replicas;
mod standing;

use std::collections::BTreeSet;

use anyhow::ensure;
use cluster::ClusterPlan;

pub use choice::Choice;
pub use replicas::Replicas;
pub use standing::Standing;

use crate::peer_copies::Copies;

/// The members of a cluster, by their index in its plan.
pub trait Members {
    /// Has the node that is given up stop serving, if it can be told.
    fn say_farewell(&self, plan: &ClusterPlan);

    /// Has a member carry out a map, if it runs.
    ///
    /// # Errors
    /// It has not said that it has; or it is not settled ([`crate::Membership::unsettled`]), so
    /// that it may follow still, or again behind a crash, whom the map before says.
    fn hand_over(&self, plan: &ClusterPlan, member: usize) -> anyhow::Result<()>;

    /// The copies that a member has of a bucket of the map: not of another one of its name, where
    /// the map says its identity.
    ///
    /// # Errors
    /// It does not say, or has another one; the text names it.
    fn copies(&self, bucket: &str, member: usize) -> anyhow::Result<Copies>;
}

/// How far replicas are. `is_forced` goes past members that do not say: [`Standing::silent`] has
/// those.
///
/// # Errors
/// A member does not say how far it is. It may be the one that has the most: nobody guesses.
pub fn ask_replicas(
    replicas: &Replicas,
    is_forced: bool,
    members: &impl Members,
) -> anyhow::Result<Standing> {
    let mut standing = Standing::default();
    for member in replicas.members() {
        let copies = |bucket: &str| members.copies(bucket, member);
        hear(replicas.buckets_of(member), member, copies, &mut standing);
    }
    ensure!(
        standing.silent().is_empty() || is_forced,
        "nothing is changed, because not all replicas say how far they are, and the one that \
         has the most is not known ({}); bring them back, or go past them with --force",
        standing.silent().join("; ")
    );
    Ok(standing)
}

/// What nodes have kept of these buckets that say it, be they members or given up, by whatever
/// index `copies` knows them.
pub fn ask_kept(
    buckets: &[&str],
    nodes: &[usize],
    copies: impl Fn(&str, usize) -> anyhow::Result<Copies>,
) -> Standing {
    let mut standing = Standing::default();
    for &node in nodes {
        let copies = |bucket: &str| copies(bucket, node);
        hear(buckets.iter().copied(), node, copies, &mut standing);
    }
    standing
}

/// What a member says of these buckets. Who is silent once is not asked again.
fn hear<'a>(
    buckets: impl Iterator<Item = &'a str>,
    member: usize,
    copies: impl Fn(&str) -> anyhow::Result<Copies>,
    standing: &mut Standing,
) {
    for bucket in buckets {
        match copies(bucket) {
            Ok(copies) => standing.add(bucket, member, copies),
            Err(error) => {
                standing.note_silent(member, format!("{error:#}"));
                return;
            }
        }
    }
}

/// How far replicas are once none of them follows the node that is given up: `fence` is the map
/// without it. Until then it may serve, and what it acknowledges may be held by a replica that has
/// said before how far it is. `is_forced` goes past those who do not answer.
///
/// # Errors
/// A member has not carried out the map, or does not say how far it is.
pub fn ask_replicas_behind(
    fence: &ClusterPlan,
    replicas: &Replicas,
    is_forced: bool,
    members: &impl Members,
) -> anyhow::Result<Standing> {
    let candidates: BTreeSet<usize> = replicas.members();
    assert!(!candidates.is_empty() || replicas.is_empty(), "a replica is some member's");
    // Whoever serves on unheard writes nothing durable once no candidate follows it any more.
    members.say_farewell(fence);
    for &candidate in &candidates {
        let told = members.hand_over(fence, candidate);
        ensure!(told.is_ok() || is_forced, "{:#}", told.expect_err("it has failed"));
    }
    ask_replicas(replicas, is_forced, members)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::BTreeMap;

    use document::{FailoverEntry, Seqno, VbUuid};
    use platform::Random;
    use platform::seeds::seeds;

    use super::*;
    use crate::peer_copies::Held;

    const BUCKET: &str = "b";
    const VBID: u16 = 0;
    const REPLICAS: [usize; 2] = [1, 2];

    /// What all had before node 0 was promoted, the branch that this began, and that of a node that
    /// has crashed.
    const OLD: VbUuid = VbUuid(1);
    const NEW: VbUuid = VbUuid(2);
    const OWN: VbUuid = VbUuid(3);

    /// Node 0, which is given up and writes durably as long as it can, and its two replicas. Of two
    /// replicas either makes a majority. Before, node 0 was promoted itself, and a replica that has
    /// not followed it since may be ahead of it in the branch that was given up then.
    struct Model {
        random: Random,
        can_be_told: bool,
        serves: bool,
        promoted_at: u64,
        written_seqno: u64,
        acknowledged_seqno: u64,
        follows: BTreeMap<usize, bool>,
        copies: BTreeMap<usize, ModelCopy>,
        silent: BTreeSet<usize>,
    }

    struct ModelCopy {
        seqno: u64,
        /// Who is not is being filled still, and acknowledges what it holds all the same; or it
        /// was active, and nobody has told it how far node 0 is.
        is_whole: bool,
        is_of_new_branch: bool,
        /// It was active, and has begun a branch when it started again.
        has_crashed: bool,
    }

    impl ModelCopy {
        fn any(random: &mut Random, promoted_at: u64) -> Self {
            let is_whole = random.below(2) == 0;
            let has_crashed = !is_whole && random.below(2) == 0;
            let seqno = random.below(promoted_at + 4);
            Self { seqno, is_whole, is_of_new_branch: false, has_crashed }
        }

        /// Follows node 0, and goes back to what that has.
        fn follow(&mut self, promoted_at: u64) {
            self.seqno = self.seqno.min(promoted_at);
            (self.is_of_new_branch, self.has_crashed) = (true, false);
        }

        /// All up to here is in the history of node 0.
        fn seqno_of_new_branch(&self, promoted_at: u64) -> u64 {
            if self.is_of_new_branch { self.seqno } else { self.seqno.min(promoted_at) }
        }

        fn held(&self, promoted_at: u64) -> Held {
            let entry = |uuid, seqno| FailoverEntry { uuid, seqno: Seqno(seqno) };
            let newest = match self {
                Self { is_of_new_branch: true, .. } => Some(entry(NEW, promoted_at)),
                Self { has_crashed: true, seqno, .. } => Some(entry(OWN, *seqno)),
                _ => None,
            };
            let branches = newest.into_iter().chain([entry(OLD, 0)]).collect();
            let Self { seqno, is_whole, .. } = *self;
            Held { is_whole, whole_seqno: seqno, high_seqno: seqno, branches }
        }
    }

    impl Model {
        fn new(seed: u64) -> Self {
            let mut random = Random::from_seed(seed);
            let promoted_at = random.below(8);
            let copies = REPLICAS.map(|it| (it, ModelCopy::any(&mut random, promoted_at)));
            let copies = BTreeMap::from(copies);
            let common = copies.values().map(|copy| copy.seqno_of_new_branch(promoted_at));
            Self {
                can_be_told: random.below(2) == 0,
                random,
                serves: true,
                promoted_at,
                written_seqno: promoted_at,
                // By node 0 and one of them, before it was promoted.
                acknowledged_seqno: common.max().unwrap_or(0),
                follows: REPLICAS.map(|replica| (replica, true)).into(),
                copies,
                silent: BTreeSet::new(),
            }
        }

        /// Time passes: node 0 writes, and a replica that follows it holds that or lags behind.
        fn pass(&mut self) {
            for _ in 0..self.random.below(4) {
                self.written_seqno += u64::from(self.serves);
                for replica in REPLICAS {
                    if self.serves && self.follows[&replica] && self.random.below(2) == 0 {
                        let copy = self.copies.get_mut(&replica).unwrap();
                        if copy.is_of_new_branch {
                            copy.seqno = self.written_seqno;
                            self.acknowledged_seqno = self.written_seqno;
                        } else {
                            copy.follow(self.promoted_at);
                        }
                    }
                }
            }
        }
    }

    impl Members for RefCell<Model> {
        fn say_farewell(&self, _: &ClusterPlan) {
            let mut model = self.borrow_mut();
            model.pass();
            model.serves &= !model.can_be_told;
        }

        fn hand_over(&self, _: &ClusterPlan, member: usize) -> anyhow::Result<()> {
            let mut model = self.borrow_mut();
            model.pass();
            model.follows.insert(member, false);
            Ok(())
        }

        fn copies(&self, _: &str, member: usize) -> anyhow::Result<Copies> {
            let mut model = self.borrow_mut();
            model.pass();
            anyhow::ensure!(!model.silent.contains(&member), "{member} does not answer");
            Ok(BTreeMap::from([(VBID, model.copies[&member].held(model.promoted_at))]))
        }
    }

    fn plan() -> ClusterPlan {
        let node = |index: u16| cluster::PlannedNode {
            name: format!("n_{index}"),
            address: cluster::NodeAddress {
                host: "h".to_owned(),
                data_port: index + 1,
                management_port: index + 11,
                tls: None,
                external: None,
            },
        };
        let bucket = cluster::BucketPlan::balanced(3, 2, 1);
        ClusterPlan::of_nodes((0..3).map(node).collect()).with_bucket(BUCKET, bucket)
    }

    #[test]
    fn who_is_chosen_holds_all_that_was_acknowledged_until_it_is() {
        let replicas = Replicas::of(&plan(), 0);
        for seed in seeds(500) {
            let members = RefCell::new(Model::new(seed));
            let standing = ask_replicas_behind(&plan(), &replicas, false, &members).unwrap();
            let chosen = standing.furthest(BUCKET, VBID, &REPLICAS).unwrap();
            let mut model = members.into_inner();
            model.pass();
            let held_seqno = model.copies[&chosen].seqno_of_new_branch(model.promoted_at);
            assert!(held_seqno >= model.acknowledged_seqno, "seed {seed}");
        }
    }

    #[test]
    fn nobody_guesses_about_a_member_that_does_not_answer_unless_forced_to() {
        let replicas = Replicas::of(&plan(), 0);
        let members = RefCell::new(Model::new(1));
        members.borrow_mut().silent.insert(2);
        let refused = ask_replicas(&replicas, false, &members).err().unwrap().to_string();
        for said in ["nothing is changed", "2 does not answer", "bring them back", "--force"] {
            assert!(refused.contains(said), "{said}: {refused}");
        }
        let forced = ask_replicas(&replicas, true, &members).unwrap();
        assert_eq!(forced.silent(), ["2 does not answer"]);
        assert_eq!(forced.furthest(BUCKET, VBID, &REPLICAS), Some(1));
        members.borrow_mut().silent.clear();
        let heard = ask_replicas(&replicas, false, &members).unwrap();
        assert!(heard.silent().is_empty() && heard.furthest(BUCKET, VBID, &REPLICAS).is_some());
    }
}
