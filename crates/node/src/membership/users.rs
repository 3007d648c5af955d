//! How the nodes of a cluster come to have the same users: as they come to have one manifest of
//! each bucket, with all users and groups as one document.

use std::sync::{Arc, OnceLock};

use auth::{Editor, RolePlace, UserRegistry, Users, UsersEdit, UsersEditError};
use cluster::ClusterPlan;

use super::Membership;
use super::exchange::{ATTEMPTS_MAX, Exchange, Precedence};
use crate::peer_copies::{ExchangeUsers, UsersOffer};

/// Whose users are exchanged, and how.
pub(crate) struct SharedUsers {
    pub(crate) users: Arc<Users>,
    /// As whom nodes log in to each other.
    pub(crate) node_user: String,
    pub(crate) exchange: ExchangeUsers,
}

/// What is left to be exchanged.
#[derive(Default)]
pub(super) struct UsersExchange {
    shared: OnceLock<SharedUsers>,
    pub(super) state: Exchange,
}

impl Membership {
    /// Has the node share its users with others.
    pub(crate) fn share_users(&self, shared: SharedUsers) {
        assert!(self.users.shared.set(shared).is_ok(), "there is one registry of users");
    }

    /// Changes users, here and on all nodes that can be reached. Returns the names of the others,
    /// which get the change when they can: until then they know who was removed, and do not know
    /// who was added. May take as long as nodes do not answer.
    ///
    /// # Errors
    /// See [`UsersEditError`].
    pub fn edit_users(
        &self,
        edit: &UsersEdit,
        editor: Editor,
    ) -> Result<Vec<String>, UsersEditError> {
        let Some(shared) = self.users.shared.get() else {
            return Err(UsersEditError::Failed("The node is starting".to_owned()));
        };
        let plan = self.plan();
        let _changing = self.users.state.lock();
        self.edit_users_behind_others(shared, &plan, edit, editor)?;
        let unreached = self.exchange_users_of(shared, &plan);
        if !unreached.is_empty() {
            tracing::warn!(?unreached, "users have changed, and not on these nodes yet");
            self.users.state.set_due(true);
            self.retries.begin(true);
        }
        Ok(unreached)
    }

    /// Takes the roles in what was deleted from all users and groups. That it is gone stays so
    /// where this fails.
    pub(crate) fn remove_roles_in(&self, places: Vec<RolePlace>) {
        let Some(shared) = self.users.shared.get() else { return };
        let registry = shared.users.registry();
        if !places.iter().any(|place| registry.has_roles_in(place)) {
            return;
        }
        let edit = UsersEdit::RemoveRolesIn(places);
        if let Err(error) = self.edit_users(&edit, Editor::Admin) {
            tracing::warn!(?edit, ?error, "users keep their roles in what was deleted");
        }
    }

    fn edit_users_behind_others(
        &self,
        shared: &SharedUsers,
        plan: &ClusterPlan,
        edit: &UsersEdit,
        editor: Editor,
    ) -> Result<(), UsersEditError> {
        for _ in 0..ATTEMPTS_MAX {
            self.exchange_users_of(shared, plan);
            let current = shared.users.registry();
            let next = current.edited(edit, editor)?;
            // Before another node has the change: nodes log in to each other as this user.
            shared.check_node_user(&current, &next, plan)?;
            match self.precede_users(shared, plan, &current, &next) {
                Precedence::Other => continue,
                Precedence::Here => {}
                Precedence::Taken => {
                    shared.users.adopt(next).map_err(UsersEditError::Failed)?;
                    return Ok(());
                }
            }
            let taken = shared.users.adopt_behind(current.revision, next);
            if taken.map_err(UsersEditError::Failed)? {
                return Ok(());
            }
        }
        Err(UsersEditError::Failed("Users keep changing on other nodes, try again".to_owned()))
    }

    /// Gives what follows the users of this node to the first node of the map that answers.
    fn precede_users(
        &self,
        shared: &SharedUsers,
        plan: &ClusterPlan,
        current: &UserRegistry,
        next: &UserRegistry,
    ) -> Precedence {
        let Some(this) = self.this_node_in(plan) else { return Precedence::Here };
        let registry = next.to_json();
        let offer = UsersOffer { registry: &registry, follows: Some(current.revision) };
        for node in plan.nodes.iter().take(this) {
            // An answer that was lost is found when users are exchanged behind it.
            match (shared.exchange)(&node.address, offer) {
                Ok(theirs) if theirs == registry => return Precedence::Taken,
                Ok(_) => return Precedence::Other,
                Err(_) => {}
            }
        }
        Precedence::Here
    }

    /// Exchanges what is left to be.
    pub(super) fn exchange_users(&self, plan: &ClusterPlan) {
        let Some(shared) = self.users.shared.get().filter(|_| self.users.state.is_due()) else {
            return;
        };
        let _exchanging = self.users.state.lock();
        // Before the exchange: a map that is carried out meanwhile sets it again, and that counts.
        self.users.state.set_due(false);
        if !self.exchange_users_of(shared, plan).is_empty() {
            self.users.state.set_due(true);
        }
    }

    /// Exchanges users with all other nodes of the map. Returns who was not reached.
    fn exchange_users_of(&self, shared: &SharedUsers, plan: &ClusterPlan) -> Vec<String> {
        let this = self.this_node_in(plan);
        let mut unreached = Vec::new();
        for (index, node) in plan.nodes.iter().enumerate() {
            if this.is_none() || this == Some(index) {
                continue;
            }
            if self.is_stopping() {
                unreached.push(node.name.clone());
                continue;
            }
            // Taken anew for each node: the one before may have had users that count more.
            let registry = shared.users.to_json();
            let offer = UsersOffer { registry: &registry, follows: None };
            let taken = (shared.exchange)(&node.address, offer).and_then(|theirs| {
                if theirs != registry {
                    let theirs = UserRegistry::from_json(&theirs)?;
                    shared.users.adopt(theirs).map_err(anyhow::Error::msg)?;
                }
                Ok(())
            });
            if let Err(error) = taken {
                tracing::debug!(node = node.name, "no users are exchanged: {error:#}");
                unreached.push(node.name.clone());
            }
        }
        unreached
    }
}

impl SharedUsers {
    /// The nodes themselves log in to each other as a user. It stays what it is, and keeps its
    /// password as long as there are others, which were started with that.
    fn check_node_user(
        &self,
        before: &UserRegistry,
        next: &UserRegistry,
        plan: &ClusterPlan,
    ) -> Result<(), UsersEditError> {
        let user = &self.node_user;
        if before.is_admin(user) && !next.is_admin(user) {
            let why = format!("The node was started as {user}, who must stay an administrator");
            return Err(UsersEditError::Invalid("roles", why));
        }
        let password_of = |registry: &UserRegistry| {
            registry.accounts.get(user).map(|account| Arc::clone(&account.credentials))
        };
        if plan.nodes.len() > 1 && password_of(before) != password_of(next) {
            let why = format!(
                "The nodes of the cluster log in to each other as {user}; its password is changed \
                 by starting each with --set-password"
            );
            return Err(UsersEditError::Invalid("password", why));
        }
        Ok(())
    }
}
