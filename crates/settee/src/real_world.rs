//! The world of this process.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use executor::{ExecutorPool, PoolOptions};
use node::World;
use platform::files::RealFiles;
use platform::network::Network;
use platform::{Clock, Entropy};

use crate::real_peers::RealPeers;
use crate::setting_values::NetworkLoop;

/// How long another node may take to answer one that waits for it.
const PEER_PATIENCE: Duration = Duration::from_secs(2);

/// The world that there is, with the threads of `options`.
pub(crate) fn real_world(options: PoolOptions, network_loop: NetworkLoop) -> anyhow::Result<World> {
    let clock = Clock::real();
    Ok(World {
        pool: ExecutorPool::start(clock.clone(), options)?,
        clock,
        files: Arc::new(RealFiles),
        network: network(network_loop)?,
        entropy: Entropy::real(),
        peers: Arc::new(RealPeers { patience: PEER_PATIENCE }),
    })
}

/// The network, with loops as they are wanted. The log says which they are.
fn network(network_loop: NetworkLoop) -> anyhow::Result<Network> {
    let uring = match network_loop {
        NetworkLoop::Epoll => {
            tracing::info!("the data port waits for clients by epoll");
            return Ok(Network::real());
        }
        NetworkLoop::Auto | NetworkLoop::Uring => Network::with_uring(),
    };
    match (network_loop, uring) {
        (_, Ok(network)) => {
            tracing::info!("the data port waits for clients by io_uring");
            Ok(network)
        }
        (NetworkLoop::Uring, Err(error)) => Err(error).context(
            "--network-loop uring: the kernel or a sandbox refuses io_uring, which needs Linux \
             6.1; say auto or epoll",
        ),
        (_, Err(error)) => {
            tracing::info!(%error, "the data port waits for clients by epoll: no io_uring here");
            Ok(Network::real())
        }
    }
}
