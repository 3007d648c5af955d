//! Users of several nodes, which change them at the same time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use auth::{Editor, Role, UserRegistry, Users, UsersEdit, UsersEditError};
use cluster::NodeAddress;
use executor::DeterministicPool;
use node::{Copies, Node, PeerLogin, Peers, UsersOffer};

use crate::{host, start_three};

/// Runs of tasks between two deadlines.
const RUNS_MAX: usize = 100_000;
const ADMIN: &str = "Administrator";

/// The users of the nodes that answer, by host.
#[derive(Default)]
struct Answering {
    users: BTreeMap<String, Arc<Users>>,
    silent: BTreeSet<String>,
    /// The next offer to this host comes behind another user that is made there.
    is_faster: Option<(String, &'static str)>,
    /// The next answer does not arrive.
    loses_answer: bool,
}

#[derive(Clone, Default)]
struct Others(Arc<Mutex<Answering>>);

impl Others {
    fn lock(&self) -> MutexGuard<'_, Answering> {
        self.0.lock().unwrap()
    }
}

impl Peers for Others {
    fn copies(&self, _: &NodeAddress, _: &PeerLogin) -> anyhow::Result<Copies> {
        anyhow::bail!("nobody asks for copies")
    }

    fn exchange_manifest(&self, _: &NodeAddress, _: &PeerLogin, _: &str) -> anyhow::Result<String> {
        anyhow::bail!("nobody asks for manifests")
    }

    fn exchange_users(
        &self,
        node: &NodeAddress,
        login: &PeerLogin,
        offer: UsersOffer<'_>,
    ) -> anyhow::Result<String> {
        let mut world = self.lock();
        anyhow::ensure!(!world.silent.contains(&node.host), "no answer");
        let users = Arc::clone(&world.users[&node.host]);
        assert!(users.check_password(&login.user, login.password.as_bytes()));
        let theirs = UserRegistry::from_json(offer.registry)?;
        let taken = match offer.follows {
            None => users.adopt(theirs),
            Some(revision) => {
                if let Some((_, user)) = world.is_faster.take_if(|(host, _)| *host == node.host) {
                    users.edit(&put(&users, user, ""), Editor::Admin).unwrap();
                }
                let taken = users.adopt_behind(revision, theirs);
                anyhow::ensure!(!std::mem::take(&mut world.loses_answer), "the answer is lost");
                taken
            }
        };
        taken.map_err(anyhow::Error::msg)?;
        Ok(users.to_json())
    }
}

fn put(users: &Users, user: &str, roles: &str) -> UsersEdit {
    UsersEdit::PutUser {
        user: user.to_owned(),
        password: Some(users.hash(b"secret", 0)),
        full_name: String::new(),
        roles: Role::parse_all(roles).unwrap(),
        groups: Vec::new(),
        limits: auth::UserLimits::default(),
    }
}

/// Three nodes.
struct Cluster {
    others: Others,
    nodes: Vec<(Node, DeterministicPool)>,
}

impl Cluster {
    fn new() -> Self {
        let others = Others::default();
        let peers: Arc<dyn Peers> = Arc::new(others.clone());
        let nodes = start_three(&peers, |host, node| {
            others.lock().users.insert(host, Arc::clone(node.users()));
        });
        Self { others, nodes }
    }

    /// Makes a user on a node, counted from 0. Returns who does not know of it yet.
    fn put(&self, index: usize, user: &str) -> Result<Vec<String>, UsersEditError> {
        let node = &self.nodes[index].0;
        node.membership().edit_users(&put(node.users(), user, "data_reader[*]"), Editor::Admin)
    }

    /// The users of each node but the administrator.
    fn names(&self) -> Vec<Vec<String>> {
        let names = |(node, _): &(Node, DeterministicPool)| {
            let mut names = node.users().names();
            names.retain(|name| name != ADMIN);
            names
        };
        self.nodes.iter().map(names).collect()
    }

    fn set_silent(&self, silent: &[u8]) {
        self.others.lock().silent = silent.iter().map(|index| host(*index).to_string()).collect();
    }

    /// Lets the nodes try again what is left.
    fn wait(&mut self) {
        for _ in 0..20 {
            for (_, pool) in &mut self.nodes {
                pool.advance(Duration::from_millis(500), RUNS_MAX);
            }
        }
    }
}

#[test]
fn a_user_that_is_made_on_any_node_is_known_on_all() {
    let cluster = Cluster::new();
    for (index, user) in ["a", "b", "c"].iter().enumerate() {
        assert_eq!(cluster.put(index, user).unwrap(), Vec::<String>::new());
    }
    assert_eq!(cluster.names(), vec![vec!["a", "b", "c"]; 3]);
    let node = &cluster.nodes[1].0;
    let removal = UsersEdit::RemoveUser("a".to_owned());
    node.membership().edit_users(&removal, Editor::Admin).unwrap();
    assert_eq!(cluster.names(), vec![vec!["b", "c"]; 3]);
}

#[test]
fn who_is_silent_is_named_and_hears_of_it_later() {
    let mut cluster = Cluster::new();
    cluster.set_silent(&[1]);
    assert_eq!(cluster.put(2, "a").unwrap(), ["n1"]);
    let knows = vec!["a".to_owned()];
    assert_eq!(cluster.names(), [vec![], knows.clone(), knows.clone()]);
    cluster.set_silent(&[]);
    cluster.wait();
    assert_eq!(cluster.names(), vec![knows; 3]);
}

#[test]
fn of_two_changes_at_a_time_the_one_comes_behind_the_other() {
    let cluster = Cluster::new();
    cluster.others.lock().is_faster = Some((host(1).to_string(), "first"));
    assert_eq!(cluster.put(2, "second").unwrap(), Vec::<String>::new());
    assert_eq!(cluster.names(), vec![vec!["first", "second"]; 3]);
}

#[test]
fn a_change_whose_answer_is_lost_is_made_once() {
    let cluster = Cluster::new();
    cluster.others.lock().loses_answer = true;
    assert_eq!(cluster.put(2, "a").unwrap(), Vec::<String>::new());
    assert_eq!(cluster.names(), vec![vec!["a"]; 3]);
    let revisions = cluster.nodes.iter().map(|(node, _)| node.users().registry().revision);
    assert_eq!(revisions.collect::<BTreeSet<u64>>().len(), 1);
}

#[test]
fn the_user_as_whom_nodes_log_in_to_each_other_stays_what_it_is() {
    let cluster = Cluster::new();
    let node = &cluster.nodes[0].0;
    cluster.put(0, "other").unwrap();
    let other = put(node.users(), "other", "admin");
    node.membership().edit_users(&other, Editor::Admin).unwrap();
    let password = node.users().hash(b"another", 0);
    for edit in [
        UsersEdit::RemoveUser(ADMIN.to_owned()),
        put(node.users(), ADMIN, "ro_admin"),
        UsersEdit::SetPassword(ADMIN.to_owned(), password),
    ] {
        let refused = node.membership().edit_users(&edit, Editor::Admin).unwrap_err();
        assert!(matches!(refused, UsersEditError::Invalid(..)), "{edit:?}: {refused:?}");
    }
    assert!(node.users().check_password(ADMIN, b"password"));
}
