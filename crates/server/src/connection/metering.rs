//! What a connection's user may take of the node, where that is limited.

use protocol::Opcode;

use super::request::Request;
use super::state::Connection;
use super::turn::Turn;
use crate::shared::Shared;
use crate::statistics::count;
use crate::user_meters::{Metered, TooManyConnections};

impl Connection {
    /// From now on what it does counts for this user.
    ///
    /// # Errors
    /// The user has too many connections. Nothing has changed.
    pub(super) fn begin_metering(
        &mut self,
        user: &str,
        shared: &Shared,
    ) -> Result<(), TooManyConnections> {
        let limits = shared.users.limits(user);
        if self.is_metered_as(user) && !limits.is_none() {
            return Ok(());
        }
        let entered = || shared.user_meters.enter(user, limits, shared.clock.now()).map(Box::new);
        self.metered = (!limits.is_none()).then(entered).transpose()?;
        Ok(())
    }

    /// Users have changed. A connection that is there stays, however many there are.
    pub(super) fn renew_metering(&mut self, shared: &Shared) {
        let Some(user) = self.user.clone().filter(|_| self.has_logged_in) else { return };
        let limits = shared.users.limits(&user);
        match &mut self.metered {
            _ if limits.is_none() => self.metered = None,
            Some(metered) => metered.set_limits(limits),
            None => {
                let metered = shared.user_meters.adopt(&user, limits, shared.clock.now());
                self.metered = Some(Box::new(metered));
            }
        }
    }

    /// Counts a request; answered when the user has taken what it may. What finds and keeps a
    /// connection to the cluster is not limited.
    #[cold]
    pub(super) fn is_within_limits(&self, request: &Request<'_>, turn: &mut Turn<'_>) -> bool {
        let is_free = matches!(
            request.opcode,
            Opcode::Hello
                | Opcode::SaslListMechs
                | Opcode::SaslAuth
                | Opcode::SaslStep
                | Opcode::GetErrorMap
                | Opcode::SelectBucket
                | Opcode::GetClusterConfig
        );
        let Some(metered) = self.metered.as_ref().filter(|_| !is_free) else { return true };
        let bytes = request.frame.header.frame_size();
        let Err((status, why)) = metered.admit(bytes, turn.now.monotonic) else { return true };
        count(&turn.counters.limited_requests);
        request.reply(self).fail(turn, status, why);
        false
    }

    fn is_metered_as(&self, user: &str) -> bool {
        self.metered.as_deref().is_some_and(|metered: &Metered| metered.is_of(user))
    }
}
