//! What a user may do, and where: the sum of its roles.

use crate::privilege::{Privilege, PrivilegeSet};
use crate::role::Role;

/// What a user may do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    on_node: PrivilegeSet,
    grants: Vec<Grant>,
}

/// What one role allows in buckets.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Grant {
    /// `None` for all.
    bucket: Option<String>,
    in_bucket: PrivilegeSet,
    part: PartGrant,
}

/// What is allowed in a part of a bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PartGrant {
    scope: String,
    /// `None` for all.
    collection: Option<String>,
    privileges: PrivilegeSet,
}

/// What a user may do in a bucket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BucketAccess {
    /// What is allowed in all of it, what is allowed on the node included.
    pub everywhere: PrivilegeSet,
    /// What is allowed in the bucket because it is this bucket.
    own: PrivilegeSet,
    parts: Vec<PartGrant>,
}

impl Access {
    /// The sum of these roles.
    pub fn of<'a>(roles: impl Iterator<Item = &'a Role>) -> Self {
        let mut access = Self::default();
        for role in roles {
            access.on_node = access.on_node | role.kind.on_node;
            access.grants.push(Grant::of(role));
        }
        access
    }

    /// Of whoever comes through a door that asks nobody for a name: documents of any bucket.
    pub fn anonymous() -> Self {
        const IN_BUCKET: PrivilegeSet = PrivilegeSet::of(&[
            Privilege::Read,
            Privilege::Insert,
            Privilege::Upsert,
            Privilege::Delete,
            Privilege::RangeScan,
            Privilege::SystemXattrRead,
            Privilege::SystemXattrWrite,
            Privilege::Stats,
            Privilege::BucketFlush,
            Privilege::CollectionRead,
        ]);
        let on_node = PrivilegeSet::of(&[Privilege::SystemSettings]);
        let part = PartGrant::none();
        Self { on_node, grants: vec![Grant { bucket: None, in_bucket: IN_BUCKET, part }] }
    }

    /// What is allowed in the cluster.
    pub fn on_node(&self) -> PrivilegeSet {
        self.on_node
    }

    /// What is allowed in the bucket of this name, whether or not there is one.
    pub fn in_bucket(&self, bucket: &str) -> BucketAccess {
        self.summed(|grant| grant.bucket.as_deref().is_none_or(|name| name == bucket))
    }

    /// What is allowed where no bucket is selected.
    pub fn without_bucket(&self) -> BucketAccess {
        self.summed(|_| false)
    }

    /// What is allowed in buckets, all taken together.
    pub fn in_any_bucket(&self) -> BucketAccess {
        self.summed(|_| true)
    }

    fn summed(&self, counts: impl Fn(&Grant) -> bool) -> BucketAccess {
        let mut sum = BucketAccess { everywhere: self.on_node, ..BucketAccess::default() };
        for grant in self.grants.iter().filter(|grant| counts(grant)) {
            sum.own = sum.own | grant.in_bucket;
            if !grant.part.privileges.is_empty() {
                sum.parts.push(grant.part.clone());
            }
        }
        sum.everywhere = sum.everywhere | sum.own;
        sum
    }
}

impl Grant {
    fn of(role: &Role) -> Self {
        let Role { kind, bucket, scope, collection } = role;
        let bucket = bucket.clone();
        match scope.clone() {
            None => {
                let in_bucket = kind.in_bucket | kind.in_part;
                Self { bucket, in_bucket, part: PartGrant::none() }
            }
            Some(scope) => {
                let (collection, privileges) = (collection.clone(), kind.in_part);
                let part = PartGrant { scope, collection, privileges };
                Self { bucket, in_bucket: kind.in_bucket, part }
            }
        }
    }
}

impl PartGrant {
    fn none() -> Self {
        Self { scope: String::new(), collection: None, privileges: PrivilegeSet::NONE }
    }
}

impl BucketAccess {
    /// Whether anything is allowed in it.
    pub fn is_any(&self) -> bool {
        !self.own.is_empty() || !self.parts.is_empty()
    }

    /// Whether more is allowed in parts of it.
    pub fn has_parts(&self) -> bool {
        !self.parts.is_empty()
    }

    /// What is allowed in all of a scope.
    pub fn in_scope(&self, scope: &str) -> PrivilegeSet {
        self.with_parts(|part| part.scope == scope && part.collection.is_none())
    }

    /// What is allowed in a scope or in one of its collections.
    pub fn within_scope(&self, scope: &str) -> PrivilegeSet {
        self.with_parts(|part| part.scope == scope)
    }

    /// What is allowed in a collection.
    pub fn in_collection(&self, scope: &str, collection: &str) -> PrivilegeSet {
        self.with_parts(|part| {
            part.scope == scope && part.collection.as_deref().is_none_or(|it| it == collection)
        })
    }

    /// What is allowed somewhere in it.
    pub fn anywhere(&self) -> PrivilegeSet {
        self.with_parts(|_| true)
    }

    /// The same without what was given up.
    pub fn without(mut self, given_up: PrivilegeSet) -> Self {
        self.everywhere = self.everywhere.without(given_up);
        self.own = self.own.without(given_up);
        for part in &mut self.parts {
            part.privileges = part.privileges.without(given_up);
        }
        self
    }

    fn with_parts(&self, counts: impl Fn(&PartGrant) -> bool) -> PrivilegeSet {
        let parts = self.parts.iter().filter(|part| counts(part));
        parts.fold(self.everywhere, |sum, part| sum | part.privileges)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(roles: &str) -> Access {
        Access::of(Role::parse_all(roles).unwrap().iter())
    }

    #[test]
    fn a_role_counts_where_it_was_given() {
        use Privilege::{BucketWrite, Read, SystemSettings, Upsert};
        let access = access("data_reader[b:s:c],data_writer[b:s],bucket_admin[other]");
        assert!(access.on_node().contains(SystemSettings) && !access.on_node().contains(Read));
        let bucket = access.in_bucket("b");
        assert!(!bucket.everywhere.contains(Read) && bucket.anywhere().contains(Read));
        for (scope, collection, reads, writes) in [
            ("s", "c", true, true),
            ("s", "d", false, true),
            ("t", "c", false, false),
            ("_default", "_default", false, false),
        ] {
            let privileges = bucket.in_collection(scope, collection);
            let found = (privileges.contains(Read), privileges.contains(Upsert));
            assert_eq!(found, (reads, writes), "{scope}.{collection}");
        }
        assert!(bucket.in_scope("s").contains(Upsert) && !bucket.in_scope("s").contains(Read));
        assert!(bucket.within_scope("s").contains(Read));
        assert!(access.in_bucket("other").everywhere.contains(BucketWrite));
        assert!(!access.in_bucket("unknown").is_any());
        assert!(!bucket.everywhere.contains(BucketWrite));
    }

    #[test]
    fn a_role_in_all_buckets_counts_in_each_and_one_in_the_cluster_in_none() {
        let readers = access("data_reader[*]");
        assert!(readers.in_bucket("any").everywhere.contains(Privilege::Read));
        assert!(!readers.in_bucket("any").has_parts());
        assert!(!access("security_admin").in_bucket("any").is_any());
        assert!(access("ro_admin").in_bucket("any").is_any());
        assert!(!Access::default().in_bucket("any").is_any());
        let admin = access("admin").in_bucket("any");
        assert_eq!(admin.everywhere, PrivilegeSet::ALL);
    }

    #[test]
    fn what_was_given_up_is_gone_from_every_part() {
        let given_up = PrivilegeSet::of(&[Privilege::Read]);
        let rest = access("data_reader[b:s],admin").in_bucket("b").without(given_up);
        assert!(!rest.anywhere().contains(Privilege::Read));
        assert!(rest.everywhere.contains(Privilege::Upsert));
    }
}
