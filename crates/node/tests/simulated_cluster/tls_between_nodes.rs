//! Nodes that speak with each other by TLS alone.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cluster::TlsPorts;
use node::TlsConfig;
use platform::simulated::SimulatedFiles;
use protocol::Status;
use tls::AuthorityDirectory;

use super::{BUCKETS, Client, Cluster, Shared};

pub(super) const PORTS: TlsPorts = TlsPorts { data: 11207, management: 18091 };
const CERTIFICATE: &str = "/node.pem";
const AUTHORITIES: &str = "/ca.pem";

pub(super) fn config() -> TlsConfig {
    TlsConfig {
        port: PORTS.data,
        management_port: PORTS.management,
        certificate: Some(PathBuf::from(CERTIFICATE)),
        key: Some(PathBuf::from(CERTIFICATE)),
        client_authorities: None,
        node_authorities: Some(PathBuf::from(AUTHORITIES)),
    }
}

/// An authority, on a disk of its own.
#[derive(Default)]
struct Authority(SimulatedFiles);

impl Authority {
    /// Puts a certificate for the machine on its disk, and what it is to believe of others.
    fn certify(&self, cluster: &Cluster, index: usize) {
        let machine = &cluster.machines[index];
        let directory = AuthorityDirectory::new(&cluster.clock, &self.0, Path::new("/authority"));
        let host = machine.address.to_string();
        let pem = directory.issue_to(&format!("{host}.pem"), &host, "of the cluster").unwrap();
        machine.files.insert(Path::new(CERTIFICATE), &pem);
        let authorities = self.0.content(&directory.certificate_path()).unwrap();
        machine.files.insert(Path::new(AUTHORITIES), &authorities);
    }
}

/// A cluster of two nodes with certificates of these authorities.
fn begin(seed: u64, authorities: [&Authority; 2]) -> Shared {
    let mut cluster = Cluster::without_power(seed, &BUCKETS[..1], 2);
    cluster.has_tls = true;
    for (index, authority) in authorities.into_iter().enumerate() {
        authority.certify(&cluster, index);
    }
    cluster.begin();
    Shared(Arc::new(Mutex::new(cluster)))
}

/// What a node says in a group of statistics under the names that end so.
fn told(client: &mut Client, index: usize, group: &str, end: &str) -> Vec<String> {
    let statistics = client.connection(index).unwrap().statistics(group).unwrap();
    let ours = statistics.into_iter().filter(|(name, _)| name.ends_with(end));
    ours.map(|(_, value)| value).collect()
}

#[test]
fn nodes_follow_each_other_by_tls_alone_and_no_durable_write_is_lost() {
    for seed in platform::seeds::seeds(2) {
        let authority = Authority::default();
        let cluster = begin(seed, [&authority, &authority]);
        let mut client = Client::new(&cluster, BUCKETS[0]);
        let keys: Vec<Vec<u8>> = (0..16_u8).map(|number| vec![b'k', number]).collect();
        keys.iter().for_each(|key| client.write_until_durable(key, b"first"));
        // Larger than a record and than what a session keeps unsent.
        let large = vec![b'x'; 200 << 10];
        client.write_until_durable(&keys[0], &large);
        for index in 0..2 {
            assert_eq!(told(&mut client, index, "dcp", ":tls"), ["true"], "seed {seed}");
            let mut count = |name| told(&mut client, index, "connections", name)[0].clone();
            let (all, by_tls) = (count("total_connections"), count("tls_connections"));
            assert_eq!((all.as_str(), by_tls.as_str()), ("2", "1"), "seed {seed}: the client's");
        }
        for lost in 0..2 {
            cluster.lock().power_cut(lost);
            cluster.lock().start(lost);
            keys.iter().for_each(|key| client.write_until_durable(key, b"second"));
        }
        client.check();
        drop(client);
        (0..2).for_each(|index| cluster.lock().power_cut(index));
    }
}

#[test]
fn a_node_with_a_certificate_of_another_authority_is_not_followed_until_it_has_a_right_one() {
    for seed in platform::seeds::seeds(2) {
        let (ours, other) = (Authority::default(), Authority::default());
        let cluster = begin(seed, [&ours, &other]);
        let mut client = Client::new(&cluster, BUCKETS[0]);
        cluster.lock().run(Duration::from_secs(5));
        for index in 0..2 {
            let is_followed = told(&mut client, index, "dcp", ":connected");
            assert_eq!(is_followed, ["false"], "seed {seed}");
        }
        for key in [b"k0", b"k1"] {
            assert_ne!(client.set(key, b"value", true), Some(Status::Success), "seed {seed}");
        }
        {
            let cluster = cluster.lock();
            ours.certify(&cluster, 1);
            let running = cluster.machines[1].running.as_ref().unwrap();
            running.node.certificates().unwrap().reload().unwrap();
        }
        [b"k0", b"k1"].iter().for_each(|key| client.write_until_durable(*key, b"later"));
        client.check();
        drop(client);
        (0..2).for_each(|index| cluster.lock().power_cut(index));
    }
}
