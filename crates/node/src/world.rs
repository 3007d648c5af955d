//! What a node is started with: everything outside it.

use std::sync::Arc;

use executor::ExecutorPool;
use platform::network::Network;
use platform::{Clock, Entropy, Files};

use crate::peer_copies::Peers;

/// The world as a node sees it. A node makes no clock, no thread, no socket and no secret but from
/// it, so on a simulated one everything follows from its seeds.
#[derive(Clone)]
pub struct World {
    /// Time.
    pub clock: Clock,
    /// Files.
    pub files: Arc<dyn Files>,
    /// The way to clients and other nodes.
    pub network: Network,
    /// Names, salts and secrets.
    pub entropy: Entropy,
    /// What runs tasks and readiness loops, on the same clock. It ends with the node.
    pub pool: ExecutorPool,
    /// The other nodes, where they are asked and their answer is waited for.
    pub peers: Arc<dyn Peers>,
}
