//! What the handlers of requests share.

use std::sync::Arc;

use auth::{PasswordChecker, Users};
use tls::CertificateStore;
use tokio::sync::watch;

use crate::backups::Backups;
use crate::connection::Connections;
use crate::failed_logins::FailedLogins;
use crate::limits::Limits;
use crate::live_figures::LiveFigures;
use crate::node_view::NodeView;
use crate::other_nodes::OtherNodes;
use crate::request_body::BodyRoom;
use crate::sessions::Sessions;
use crate::stats_history::StatsHistory;

/// What all handlers share.
pub(crate) struct Context {
    pub(crate) view: Arc<dyn NodeView>,
    pub(crate) users: Arc<Users>,
    /// Where passwords are checked.
    pub(crate) passwords: PasswordChecker,
    pub(crate) limits: Limits,
    pub(crate) connections: Arc<Connections>,
    pub(crate) body_room: BodyRoom,
    pub(crate) failed_logins: FailedLogins,
    pub(crate) backups: Arc<Backups>,
    /// Figures of the last minutes.
    pub(crate) history: Arc<StatsHistory>,
    /// Held by the request whose answer is made of them.
    pub(crate) telling_ranges: tokio::sync::Mutex<()>,
    /// What other nodes have.
    pub(crate) other_nodes: OtherNodes,
    /// Figures of this moment.
    pub(crate) live_figures: LiveFigures,
    /// Who has signed in at the console.
    pub(crate) sessions: Sessions,
    /// The node's certificates, if it speaks TLS.
    pub(crate) certificates: Option<Arc<CertificateStore>>,
    /// Turns true once.
    pub(crate) stopped: watch::Receiver<bool>,
    /// Changes with the maps.
    pub(crate) maps_changed: watch::Receiver<()>,
    /// Held by the request that sets the node up.
    pub(crate) initialising: tokio::sync::Mutex<()>,
    /// Where what other nodes ask for is done that takes long. Nothing there waits for nodes.
    pub(crate) peer_work: tokio::runtime::Handle,
}
