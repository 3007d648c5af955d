//! The world of this process.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use executor::{ExecutorPool, PoolOptions};
use node::World;
use platform::files::RealFiles;
use platform::network::Network;
use platform::{Clock, Entropy};

use crate::real_peers::RealPeers;

/// How long another node may take to answer one that waits for it.
const PEER_PATIENCE: Duration = Duration::from_secs(2);

/// The world that there is, with the threads of `options`.
pub(crate) fn real_world(options: PoolOptions) -> io::Result<World> {
    let clock = Clock::real();
    Ok(World {
        pool: ExecutorPool::start(clock.clone(), options)?,
        clock,
        files: Arc::new(RealFiles),
        network: Network::real(),
        entropy: Entropy::real(),
        peers: Arc::new(RealPeers { patience: PEER_PATIENCE }),
    })
}
