//! The node: its parts in the order in which they start, and the other way round when they stop.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{bail, ensure};
use auth::Users;
use cluster::{ClusterPlan, NodeAddress, Revision, TlsPorts};
use executor::{Owner, Shutdown};
use platform::Clock;
use replication::{FollowerLogin, Replicator};
use server::{BUCKET_COUNT_MAX, BucketAdministrator, Doors, Mailboxes, Parts};
use server::{Server, ServerOptions};
use tls::CertificateStore;

use crate::administrator::{self, Administrator};
use crate::bucket_changes::BucketChanges;
use crate::bucket_opener::{BucketOpener, Planned, check_names};
use crate::bucket_steps::BucketKeeper;
use crate::buckets::NodeBuckets;
use crate::certificate_reminder;
use crate::client_limits;
use crate::config::NodeConfig;
use crate::data_directory::DataDirectory;
use crate::doors::open_door;
use crate::kept_files::KeptFiles;
use crate::membership::{CarriedOut, Identity, Membership, RunningRetries, SharedUsers};
use crate::own_setup::OwnSetupFile;
use crate::peer_copies::{self, NodeLogin, PlanPeers};
use crate::remembered_map::{RememberedMap, StartingPlace};
use crate::temporary_directory::TemporaryDirectory;
use crate::tls_part::TlsPart;
use crate::world::World;

/// The version that clients are told. They parse it and expect one of the original's.
pub const VERSION: &str = concat!("7.6.0-settee-", env!("CARGO_PKG_VERSION"));

/// A running node: its data port serves, and it follows others. What administers it comes on top.
pub struct Node {
    config: NodeConfig,
    world: World,
    users: Arc<Users>,
    buckets: Arc<NodeBuckets>,
    membership: Arc<Membership>,
    retries: RunningRetries,
    server: Arc<Server>,
    replicator: Arc<Replicator>,
    changes: Arc<BucketChanges>,
    management_port: u16,
    /// Released last: until then no other node may open the directory.
    directory: DataDirectory,
    /// Removed behind that.
    temporary: Option<TemporaryDirectory>,
    port: u16,
    memcached_port: Option<u16>,
    tls_ports: Option<TlsPorts>,
    certificates: Option<Arc<CertificateStore>>,
    /// Whose task tells of a certificate that ends soon.
    reminder: Option<Owner>,
    /// The password, if it was said or generated at this start.
    password: Option<String>,
    password_is_new: bool,
}

impl Node {
    /// Starts a node in `world`. It accepts connections at once; documents are served as they are
    /// loaded. Others are told that its management port is `management_port`.
    pub fn start(world: World, config: NodeConfig, management_port: u16) -> anyhow::Result<Self> {
        ensure!(config.buckets.len() <= BUCKET_COUNT_MAX, "there are too many buckets");
        let open_files_limit = platform::process::raise_open_files_limit();
        let World { clock, files, network, entropy, pool, peers } = world.clone();
        let temporary =
            config.is_temporary.then(|| TemporaryDirectory::new(&*files, &config.data_dir));
        let names: Vec<&str> = config.buckets.iter().map(|bucket| bucket.name.as_str()).collect();
        let directory = DataDirectory::open(&*files, &entropy, &config.data_dir, &names)?;
        let path = directory.cluster_map();
        let remembered = RememberedMap::new(Arc::clone(&files), path, config.default_bucket());
        let before = remembered.last();
        let StartingPlace { node_name, plan } = remembered.starting_place(&config)?;
        let planned = Planned { before: before.as_ref(), now: plan.as_ref() };
        check_names(&*files, &directory.places(), &config, planned)?;
        directory.make_users_private(&*files);
        directory.warn_of_lost_users(&*files);
        let (users, administrator) =
            administrator::open_users(&*files, &entropy, &directory.users(), &config)?;
        // Before buckets are opened: a port that is taken is found before their files are touched.
        let (data, port) = open_door(&network, &config, config.port, "--port")?;
        let tls = config.tls.as_ref();
        let tls = tls.map(|tls| TlsPart::open(&world, &config, tls, &directory)).transpose()?;
        let memcached = config
            .memcached_port
            .map(|port| open_door(&network, &config, port, "--memcached-port"))
            .transpose()?;
        let mailboxes = Mailboxes::for_workers(config.threads);
        let files_max = client_limits::open_files_max(open_files_limit, config.buckets.len());
        let kept = Arc::new(KeptFiles::new(Arc::clone(&files)));
        let opener = BucketOpener::new(&world, &kept, &config, &directory, &mailboxes, files_max);
        let buckets = NodeBuckets::of(opener.open_all(&config, planned)?, config.default_bucket());
        let buckets = Arc::new(buckets);
        let users = Arc::new(users);
        users.keep_with(Box::new(administrator::UsersFile {
            kept: Arc::clone(&kept),
            path: directory.users(),
            said: administrator::SaidPassword::of(&config, &users),
        }));
        let identity = Identity {
            name: node_name.clone(),
            address: NodeAddress {
                host: config.advertised_host(),
                data_port: port,
                management_port,
                tls: tls.as_ref().map(|tls| tls.ports),
                external: None,
            },
            cluster_uuid: directory.cluster_uuid,
            node_uuid: directory.node_uuid,
        };
        let own_setup = OwnSetupFile::new(kept, directory.own_setup());
        let membership = Membership::new(identity, &buckets, remembered, own_setup, clock.clone())?;
        let membership = Arc::new(membership);
        if let Some(plan) = &plan {
            // What the files say about roles may be older than the map: nobody is to read it.
            buckets.load(&pool);
            match membership.carry_out(plan) {
                CarriedOut::Done => {}
                CarriedOut::Older(_) => bail!("the cluster map is older than this node's"),
                CarriedOut::Another(_) => bail!("the cluster map is another one than this node's"),
                CarriedOut::Refused(reason) | CarriedOut::NotNow(reason) => {
                    bail!("the cluster map cannot be used: {reason}")
                }
            }
        }
        if administrator.is_unkept {
            let kept = files.replace_or_restore(&directory.users(), users.to_json().as_bytes());
            kept.map_err(|not_replaced| not_replaced.error)?;
        }
        directory.note_users(&*files);
        let parts = Parts {
            clock,
            network,
            users: Arc::clone(&users),
            buckets: buckets.served(),
            default_bucket: config.default_bucket().to_owned(),
            cluster: membership.view(),
            pool,
            mailboxes,
        };
        let options = ServerOptions {
            limits: client_limits::server_limits(&config, open_files_limit),
            version: VERSION.to_owned(),
        };
        let (memcached, memcached_port) = memcached.unzip();
        let (tls_ports, certificates) =
            tls.as_ref().map(|tls| (tls.ports, Arc::clone(&tls.certificates))).unzip();
        let doors = Doors { data, tls: tls.map(|tls| tls.door), memcached };
        let server = Arc::new(Server::start(parts, options, doors)?);
        membership.serve_with(Arc::clone(&server));
        let login = NodeLogin {
            user: config.user.clone(),
            password: administrator.password.clone().unwrap_or_default(),
            connector: certificates.as_ref().and_then(|store| store.connector().cloned()),
        };
        let replicator = start_replicator(login.clone(), node_name, &world)?;
        let replicator = Arc::new(replicator);
        membership.replicate_with(Arc::clone(&replicator));
        let bytes_max = config.buckets_bytes_max;
        let changes = BucketChanges::new(opener, &buckets, &membership, &server, bytes_max);
        let changes = Arc::new(changes);
        let of_buckets: Arc<dyn BucketAdministrator> = changes.clone();
        // Weak, here and below: the changes hold the server and the membership, which would hold
        // them.
        server.administrate_with(Arc::downgrade(&of_buckets));
        let keeper: Arc<dyn BucketKeeper> = changes.clone();
        membership.keep_buckets_with(Arc::downgrade(&keeper));
        membership.exchange_plans_with(PlanPeers::new(Arc::clone(&peers), login.clone()));
        membership.exchange_with(peer_copies::exchanging(Arc::clone(&peers), login.clone()));
        membership.share_users(SharedUsers {
            users: Arc::clone(&users),
            node_user: config.user.clone(),
            exchange: peer_copies::exchanging_users(Arc::clone(&peers), login.clone()),
        });
        let (asked, as_whom) = (Arc::clone(&peers), login.clone());
        membership.ask_identities_with(peer_copies::asking_identities(asked, as_whom));
        membership.ask_with(peer_copies::asking(peers, login));
        // Behind everything that it asks others with, and by which it makes buckets.
        let retries = RunningRetries::start(&membership, &world)?;
        let remind =
            |store| certificate_reminder::start(&world.pool, store, certificate_reminder::warn);
        let reminder = certificates.as_ref().map(remind).transpose()?;
        let Administrator { password, password_is_new, .. } = administrator;
        Ok(Self {
            config,
            world,
            users,
            buckets,
            membership,
            retries,
            server,
            replicator,
            changes,
            management_port,
            directory,
            temporary,
            port,
            memcached_port,
            tls_ports,
            certificates,
            reminder,
            password,
            password_is_new,
        })
    }

    /// The configuration that it runs with.
    pub fn config(&self) -> &NodeConfig {
        &self.config
    }

    /// The data port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The memcached port, if there is one.
    pub fn memcached_port(&self) -> Option<u16> {
        self.memcached_port
    }

    /// Where it is reached by TLS, if it is.
    pub fn tls_ports(&self) -> Option<TlsPorts> {
        self.tls_ports
    }

    /// Its certificates, if it speaks TLS.
    pub fn certificates(&self) -> Option<&Arc<CertificateStore>> {
        self.certificates.as_ref()
    }

    /// The management port.
    pub fn management_port(&self) -> u16 {
        self.management_port
    }

    /// The administrator's password, if this start was told it or made it.
    pub fn password(&self) -> Option<&str> {
        self.password.as_deref()
    }

    /// Whether the password was generated at this start, and has to be printed.
    pub fn password_is_new(&self) -> bool {
        self.password_is_new
    }

    /// Who may log in.
    pub fn users(&self) -> &Arc<Users> {
        &self.users
    }

    /// The time of its world.
    pub fn clock(&self) -> &Clock {
        &self.world.clock
    }

    /// Its part in its cluster.
    pub fn membership(&self) -> &Arc<Membership> {
        &self.membership
    }

    /// What serves its data port.
    pub fn server(&self) -> &Arc<Server> {
        &self.server
    }

    /// Carries out a cluster map, in words why not.
    ///
    /// # Errors
    /// The map is older than the node's, or not one for it.
    pub fn carry_out(&self, plan: &ClusterPlan) -> Result<(), String> {
        match self.membership.carry_out(plan) {
            CarriedOut::Done => Ok(()),
            CarriedOut::Older(revision) => {
                let Revision { epoch, revision } = revision;
                Err(format!("the node has a newer map, of revision [{epoch}, {revision}]"))
            }
            CarriedOut::Another(Revision { epoch, revision }) => {
                Err(format!("the node has another map of revision [{epoch}, {revision}]; raise it"))
            }
            CarriedOut::Refused(reason) | CarriedOut::NotNow(reason) => Err(reason),
        }
    }

    /// Its buckets.
    pub fn buckets(&self) -> &Arc<NodeBuckets> {
        &self.buckets
    }

    /// What changes them.
    pub fn bucket_changes(&self) -> &Arc<BucketChanges> {
        &self.changes
    }

    /// Blocks until every vBucket serves, at most for `patience`.
    pub fn wait_until_serving(&self, patience: Duration) -> bool {
        self.buckets.wait_until_serving(&self.world.clock, patience)
    }

    /// Whether every front-end thread answers within `patience`. A disk that hangs does not keep
    /// them from it.
    pub fn answers_within(&self, patience: Duration) -> bool {
        self.server.answers_within(patience)
    }

    /// To be called once every vBucket serves.
    pub fn begin_serving(&self) {
        self.membership.serve_alone();
    }

    /// Answers what was executed, flushes everything, ends all threads.
    pub fn stop(self) -> anyhow::Result<()> {
        // Whoever brings something into the buckets ends before these do.
        self.retries.stop();
        if let Some(reminder) = self.reminder {
            reminder.unregister(Shutdown::Force);
        }
        self.replicator.stop();
        self.server.stop();
        self.changes.stop();
        let flushed = self.buckets.shut_down();
        // Behind the buckets, whose last flushes are tasks of the pool.
        self.world.pool.shutdown();
        drop(self.directory);
        drop(self.temporary);
        if let Err(unflushed_count) = flushed {
            bail!(
                "{unflushed_count} vBuckets have documents that could not be written to {}; what \
                 was reported as persisted is there",
                self.config.data_dir.display()
            );
        }
        Ok(())
    }
}

/// What follows other nodes, as the administrator: nodes share users.
fn start_replicator(
    login: NodeLogin,
    node_name: String,
    world: &World,
) -> anyhow::Result<Replicator> {
    let NodeLogin { user, password, connector } = login;
    let entropy = world.entropy.clone();
    let credentials = FollowerLogin { node: node_name, user, password, entropy, connector };
    let (pool, network) = (world.pool.clone(), world.network.clone());
    Ok(Replicator::start(credentials, pool, network)?)
}
