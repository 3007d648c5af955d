//! What a connection's user may do in the bucket that it has selected.
//!
//! What is allowed in all of the bucket is one word, against which each request is held. It is
//! looked up again when somebody logs in or selects a bucket, and in the first turn after users
//! have changed. Only a request that this word does not allow is looked at more closely.

use auth::{Access, BucketAccess, Privilege, PrivilegeSet};
use bucket::Bucket;
use document::{CollectionId, Manifest};
use platform::redaction::UserData;
use protocol::request::DocumentKey;
use protocol::response::ErrorContext;
use protocol::{Opcode, Status};

use super::request::{Done, Request};
use super::state::Connection;
use super::turn::Turn;
use crate::privileges::{Need, NeededIn, needed_for};
use crate::shared::Shared;

/// Collections whose privileges are remembered.
const KNOWN_COLLECTIONS_MAX: usize = 256;

/// Whoever may do one of these in a collection may know that there is one.
const SHOWS_COLLECTION: PrivilegeSet = PrivilegeSet::of(&[
    Privilege::CollectionRead,
    Privilege::Read,
    Privilege::Insert,
    Privilege::Upsert,
    Privilege::Delete,
    Privilege::MetaWrite,
]);

/// What a user may do in the selected bucket.
#[derive(Debug, Default)]
pub(crate) struct Rights {
    /// In all of it; where none is selected, on the node.
    everywhere: PrivilegeSet,
    /// The version of the users that it follows from.
    version: u64,
    /// What is allowed in parts of it, if that is more.
    parts: Option<Box<PartRights>>,
}

/// What a user may do in parts of a bucket.
#[derive(Debug)]
struct PartRights {
    access: BucketAccess,
    /// What is allowed in collections that were asked for. An id never comes to mean another one.
    known: Vec<(CollectionId, PrivilegeSet)>,
}

/// What a user may know of a bucket's scopes and collections.
pub(crate) enum Sight {
    /// All.
    All,
    /// Those in which anything is allowed.
    Some(BucketAccess),
}

impl Sight {
    pub(crate) fn sees_scope(&self, scope: &str) -> bool {
        match self {
            Self::All => true,
            Self::Some(access) => access.within_scope(scope).contains_any(SHOWS_COLLECTION),
        }
    }

    pub(crate) fn sees(&self, scope: &str, collection: &str) -> bool {
        match self {
            Self::All => true,
            Self::Some(access) => {
                access.in_collection(scope, collection).contains_any(SHOWS_COLLECTION)
            }
        }
    }

    /// As much of a manifest as is seen.
    pub(crate) fn seen_of(&self, manifest: &Manifest) -> Manifest {
        let mut seen = manifest.clone();
        seen.scopes.retain_mut(|scope| {
            let name = &scope.name;
            scope.collections.retain(|collection| self.sees(name, &collection.name));
            self.sees_scope(name)
        });
        seen
    }
}

impl Rights {
    fn of(access: BucketAccess, version: u64) -> Self {
        let everywhere = access.everywhere;
        let parts = access.has_parts().then(|| Box::new(PartRights { access, known: Vec::new() }));
        Self { everywhere, version, parts }
    }

    /// Whether nothing that `before` allows is missing.
    fn keeps(&self, before: &Self) -> bool {
        let accesses = (before.parts.as_ref(), self.parts.as_ref());
        let same_parts = match accesses {
            (None, _) => true,
            (Some(before), Some(now)) => before.access == now.access,
            (Some(_), None) => false,
        };
        same_parts && self.everywhere.contains_all(before.everywhere)
    }

    /// What is allowed somewhere in the bucket.
    fn anywhere(&self) -> PrivilegeSet {
        self.parts.as_ref().map_or(self.everywhere, |parts| parts.access.anywhere())
    }

    fn in_collection(&mut self, collection: CollectionId, bucket: &Bucket) -> PrivilegeSet {
        let Some(parts) = &mut self.parts else { return self.everywhere };
        if let Some((_, known)) = parts.known.iter().find(|(id, _)| *id == collection) {
            return *known;
        }
        let manifest = bucket.manifest();
        // What nobody has ever heard of looks like what one may not know.
        let Some((scope, found)) = manifest.collection_of_id(collection) else {
            return self.everywhere;
        };
        let privileges = parts.access.in_collection(&scope.name, &found.name);
        if parts.known.len() < KNOWN_COLLECTIONS_MAX {
            parts.known.push((collection, privileges));
        }
        privileges
    }

    fn in_scope(&self, scope: &str) -> PrivilegeSet {
        self.parts.as_ref().map_or(self.everywhere, |parts| parts.access.in_scope(scope))
    }
}

impl Connection {
    /// Looks the user's rights up again if users have changed. Whoever is no user any more, may do
    /// nothing in the selected bucket any more, or receives streams and may do less than before, is
    /// let go.
    #[inline]
    pub(crate) fn renew_rights(&mut self, turn: &Turn<'_>) {
        if self.rights.version != turn.shared.users.version() && self.is_authenticated() {
            self.renew_changed_rights(turn);
        }
    }

    #[cold]
    fn renew_changed_rights(&mut self, turn: &Turn<'_>) {
        let before = std::mem::take(&mut self.rights);
        self.settle_rights(turn.shared);
        self.renew_metering(turn.shared);
        let is_gone = self.access(turn.shared).is_none_or(|access| {
            self.bucket.as_ref().is_some_and(|part| !access.in_bucket(part.name()).is_any())
        });
        if is_gone || (self.is_of_replication() && !self.rights.keeps(&before)) {
            let user = UserData(self.user.as_deref().unwrap_or_default());
            let peer = self.peer_name();
            tracing::info!(%user, peer, "closing a connection whose user has lost privileges");
            self.is_closing = true;
        }
    }

    /// What the user may do anywhere; `None` if it is no user (any more).
    pub(crate) fn access(&self, shared: &Shared) -> Option<Access> {
        if self.is_anonymous && !self.has_logged_in {
            return Some(Access::anonymous());
        }
        shared.users.access(self.user.as_deref()?)
    }

    /// To be called whenever it is another user, or another bucket is selected.
    pub(crate) fn settle_rights(&mut self, shared: &Shared) {
        let version = shared.users.version();
        let access = self.access(shared).unwrap_or_default();
        let access = self.in_selected_bucket(&access).without(self.given_up);
        self.rights = Rights::of(access, version);
    }

    fn in_selected_bucket(&self, access: &Access) -> BucketAccess {
        match &self.bucket {
            Some(part) => access.in_bucket(part.name()),
            None => access.without_bucket(),
        }
    }

    /// Gives a privilege up, for as long as the connection has this user.
    pub(crate) fn give_up(&mut self, privilege: Privilege, shared: &Shared) {
        self.given_up = self.given_up | PrivilegeSet::of(&[privilege]);
        self.settle_rights(shared);
    }

    /// Whether the user may do what a request asks for, as far as the opcode, the document's
    /// collection and the user's limits tell; answered when it may not. Asked once a request.
    #[inline]
    pub(super) fn may(&mut self, request: &Request<'_>, turn: &mut Turn<'_>) -> bool {
        if self.metered.is_some() && !self.is_within_limits(request, turn) {
            return false;
        }
        let need = needed_for(request.opcode);
        need.is_met_by(self.rights.everywhere) || self.may_in_parts(need, request, turn)
    }

    #[cold]
    fn may_in_parts(&mut self, need: &Need, request: &Request<'_>, turn: &mut Turn<'_>) -> bool {
        if need.place != NeededIn::Node && self.bucket.is_none() {
            // The command says that a bucket has to be selected.
            return true;
        }
        match need.place {
            NeededIn::Node | NeededIn::Bucket => {}
            NeededIn::SomeCollection if need.is_met_by(self.rights.anywhere()) => return true,
            NeededIn::SomeCollection => {}
            NeededIn::Document => {
                // The command says what is wrong with a malformed key.
                let key = DocumentKey::parse(request.frame.key, self.features);
                return key.map_or(true, |key| {
                    self.may_in(key.as_key().collection(), need, request, turn)
                });
            }
        }
        self.refuse_privilege(need, request, turn);
        false
    }

    /// Whether the user has a privilege in a collection of the selected bucket; answered when it
    /// has not.
    pub(crate) fn has_in(
        &mut self,
        collection: CollectionId,
        privilege: Privilege,
        request: &Request<'_>,
        turn: &mut Turn<'_>,
    ) -> bool {
        let all = PrivilegeSet::of(&[privilege]);
        let need = Need { place: NeededIn::Document, all, one: PrivilegeSet::NONE };
        need.is_met_by(self.rights.everywhere) || self.may_in(collection, &need, request, turn)
    }

    fn may_in(
        &mut self,
        collection: CollectionId,
        need: &Need,
        request: &Request<'_>,
        turn: &mut Turn<'_>,
    ) -> bool {
        let privileges = self.privileges_in(collection);
        if need.is_met_by(privileges) {
            return true;
        }
        if privileges.contains_any(SHOWS_COLLECTION) {
            self.refuse_privilege(need, request, turn);
        } else {
            self.hide_collection(request, turn);
        }
        false
    }

    /// Answers as if there were no such collection.
    fn hide_collection(&self, request: &Request<'_>, turn: &mut Turn<'_>) {
        let manifest_uid = self.bucket.as_ref().map(|part| part.bucket.manifest().uid);
        let context = Some("the bucket has no such collection");
        let context = ErrorContext { context, manifest_uid, ..Default::default() };
        request.reply(self).fail_with(turn, Status::UnknownCollection, context);
    }

    /// What the user may do in a collection of the selected bucket.
    pub(crate) fn privileges_in(&mut self, collection: CollectionId) -> PrivilegeSet {
        match &self.bucket {
            Some(part) => self.rights.in_collection(collection, &part.bucket),
            None => self.rights.everywhere,
        }
    }

    /// What the user may do in all of a scope of the selected bucket.
    pub(crate) fn privileges_in_scope(&self, scope: &str) -> PrivilegeSet {
        self.rights.in_scope(scope)
    }

    /// What the user may do in all of the selected bucket, or without one on the node.
    pub(crate) fn privileges(&self) -> PrivilegeSet {
        self.rights.everywhere
    }

    /// Which scopes and collections of the selected bucket the user may know.
    pub(crate) fn sight(&self) -> Sight {
        match &self.rights.parts {
            _ if self.rights.everywhere.contains_any(SHOWS_COLLECTION) => Sight::All,
            Some(parts) => Sight::Some(parts.access.clone()),
            None => Sight::Some(BucketAccess::default()),
        }
    }

    /// Answers that the user may not do what a request needs.
    pub(crate) fn refuse_privilege(&self, need: &Need, request: &Request<'_>, turn: &mut Turn<'_>) {
        let missing = need.all.without(self.rights.everywhere) | need.one;
        let names: Vec<&str> = missing.iter().map(Privilege::name).collect();
        let context = format!("the user has not the privilege {} here", names.join(" or "));
        request.reply(self).fail(turn, Status::Eaccess, &context);
    }

    /// Does what a request asks for, in the name of the user whom it names, if it names one.
    pub(super) fn in_named_rights(
        &mut self,
        request: &Request<'_>,
        turn: &mut Turn<'_>,
        act: impl FnOnce(&mut Self, &mut Turn<'_>) -> Done,
    ) -> Done {
        let Some(user) = request.infos.impersonate else { return act(self, turn) };
        match self.rights_of_named(user, request.opcode, turn) {
            Ok(named) => {
                // What changes the connection's own rights does not come here: it is refused above.
                let own = std::mem::replace(&mut self.rights, named);
                let done = act(self, turn);
                self.rights = own;
                done
            }
            Err((status, context)) => {
                request.reply(self).fail(turn, status, context);
                Done::Answered
            }
        }
    }

    fn rights_of_named(
        &self,
        user: &str,
        opcode: Opcode,
        turn: &Turn<'_>,
    ) -> Result<Rights, (Status, &'static str)> {
        if !self.rights.everywhere.contains(Privilege::Impersonate) {
            let context = "the connection's user may not act in the name of others";
            return Err((Status::Eaccess, context));
        }
        let changes_connection = opcode.is_dcp()
            || matches!(
                opcode,
                Opcode::Hello
                    | Opcode::SaslAuth
                    | Opcode::SaslStep
                    | Opcode::SelectBucket
                    | Opcode::ListBuckets
                    | Opcode::DropPrivilege
            );
        if changes_connection {
            let context = "this command is about the connection, not in the name of others";
            return Err((Status::NotSupported, context));
        }
        let users = &turn.shared.users;
        let access = users.access(user).ok_or((Status::Eaccess, "there is no such user"))?;
        let access = self.in_selected_bucket(&access);
        if self.bucket.is_some() && !access.is_any() {
            return Err((Status::Eaccess, "the named user may do nothing in this bucket"));
        }
        Ok(Rights::of(access, users.version()))
    }
}
