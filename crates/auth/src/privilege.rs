//! What users may be allowed to do. Source: docs/specification/protocol.md, section 3.5.

use std::fmt;
use std::ops::BitOr;

macro_rules! privileges {
    ($($(#[$doc:meta])+ $variant:ident $permission:literal;)+) => {
        /// One thing that a user may be allowed to do.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Privilege {
            $($(#[$doc])+ $variant,)+
        }

        impl Privilege {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Its name, as the protocol has it.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => stringify!($variant),)+
                }
            }

            /// Its name over REST; `[]` stands for a bucket or a part of one.
            pub fn permission(self) -> &'static str {
                match self {
                    $(Self::$variant => $permission,)+
                }
            }
        }
    };
}

privileges! {
    /// Read documents.
    Read "cluster.bucket[].data.docs!read";
    /// Create documents that are not there.
    Insert "cluster.bucket[].data.docs!insert";
    /// Create and overwrite documents.
    Upsert "cluster.bucket[].data.docs!upsert";
    /// Delete documents.
    Delete "cluster.bucket[].data.docs!delete";
    /// Scan ranges of documents.
    RangeScan "cluster.bucket[].data.docs!range_scan";
    /// Write documents with metadata of elsewhere.
    MetaWrite "cluster.bucket[].data.meta!write";
    /// Read attributes whose names begin with `_`.
    SystemXattrRead "cluster.bucket[].data.sxattr!read";
    /// Write attributes whose names begin with `_`.
    SystemXattrWrite "cluster.bucket[].data.sxattr!write";
    /// Open a connection of replication that receives.
    DcpProducer "cluster.bucket[].data.dcp!read";
    /// Open a connection of replication that sends.
    DcpConsumer "cluster.bucket[].data.dcp!write";
    /// Receive a stream of documents.
    DcpStream "cluster.bucket[].data.dcpstream!read";
    /// See a bucket's statistics over REST, and a node's metrics.
    SimpleStats "cluster.bucket[].stats!read";
    /// See what statistics tell of the node and of others.
    Stats "cluster.stats.memcached!read";
    /// Do what the cluster manager does.
    NodeSupervisor "cluster.admin.memcached.node!write";
    /// Change how a node works.
    Administrator "cluster.admin.memcached!write";
    /// Write to the audit log.
    Audit "cluster.admin.audit!write";
    /// Act in the name of others.
    Impersonate "cluster.admin.memcached.impersonate!write";
    /// See the cluster.
    SystemSettings "cluster.pools!read";
    /// See what the cluster is doing.
    TasksRead "cluster.tasks!read";
    /// See a bucket's settings.
    BucketRead "cluster.bucket[].settings!read";
    /// Change a bucket's settings.
    BucketWrite "cluster.bucket[].settings!write";
    /// Empty a bucket.
    BucketFlush "cluster.bucket[]!flush";
    /// Compact a bucket.
    BucketCompact "cluster.bucket[]!compact";
    /// Delete a bucket.
    BucketDelete "cluster.bucket[]!delete";
    /// Create buckets.
    BucketCreate "cluster.buckets!create";
    /// See scopes and collections.
    CollectionRead "cluster.bucket[].collections!read";
    /// Create and drop scopes and collections.
    CollectionWrite "cluster.bucket[].collections!write";
    /// Back a bucket up.
    Backup "cluster.bucket[].data!backup";
    /// See users, groups and their roles.
    SecurityRead "cluster.admin.security!read";
    /// Change users, groups and their roles.
    SecurityWrite "cluster.admin.security!write";
    /// See the settings of the cluster.
    SettingsRead "cluster.settings!read";
    /// Change the settings of the cluster.
    SettingsWrite "cluster.settings!write";
    /// Say which nodes there are, and what each is to do. Nodes log in to those that they are told
    /// of, so this is worth as much as all the rest.
    NodesWrite "cluster.nodes!write";
}

const _: () = assert!(Privilege::ALL.len() <= 64, "a set of privileges fits a word");

/// Several privileges.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct PrivilegeSet(u64);

impl Privilege {
    /// The one of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|privilege| privilege.name() == name)
    }

    const fn bit(self) -> u64 {
        1 << self as u8
    }
}

impl PrivilegeSet {
    /// None.
    pub const NONE: Self = Self(0);
    /// All there are.
    pub const ALL: Self = Self::of(Privilege::ALL);

    /// These.
    pub const fn of(mut privileges: &[Privilege]) -> Self {
        let mut bits = 0;
        while let [first, rest @ ..] = privileges {
            bits |= first.bit();
            privileges = rest;
        }
        Self(bits)
    }

    /// What is in either.
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// What is not in the other.
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether all of `others` are in it.
    #[inline]
    pub const fn contains_all(self, others: Self) -> bool {
        self.0 & others.0 == others.0
    }

    /// Whether one of `others` is in it.
    #[inline]
    pub const fn contains_any(self, others: Self) -> bool {
        self.0 & others.0 != 0
    }

    /// Whether it is in it.
    #[inline]
    pub const fn contains(self, privilege: Privilege) -> bool {
        self.0 & privilege.bit() != 0
    }

    /// Whether nothing is in it.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// What is in it, in order.
    pub fn iter(self) -> impl Iterator<Item = Privilege> {
        Privilege::ALL.iter().copied().filter(move |privilege| self.contains(*privilege))
    }
}

impl BitOr for PrivilegeSet {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        self.with(other)
    }
}

impl fmt::Debug for PrivilegeSet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_what_was_put_into_them() {
        let set = PrivilegeSet::of(&[Privilege::Read, Privilege::NodesWrite]);
        assert!(set.contains(Privilege::Read) && !set.contains(Privilege::Upsert));
        assert_eq!(set.iter().collect::<Vec<_>>(), [Privilege::Read, Privilege::NodesWrite]);
        let read = PrivilegeSet::of(&[Privilege::Read]);
        assert!(set.contains_all(read) && !read.contains_all(set) && read.contains_any(set));
        assert!(set.without(set).is_empty());
        assert_eq!(PrivilegeSet::ALL.iter().count(), Privilege::ALL.len());
    }

    #[test]
    fn names_are_found_and_no_two_are_the_same() {
        for privilege in Privilege::ALL {
            assert_eq!(Privilege::from_name(privilege.name()), Some(*privilege));
            let same = |other: &&Privilege| other.permission() == privilege.permission();
            assert_eq!(Privilege::ALL.iter().filter(same).count(), 1, "{privilege:?}");
        }
        assert_eq!(Privilege::from_name("read"), None);
    }
}
