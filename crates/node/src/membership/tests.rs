//! A node's part in plans that follow each other.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use bucket::{Bucket, BucketConfig, BucketType, NewRole, Persistence, Surroundings};
use cluster::{BucketPlan, ExternalAddress};
use document::{Vbid, VbucketState};
use executor::{ExecutorPool, PoolOptions};
use platform::Files;
use platform::simulated::{Call, Fault, FaultError, SimulatedFiles};
use platform::{Clock, Entropy};
use server::Mailboxes;

use super::*;
use crate::bucket_settings::BucketSettings;
use crate::buckets::NodeBucket;
use crate::document_access::Waiters;
use crate::kept_files::KeptFiles;
use crate::own_setup::OwnSetupError;
use crate::peer_copies::{Copies, Held};
use crate::remembered_map::Remembered;

const DIRECTORY: &str = "/data/bucket";
const BUCKET: &str = "default";

/// The node n_0 with four vBuckets on disk. Revision 1 of the map has all of them active there.
struct Member {
    membership: Membership,
    bucket: Bucket,
    pool: ExecutorPool,
    files: SimulatedFiles,
}

impl Member {
    fn new() -> Self {
        let member = Self::open(SimulatedFiles::new());
        let first = plan(1, 2, [[Some(0), None]; 4]);
        assert_eq!(member.carry_out(&first), CarriedOut::Done);
        member
    }

    fn open(files: SimulatedFiles) -> Self {
        Self::of_type(files, BucketType::Couchbase)
    }

    fn of_type(files: SimulatedFiles, bucket_type: BucketType) -> Self {
        let clock = Clock::real();
        let pool = ExecutorPool::start(clock.clone(), PoolOptions::for_cpus(1)).unwrap();
        let waiters = Arc::new(Waiters::new(Mailboxes::for_workers(1)));
        let surroundings = Surroundings {
            clock: clock.clone(),
            files: Arc::new(files.clone()),
            pool: pool.clone(),
            completions: waiters.clone(),
            entropy: Entropy::simulated(1),
        };
        let config = BucketConfig {
            vbucket_count: 4,
            bucket_type: Some(bucket_type),
            persistence: Persistence::Files,
            ..BucketConfig::named(BUCKET)
        };
        let bucket = Bucket::open(surroundings, config, Path::new(DIRECTORY)).unwrap();
        assert!(bucket.wait_until_serving(Duration::from_secs(20)));
        let PlannedNode { name, address } = node(0);
        let [cluster_uuid, node_uuid] = [(); 2].map(|()| Uuid::random(&Entropy::real()));
        let identity = Identity { name, address, cluster_uuid, node_uuid };
        let path = Path::new("/data/cluster-map.json").to_path_buf();
        let remembered = RememberedMap::new(Arc::new(files.clone()), path, BUCKET);
        let buckets = NodeBuckets::of(
            vec![NodeBucket::new(bucket.clone(), BucketSettings::default(), &waiters)],
            BUCKET,
        );
        let path = Path::new("/data/own-setup.json").to_path_buf();
        let own_setup = OwnSetupFile::new(Arc::new(KeptFiles::new(Arc::new(files.clone()))), path);
        let membership = Membership::new(identity, &buckets, remembered, own_setup, clock);
        let membership = membership.unwrap();
        Self { membership, bucket, pool, files }
    }

    /// The node stops, `meanwhile` happens to its disk, and it starts.
    fn restart(self, meanwhile: impl FnOnce(&SimulatedFiles)) -> Self {
        let files = self.files.clone();
        drop(self);
        meanwhile(&files);
        Self::open(files)
    }

    /// The vBuckets that are not what the plan says, with what they are to be.
    fn pending(&self) -> Vec<(u16, &'static str)> {
        self.membership
            .pending(BUCKET)
            .iter()
            .map(|pending| (pending.vbid, pending.wanted))
            .collect()
    }

    fn carry_out(&self, plan: &ClusterPlan) -> CarriedOut {
        self.membership.carry_out(plan)
    }

    /// The role of each vBucket; `None` for one that is not here.
    fn states(&self) -> Vec<Option<VbucketState>> {
        let state = |number| {
            let mut state = None;
            self.bucket.with_vbucket(Vbid(number), |vb| state = Some(vb.state()));
            state
        };
        (0..4).map(state).collect()
    }

    fn topology(&self, number: u16) -> Vec<Vec<Option<String>>> {
        let mut topology = Vec::new();
        self.bucket.with_vbucket(Vbid(number), |vbucket| topology.clone_from(vbucket.topology()));
        topology
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        assert!(std::thread::panicking() || self.bucket.shut_down().is_ok());
        self.pool.shutdown();
    }
}

fn node(index: u16) -> PlannedNode {
    let address = NodeAddress {
        host: "127.0.0.1".to_owned(),
        data_port: 12000 + 2 * index,
        management_port: 9000 + index,
        tls: None,
        external: None,
    };
    PlannedNode { name: format!("n_{index}"), address }
}

fn plan(revision: i64, node_count: u16, chains: [[Option<usize>; 2]; 4]) -> ClusterPlan {
    plan_of(revision, node_count, &chains)
}

fn plan_of(revision: i64, node_count: u16, chains: &[[Option<usize>; 2]]) -> ClusterPlan {
    let chains = chains.iter().map(|chain| chain.to_vec()).collect();
    let bucket = BucketPlan { uuid: None, settings: None, replica_count: 1, chains };
    let plan = ClusterPlan::of_nodes((0..node_count).map(node).collect());
    ClusterPlan { revision: Revision { epoch: 1, revision }, ..plan.with_bucket(BUCKET, bucket) }
}

const ACTIVE: Option<VbucketState> = Some(VbucketState::Active);
const REPLICA: Option<VbucketState> = Some(VbucketState::Replica);
const DEAD: Option<VbucketState> = Some(VbucketState::Dead);

#[test]
fn vbuckets_take_up_the_roles_of_the_plan_and_others_are_deleted() {
    let member = Member::new();
    let (zero, one, two) = (Some(0), Some(1), Some(2));
    let first = plan(2, 3, [[zero, one], [one, zero], [one, two], [zero, None]]);
    for _ in 0..2 {
        assert_eq!(member.carry_out(&first), CarriedOut::Done, "twice does no harm");
        assert_eq!(member.states(), [ACTIVE, REPLICA, None, ACTIVE]);
    }
    let name = |name: &str| Some(name.to_owned());
    assert_eq!(member.topology(0), [vec![name("n_0"), name("n_1")]]);
    assert_eq!(member.topology(3), [vec![name("n_0"), None]]);
    let second = plan(3, 3, [[one, zero], [zero, one], [zero, two], [zero, one]]);
    assert_eq!(member.carry_out(&second), CarriedOut::Done);
    assert_eq!(member.states(), [REPLICA, ACTIVE, ACTIVE, ACTIVE]);
    assert_eq!(member.topology(3), [vec![name("n_0"), name("n_1")]]);
    assert_eq!(member.membership.plan(), second);
    assert_eq!(member.membership.cluster_map().this_node, zero);
}

#[test]
fn a_node_alone_says_what_it_was_told_and_one_of_a_cluster_what_its_map_says() {
    let outside = || ExternalAddress { hostname: "outside".to_owned(), ports: BTreeMap::new() };
    let member = Member::open(SimulatedFiles::new());
    let told = |member: &Member| {
        let map = member.membership.cluster_map();
        assert_eq!(map.nodes, std::slice::from_ref(&map.this_address), "it is the only one");
        (map.name, map.this_address.host, map.this_address.external)
    };
    let before = member.membership.cluster_map().revision;
    member.membership.rename_host("inside").unwrap();
    member.membership.set_external_address(Some(outside())).unwrap();
    member.membership.set_cluster_name("mine").unwrap();
    assert!(member.membership.cluster_map().revision > before, "clients take it for newer");
    let all = ("mine".to_owned(), "inside".to_owned(), Some(outside()));
    assert_eq!(told(&member), all);
    let wrong = member.membership.rename_host("a b");
    assert!(matches!(wrong, Err(OwnSetupError::Invalid(_))), "{wrong:?}");
    let member = member.restart(|_| {});
    assert_eq!(told(&member), all);
    let both = plan(9, 2, [[Some(0), Some(1)]; 4]);
    assert_eq!(member.carry_out(&both), CarriedOut::Done);
    let map = member.membership.cluster_map();
    assert_eq!((map.name.as_str(), &map.this_address), ("settee", &node(0).address));
    assert_eq!(map.nodes, [node(0).address, node(1).address]);
    let refused = member.membership.set_external_address(None);
    assert!(matches!(refused, Err(OwnSetupError::Invalid(_))), "{refused:?}");
}

#[test]
fn what_a_disk_refused_and_would_not_put_back_is_put_back_when_it_can_be() {
    let member = Member::open(SimulatedFiles::new());
    member.membership.set_cluster_name("mine").unwrap();
    let call = Some(Call::SyncDirectory);
    member.files.fail(Fault { call, number: 1, error: FaultError::Io, from_then_on: true });
    assert!(member.membership.set_cluster_name("refused").is_err());
    assert!(member.membership.has_more_to_try());
    member.membership.try_again();
    assert!(member.membership.has_more_to_try(), "the disk takes nothing yet");
    member.files.heal();
    member.membership.try_again();
    assert!(!member.membership.has_more_to_try());
    let member = member.restart(|_| {});
    assert_eq!(member.membership.cluster_map().name, "mine");
}

#[test]
fn a_node_that_is_given_up_keeps_what_it_has_and_serves_nothing() {
    let member = Member::new();
    let both = plan(2, 2, [[Some(0), Some(1)]; 4]);
    assert_eq!(member.carry_out(&both), CarriedOut::Done);
    let without = both.failed_over(0, |_, _, _| 0).unwrap();
    assert_eq!(member.carry_out(&without), CarriedOut::Done);
    assert_eq!(member.states(), [DEAD; 4]);
    assert_eq!(member.membership.cluster_map().this_node, None);
    let again = without.joined(node(0)).unwrap();
    assert_eq!(member.carry_out(&again), CarriedOut::Done);
    assert_eq!(member.states(), [REPLICA; 4]);
}

#[test]
fn what_no_node_has_active_is_kept_by_a_node_that_comes_back_until_one_has() {
    let member = Member::new();
    let first = plan(2, 2, [[Some(0), None], [Some(0), None], [Some(0), Some(1)], [Some(0), None]]);
    assert_eq!(member.carry_out(&first), CarriedOut::Done);
    let without = first.failed_over(0, |_, _, _| 1).unwrap();
    assert_eq!(member.carry_out(&without), CarriedOut::Done);
    let again = without.joined(node(0)).unwrap();
    assert_eq!(again.buckets[BUCKET].chain(0), [None, None], "nobody had a copy");
    assert_eq!(member.carry_out(&again), CarriedOut::Done);
    assert_eq!(member.states(), [DEAD, DEAD, REPLICA, DEAD]);
    let member = member.restart(|_| {});
    assert_eq!(member.carry_out(&again), CarriedOut::Done);
    assert_eq!(member.states(), [DEAD, DEAD, REPLICA, DEAD]);
    assert_eq!(member.pending(), []);
    // In `again` the other node is the first.
    let (other, this) = (Some(0), Some(1));
    let mut found = again;
    found.revision.revision += 1;
    let chains = [[this, None], [None, other], [other, this], [other, None]];
    found.buckets.get_mut(BUCKET).unwrap().chains = chains.map(|it| it.to_vec()).to_vec();
    assert_eq!(member.carry_out(&found), CarriedOut::Done);
    assert_eq!(member.states(), [ACTIVE, DEAD, REPLICA, None]);
}

#[test]
fn a_plan_that_is_older_or_contradicts_changes_nothing() {
    let member = Member::new();
    let current = plan(5, 2, [[Some(0), Some(1)]; 4]);
    assert_eq!(member.carry_out(&current), CarriedOut::Done);
    let other = |revision| plan(revision, 2, [[Some(1), Some(0)]; 4]);
    assert_eq!(member.carry_out(&other(4)), CarriedOut::Older(current.revision));
    assert_eq!(member.carry_out(&other(5)), CarriedOut::Another(current.revision));
    let small = plan_of(6, 2, &[[Some(0), None]; 2]);
    let one_more = other(6).with_bucket("more", BucketPlan::balanced(2, 1, 4));
    let one_less = ClusterPlan { buckets: BTreeMap::new(), ..other(6) };
    for wrong in [small, one_more, one_less] {
        assert!(matches!(member.carry_out(&wrong), CarriedOut::Refused(_)));
    }
    assert_eq!((member.states(), member.membership.plan()), (vec![ACTIVE; 4], current));
}

#[test]
fn a_node_alone_is_its_own_majority() {
    let member = Member::open(SimulatedFiles::new());
    let dead = NewRole { vbid: Vbid(1), state: VbucketState::Dead, topology: None };
    assert!(member.bucket.set_vbucket_states(vec![dead]).is_empty());
    member.membership.serve_alone();
    assert_eq!(member.states(), [ACTIVE, DEAD, ACTIVE, ACTIVE], "roles stay what they were");
    assert_eq!(member.topology(0), [vec![Some("n_0".to_owned())]]);
}

#[test]
fn a_map_that_comes_before_a_node_serves_alone_keeps_its_chains() {
    let member = Member::new().restart(|_| {});
    let both = plan(2, 2, [[Some(0), Some(1)]; 4]);
    assert_eq!(member.carry_out(&both), CarriedOut::Done);
    // The start goes on, which knew of no map.
    member.membership.serve_alone();
    let chain = ["n_0", "n_1"].map(|name| Some(name.to_owned())).to_vec();
    assert!((0..4).all(|number| member.topology(number) == [chain.clone()]));
}

/// A bit of the file's header is another one.
fn damage(files: &SimulatedFiles, vbid: u16) {
    let path = Path::new(DIRECTORY).join(format!("{vbid}.couch.1"));
    let mut content = files.read_all(&path).unwrap();
    let last = content.len() - 20;
    content[last] ^= 1;
    files.replace_all(&path, &content).unwrap();
}

#[test]
fn a_damaged_file_stops_neither_a_start_nor_a_plan() {
    let (zero, one) = (Some(0), Some(1));
    let first = plan(2, 2, [[zero, one], [zero, one], [one, zero], [zero, one]]);
    let member = Member::new();
    assert_eq!(member.carry_out(&first), CarriedOut::Done);
    let member = member.restart(|files| damage(files, 1));
    for _ in 0..2 {
        assert_eq!(member.carry_out(&first), CarriedOut::Done);
        assert_eq!(member.states(), [ACTIVE, None, REPLICA, ACTIVE]);
        assert_eq!(member.pending(), [(1, "active")]);
        assert!(member.membership.pending(BUCKET)[0].reason.contains("damaged"));
        member.membership.try_again();
    }
    let second = plan(3, 2, [[one, zero], [zero, one], [zero, one], [one, None]]);
    assert_eq!(member.carry_out(&second), CarriedOut::Done);
    assert_eq!(member.states(), [REPLICA, None, ACTIVE, None]);
    assert_eq!((member.membership.plan(), member.pending()), (second, vec![(1, "active")]));
    let without = plan(4, 2, [[one, zero], [one, None], [zero, one], [one, None]]);
    assert_eq!(member.carry_out(&without), CarriedOut::Done);
    assert_eq!(member.pending(), [], "it is nothing to this node");
    let path = Path::new(DIRECTORY).join("1.couch.1");
    assert!(member.files.read_all(&path).is_ok(), "it may be all that there is");
    let third = plan(5, 2, [[one, zero]; 4]);
    assert_eq!(member.carry_out(&third), CarriedOut::Done);
    assert_eq!((member.states(), member.pending()), (vec![REPLICA; 4], vec![]), "built anew");
}

#[test]
fn a_damaged_copy_is_not_built_anew_while_there_is_nobody_to_build_it_from() {
    let member = Member::new().restart(|files| damage(files, 1));
    let has_set_aside = |member: &Member| {
        let names = member.files.list(Path::new(DIRECTORY)).unwrap();
        names.iter().any(|name| name.ends_with(".damaged"))
    };
    let fence = plan(2, 2, [[None, Some(0)]; 4]);
    assert_eq!(member.carry_out(&fence), CarriedOut::Done);
    assert_eq!(member.pending(), [(1, "replica")]);
    assert!(!has_set_aside(&member) && member.states()[1].is_none());
    assert_eq!(member.states()[0], Some(VbucketState::Replica));
    let followed = plan(3, 2, [[Some(1), Some(0)]; 4]);
    assert_eq!(member.carry_out(&followed), CarriedOut::Done);
    assert_eq!((member.pending(), member.states()[1]), (vec![], Some(VbucketState::Replica)));
    assert!(has_set_aside(&member));
}

#[test]
fn a_plan_without_an_active_copy_waits_for_a_damaged_one_that_is_built_anew() {
    let member = Member::new().restart(|files| damage(files, 1));
    let fence = plan(2, 2, [[None, Some(0)]; 4]);
    std::thread::scope(|scope| {
        let is_wanted = || {
            let told = scope.spawn(|| member.carry_out(&fence));
            // Time enough for one that would not wait.
            (0..100_000).take_while(|_| !told.is_finished()).for_each(|_| std::thread::yield_now());
            true
        };
        member.bucket.rebuild_replica(Vbid(1), is_wanted).unwrap();
    });
    assert_eq!((member.pending(), member.states()), (vec![], vec![REPLICA; 4]));
}

#[test]
fn what_a_full_disk_leaves_of_a_plan_is_tried_again() {
    let (zero, one) = (Some(0), Some(1));
    let member = Member::new();
    assert_eq!(member.carry_out(&plan(2, 2, [[one, zero]; 4])), CarriedOut::Done);
    member.files.set_capacity(0);
    let promoted = plan(3, 2, [[zero, one], [zero, one], [one, zero], [one, None]]);
    assert_eq!(member.carry_out(&promoted), CarriedOut::Done);
    assert_eq!(member.membership.plan(), promoted, "clients are told where vBuckets are");
    assert_eq!(member.states(), [ACTIVE, ACTIVE, REPLICA, DEAD]);
    let left = [(0, "active"), (1, "active"), (3, "dead")];
    assert_eq!(member.pending(), left);
    member.membership.try_again();
    assert_eq!(member.pending(), left);
    member.files.set_capacity(1 << 30);
    member.membership.try_again();
    assert_eq!((member.pending(), member.states()[3]), (vec![], None), "deleted as well");
}

#[test]
fn roles_that_are_left_do_not_wait_for_nodes_that_do_not_answer_nor_does_a_stop() {
    let (zero, one) = (Some(0), Some(1));
    let member = Member::new();
    let found = Arc::new(Mutex::new(Vec::new()));
    let (finding, bucket) = (Arc::clone(&found), member.bucket.clone());
    member.membership.exchange_with(Box::new(move |_, _, _| {
        let mut state = None;
        bucket.with_vbucket(Vbid(0), |vbucket| state = Some(vbucket.state()));
        finding.lock().unwrap().push(state);
        anyhow::bail!("no answer in time")
    }));
    assert_eq!(member.carry_out(&plan(2, 2, [[one, zero]; 4])), CarriedOut::Done);
    member.files.set_capacity(0);
    assert_eq!(member.carry_out(&plan(3, 2, [[zero, one]; 4])), CarriedOut::Done);
    assert_eq!(member.pending().len(), 4);
    member.files.set_capacity(1 << 30);
    member.membership.try_again();
    assert_eq!(*found.lock().unwrap(), [ACTIVE], "it serves before the other one is asked");
    assert_eq!(member.pending(), []);
    assert!(member.membership.has_more_to_try(), "the other one is asked again");
    member.membership.retries.stop();
    member.membership.try_again();
    assert_eq!(found.lock().unwrap().len(), 1, "whoever stops asks nobody");
    assert!(member.membership.has_more_to_try());
}

/// What other nodes answer, if they do.
type SharedAnswer = Arc<Mutex<Option<Copies>>>;

/// The ephemeral node n_0, which starts with `plan`, and what n_1 and others answer it.
fn start_ephemeral(plan: &ClusterPlan) -> (Member, SharedAnswer) {
    start(plan, Member::of_type(SimulatedFiles::new(), BucketType::Ephemeral))
}

fn start(plan: &ClusterPlan, member: Member) -> (Member, SharedAnswer) {
    let answer = Arc::new(Mutex::new(None));
    let answers = Arc::clone(&answer);
    member.membership.ask_with(Box::new(move |_, _| {
        let answer: Option<Copies> = answers.lock().unwrap().clone();
        answer.context("no route to it")
    }));
    assert_eq!(member.carry_out(plan), CarriedOut::Done);
    (member, answer)
}

fn copies<const COUNT: usize>(high_seqnos: [(u16, u64); COUNT]) -> Copies {
    let held = |high_seqno| Held { is_whole: true, high_seqno, ..Held::default() };
    high_seqnos.map(|(vbid, high_seqno)| (vbid, held(high_seqno))).into()
}

#[test]
fn an_ephemeral_vbucket_does_not_begin_empty_while_others_may_hold_its_documents() {
    let (zero, one) = (Some(0), Some(1));
    let first = plan(2, 2, [[zero, one], [zero, one], [one, zero], [zero, None]]);
    let (member, answer) = start_ephemeral(&first);
    let waits = |names: &[&str]| {
        let reasons: Vec<String> =
            member.membership.pending(BUCKET).into_iter().map(|pending| pending.reason).collect();
        reasons.len() == names.len()
            && reasons.iter().zip(names).all(|(reason, name)| reason.contains(name))
    };
    assert_eq!(member.states(), [DEAD, DEAD, REPLICA, ACTIVE], "nobody else has the last one");
    assert_eq!(member.pending(), [(0, "active"), (1, "active")]);
    member.membership.try_again();
    assert!(waits(&["n_1, which may hold", "n_1, which may hold"]), "n_1 is silent");
    *answer.lock().unwrap() = Some(copies([(0, 7), (1, 0), (2, 9)]));
    member.membership.try_again();
    assert_eq!(member.states(), [DEAD, ACTIVE, REPLICA, ACTIVE], "n_1 has nothing of 1");
    assert!(waits(&["n_1 holds a replica"]));
    let same_roles = ClusterPlan { revision: Revision { epoch: 1, revision: 3 }, ..first };
    assert_eq!(member.carry_out(&same_roles), CarriedOut::Done);
    assert_eq!(member.pending(), [(0, "active")], "a map that decides nothing about it");
    let promoted = plan(4, 2, [[one, zero], [zero, one], [one, zero], [zero, None]]);
    assert_eq!(member.carry_out(&promoted), CarriedOut::Done);
    assert_eq!(member.states(), [REPLICA, ACTIVE, REPLICA, ACTIVE]);
    assert_eq!(member.pending(), []);
}

#[test]
fn an_ephemeral_vbucket_begins_empty_where_nobody_holds_anything_or_a_map_says_so() {
    let (zero, one) = (Some(0), Some(1));
    let (member, answer) = start_ephemeral(&plan(2, 2, [[zero, one]; 4]));
    *answer.lock().unwrap() = Some(copies([(0, 0), (1, 3), (2, 3)]));
    member.membership.try_again();
    assert_eq!(member.states(), [ACTIVE, DEAD, DEAD, ACTIVE], "a new cluster has nothing");
    let alone = plan(3, 2, [[zero, one], [zero, None], [zero, one], [zero, one]]);
    assert_eq!(member.carry_out(&alone), CarriedOut::Done);
    assert_eq!(member.states(), [ACTIVE, ACTIVE, DEAD, ACTIVE], "the map gives the replica up");
    let back = plan(4, 2, [[one, zero], [zero, one], [one, zero], [zero, one]]);
    assert_eq!(member.carry_out(&back), CarriedOut::Done);
    let again = plan(5, 2, [[zero, one]; 4]);
    assert_eq!(member.carry_out(&again), CarriedOut::Done);
    assert_eq!(member.states(), [ACTIVE; 4], "a running node is promoted as ever");
}

#[test]
fn others_are_asked_about_the_bucket_of_the_plan_and_no_other_of_its_name() {
    let mut first = plan(2, 2, [[Some(0), Some(1)]; 4]);
    let uuid = Some(Uuid::random(&Entropy::simulated(2)));
    first.buckets.get_mut(BUCKET).unwrap().uuid = uuid;
    let member = Member::of_type(SimulatedFiles::new(), BucketType::Ephemeral);
    let asked = Arc::new(Mutex::new(Vec::new()));
    let asking = Arc::clone(&asked);
    member.membership.ask_with(Box::new(move |_, (name, uuid)| {
        asking.lock().unwrap().push((name.to_owned(), uuid));
        anyhow::bail!("the node has another bucket of that name")
    }));
    assert_eq!(member.carry_out(&first), CarriedOut::Done);
    member.membership.try_again();
    assert_eq!(*asked.lock().unwrap(), [(BUCKET.to_owned(), uuid)]);
    assert_eq!(member.states(), [DEAD; 4], "nobody has said that it holds nothing");
}

#[test]
fn a_vbucket_whose_disk_was_lost_does_not_begin_empty_while_others_may_hold_its_documents() {
    let (zero, one) = (Some(0), Some(1));
    let first = plan(2, 2, [[zero, one], [zero, one], [one, zero], [zero, None]]);
    let (member, answer) = start(&first, Member::open(SimulatedFiles::new()));
    assert_eq!(member.states(), [DEAD, DEAD, REPLICA, ACTIVE]);
    // What waits is remembered as such, whatever ends the node.
    let files = member.files.clone();
    drop(member);
    let (member, again) = start(&first, Member::open(files));
    assert_eq!(member.states(), [DEAD, DEAD, REPLICA, ACTIVE]);
    for answer in [answer, again] {
        *answer.lock().unwrap() = Some(copies([(0, 7), (1, 0), (2, 9)]));
    }
    member.membership.try_again();
    assert_eq!(member.states(), [DEAD, ACTIVE, REPLICA, ACTIVE], "n_1 has nothing of 1");
    // Whom a map has made active once, however empty, is active again at once.
    let (member, _silent) = start(&first, member.restart(|_| ()));
    assert_eq!(member.states(), [DEAD, ACTIVE, REPLICA, ACTIVE]);
}

#[test]
fn a_plan_is_remembered_before_it_is_carried_out_or_as_soon_as_the_disk_takes_it() {
    let member = Member::new();
    let text = || {
        let content = member.files.read_all(Path::new("/data/cluster-map.json")).unwrap();
        String::from_utf8(content).unwrap()
    };
    assert!(text().contains(r#""node":"n_0""#) && text().contains(r#""rev":[1,1]"#), "{}", text());
    member.files.set_capacity(0);
    let second = plan(2, 2, [[Some(0), Some(1)]; 4]);
    assert_eq!(member.carry_out(&second), CarriedOut::Done);
    assert!(text().contains(r#""rev":[1,1]"#));
    assert_eq!(member.membership.unsettled(), [UNREMEMBERED], "a crash brings the other one back");
    member.files.set_capacity(1 << 30);
    member.membership.try_again();
    assert!(text().contains(r#""rev":[1,2]"#), "{}", text());
    assert!(member.membership.unsettled().is_empty());
    member.files.set_capacity(0);
    let third = plan(3, 2, [[Some(0), Some(1)]; 4]);
    assert_eq!(member.carry_out(&third), CarriedOut::Done);
    member.files.set_capacity(1 << 30);
    assert_eq!(member.carry_out(&third), CarriedOut::Done);
    assert!(member.membership.unsettled().is_empty(), "who hands it over again need not wait");
}

/// Deletes no bucket.
struct KeepsAll;

impl BucketKeeper for KeepsAll {
    fn make(&self, _: &str, _: &BucketPlan, _: bool) -> Result<Option<NodeBucket>, BucketRefusal> {
        Ok(None)
    }

    fn remove(&self, _: &[&str]) -> Result<(), BucketRefusal> {
        Err(BucketRefusal::Failed("the disk does not take the mark".to_owned()))
    }

    fn adapt(&self, _: &str, _: &BTreeMap<String, String>, _: bool) -> Result<(), BucketRefusal> {
        Ok(())
    }
}

/// Has something left of whatever is to be made.
struct MakesLater;

impl BucketKeeper for MakesLater {
    fn make(&self, _: &str, _: &BucketPlan, _: bool) -> Result<Option<NodeBucket>, BucketRefusal> {
        Err(BucketRefusal::Failed("something is left".to_owned()))
    }

    fn remove(&self, _: &[&str]) -> Result<(), BucketRefusal> {
        Ok(())
    }

    fn adapt(&self, _: &str, _: &BTreeMap<String, String>, _: bool) -> Result<(), BucketRefusal> {
        Ok(())
    }
}

#[test]
fn what_cannot_be_made_now_may_be_asked_for_again() {
    let keeper: Arc<dyn BucketKeeper> = Arc::new(MakesLater);
    let member = Member::new();
    member.membership.keep_buckets_with(Arc::downgrade(&keeper));
    let uuid = Uuid::random(&Entropy::real());
    let next = member.membership.plan().with_new_bucket("orders", uuid, BTreeMap::new(), 0, 4);
    let tried = member.membership.try_out(&next);
    assert_eq!(tried, CarriedOut::NotNow("something is left".to_owned()));
}

#[test]
fn a_deletion_that_was_refused_is_not_what_a_start_finds() {
    let keeper: Arc<dyn BucketKeeper> = Arc::new(KeepsAll);
    // The map with the deletion comes to be the file's content, and that is no success.
    let is_written_all_the_same = (1, FaultError::LateRename);
    let is_not_taken_back = (2, FaultError::Io);
    let both = [is_written_all_the_same, is_not_taken_back];
    for faults in [&[][..], &both[..1], &both[1..], &both] {
        let member = Member::open(SimulatedFiles::new());
        member.membership.keep_buckets_with(Arc::downgrade(&keeper));
        let current = plan(2, 1, [[Some(0), None]; 4]);
        assert_eq!(member.carry_out(&current), CarriedOut::Done);
        for &(number, error) in faults {
            let call = Some(Call::Rename);
            member.files.fail(Fault { call, number, error, from_then_on: false });
        }
        let without = current.without_bucket(BUCKET).unwrap();
        assert!(matches!(member.carry_out(&without), CarriedOut::Refused(_)), "{faults:?}");
        let is_tried_again = member.membership.retries.patience().is_some();
        assert_eq!(is_tried_again, faults.contains(&is_not_taken_back), "{faults:?}");
        if is_tried_again {
            member.membership.try_again();
        }
        let Remembered { plan, removed, .. } = member.membership.remembered.last().unwrap();
        assert_eq!((&plan, removed), (&current, Vec::<String>::new()), "{faults:?}");
        assert_eq!(member.membership.plan(), current);
    }
}
