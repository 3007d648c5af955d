//! Roles: which privileges a user has, and where.
//!
//! Written `admin`, `bucket_admin[travel]`, `data_reader[travel:inventory:hotel]`; `*` stands for
//! all there are, and what is left out behind a bucket counts as `*`.

use std::fmt;

use crate::absent_services::ROLES_OF_ABSENT_SERVICES;
use crate::privilege::Privilege::*;
use crate::privilege::PrivilegeSet;

/// What a role can be limited to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RoleExtent {
    /// Nothing: it is a role in the cluster.
    Cluster,
    /// A bucket.
    Bucket,
    /// A scope of a bucket.
    Scope,
    /// A collection of a scope.
    Collection,
}

/// A role that users can be given.
#[derive(Debug, PartialEq, Eq)]
pub struct RoleKind {
    /// Its name in forms and files.
    pub name: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// What it is for, for people.
    pub description: &'static str,
    /// What it can be limited to.
    pub extent: RoleExtent,
    /// What it allows in the cluster.
    pub(crate) on_node: PrivilegeSet,
    /// What it allows in the bucket, even if it is limited to a part of that.
    pub(crate) in_bucket: PrivilegeSet,
    /// What it allows in the part that it is limited to.
    pub(crate) in_part: PrivilegeSet,
}

pub(crate) const SEES: PrivilegeSet = PrivilegeSet::of(&[SystemSettings]);
const SEES_TASKS: PrivilegeSet = PrivilegeSet::of(&[SystemSettings, TasksRead]);
const SEES_BUCKETS: PrivilegeSet = PrivilegeSet::of(&[BucketRead, CollectionRead, SimpleStats]);
const READS: PrivilegeSet = PrivilegeSet::of(&[Read, RangeScan, SystemXattrRead]);
const WRITES: PrivilegeSet = PrivilegeSet::of(&[Insert, Upsert, Delete, SystemXattrWrite]);
const STREAMS: PrivilegeSet = PrivilegeSet::of(&[DcpProducer, DcpStream]);
const MANAGES_BUCKETS: PrivilegeSet = PrivilegeSet::of(&[
    BucketRead,
    BucketWrite,
    BucketFlush,
    BucketCompact,
    BucketDelete,
    CollectionRead,
    CollectionWrite,
    SimpleStats,
]);

/// All roles that there are, those that allow nothing here behind the others.
pub fn all_roles() -> impl Iterator<Item = &'static RoleKind> {
    ROLES.iter().chain(&ROLES_OF_ABSENT_SERVICES)
}

/// Those of what this server does.
static ROLES: [RoleKind; 16] = [
    RoleKind {
        name: "admin",
        title: "Full Admin",
        description: "Can manage all cluster features, users and nodes included, use the web \
                      console, read and write all data.",
        extent: RoleExtent::Cluster,
        on_node: PrivilegeSet::ALL,
        in_bucket: PrivilegeSet::ALL,
        in_part: PrivilegeSet::NONE,
    },
    RoleKind {
        name: "ro_admin",
        title: "Read-Only Admin",
        description: "Can see everything but documents and users, and changes nothing.",
        extent: RoleExtent::Cluster,
        on_node: SEES_TASKS.with(PrivilegeSet::of(&[Stats, SimpleStats, SettingsRead])),
        in_bucket: SEES_BUCKETS,
        in_part: PrivilegeSet::NONE,
    },
    RoleKind {
        name: "cluster_admin",
        title: "Cluster Admin",
        description: "Can manage buckets and settings; sees no documents, changes no users and \
                      not which nodes there are.",
        extent: RoleExtent::Cluster,
        on_node: SEES_TASKS.with(PrivilegeSet::of(&[
            Stats,
            SimpleStats,
            SettingsRead,
            SettingsWrite,
            BucketCreate,
        ])),
        in_bucket: MANAGES_BUCKETS,
        in_part: PrivilegeSet::NONE,
    },
    RoleKind {
        name: "security_admin",
        title: "Security Admin",
        description: "Can manage users and groups that are not full administrators.",
        extent: RoleExtent::Cluster,
        on_node: SEES.with(PrivilegeSet::of(&[SecurityRead, SecurityWrite])),
        in_bucket: PrivilegeSet::NONE,
        in_part: PrivilegeSet::NONE,
    },
    RoleKind {
        name: "ro_security_admin",
        title: "Read-Only Security Admin",
        description: "Can see users, groups and their roles.",
        extent: RoleExtent::Cluster,
        on_node: SEES.with(PrivilegeSet::of(&[SecurityRead])),
        in_bucket: PrivilegeSet::NONE,
        in_part: PrivilegeSet::NONE,
    },
    RoleKind {
        name: "external_stats_reader",
        title: "External Stats Reader",
        description: "Can read the metrics that are for Prometheus.",
        extent: RoleExtent::Cluster,
        on_node: SEES.with(PrivilegeSet::of(&[SimpleStats])),
        in_bucket: PrivilegeSet::NONE,
        in_part: PrivilegeSet::NONE,
    },
    RoleKind {
        name: "replication_admin",
        title: "XDCR Admin",
        description: "Can see what replication between clusters has to know of buckets.",
        extent: RoleExtent::Cluster,
        on_node: SEES_TASKS.with(PrivilegeSet::of(&[SettingsRead])),
        in_bucket: SEES_BUCKETS,
        in_part: PrivilegeSet::NONE,
    },
    RoleKind {
        name: "bucket_admin",
        title: "Bucket Admin",
        description: "Can manage a bucket; sees no documents.",
        extent: RoleExtent::Bucket,
        on_node: SEES_TASKS,
        in_bucket: MANAGES_BUCKETS,
        in_part: PrivilegeSet::NONE,
    },
    RoleKind {
        name: "bucket_full_access",
        title: "Application Access",
        description: "Can read, write, stream and empty a bucket.",
        extent: RoleExtent::Bucket,
        on_node: SEES,
        in_bucket: READS
            .with(WRITES)
            .with(STREAMS)
            .with(SEES_BUCKETS)
            .with(PrivilegeSet::of(&[MetaWrite, BucketFlush])),
        in_part: PrivilegeSet::NONE,
    },
    RoleKind {
        name: "scope_admin",
        title: "Manage Scopes",
        description: "Can create and drop the collections of a scope.",
        extent: RoleExtent::Scope,
        on_node: SEES,
        in_bucket: PrivilegeSet::of(&[BucketRead]),
        in_part: PrivilegeSet::of(&[CollectionRead, CollectionWrite]),
    },
    RoleKind {
        name: "data_reader",
        title: "Data Reader",
        description: "Can read documents.",
        extent: RoleExtent::Collection,
        on_node: SEES,
        in_bucket: PrivilegeSet::of(&[BucketRead]),
        in_part: READS.with(PrivilegeSet::of(&[CollectionRead])),
    },
    RoleKind {
        name: "data_writer",
        title: "Data Writer",
        description: "Can write documents, not read them.",
        extent: RoleExtent::Collection,
        on_node: SEES,
        in_bucket: PrivilegeSet::of(&[BucketRead]),
        in_part: WRITES.with(PrivilegeSet::of(&[CollectionRead])),
    },
    RoleKind {
        name: "data_dcp_reader",
        title: "Data DCP Reader",
        description: "Can read documents and receive streams of them.",
        extent: RoleExtent::Collection,
        on_node: SEES,
        in_bucket: PrivilegeSet::of(&[BucketRead, DcpProducer]),
        in_part: READS.with(PrivilegeSet::of(&[CollectionRead, DcpStream])),
    },
    RoleKind {
        name: "data_backup",
        title: "Data Backup & Restore",
        description: "Can back a bucket up and restore it.",
        extent: RoleExtent::Bucket,
        on_node: SEES,
        in_bucket: READS.with(WRITES).with(STREAMS).with(SEES_BUCKETS).with(PrivilegeSet::of(&[
            MetaWrite,
            Backup,
            CollectionWrite,
        ])),
        in_part: PrivilegeSet::NONE,
    },
    RoleKind {
        name: "data_monitoring",
        title: "Data Monitor",
        description: "Can see the statistics of a bucket.",
        extent: RoleExtent::Collection,
        on_node: SEES_TASKS,
        in_bucket: PrivilegeSet::of(&[BucketRead, SimpleStats]),
        in_part: PrivilegeSet::of(&[CollectionRead]),
    },
    RoleKind {
        name: "replication_target",
        title: "XDCR Inbound",
        description: "Can write documents as another cluster has them.",
        extent: RoleExtent::Bucket,
        on_node: SEES,
        in_bucket: READS
            .with(WRITES)
            .with(SEES_BUCKETS)
            .with(PrivilegeSet::of(&[MetaWrite, CollectionWrite])),
        in_part: PrivilegeSet::NONE,
    },
];

/// A role as a user has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Role {
    /// Which.
    pub kind: &'static RoleKind,
    /// The bucket that it is limited to; `None` for all.
    pub bucket: Option<String>,
    /// The scope; `None` for all.
    pub scope: Option<String>,
    /// The collection; `None` for all.
    pub collection: Option<String>,
}

/// A bucket, a scope of it or a collection of that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RolePlace {
    /// The bucket.
    pub bucket: String,
    /// The scope; `None` for the whole bucket.
    pub scope: Option<String>,
    /// The collection; `None` for the whole scope, and without one.
    pub collection: Option<String>,
}

impl RolePlace {
    /// A whole bucket.
    pub fn of_bucket(bucket: &str) -> Self {
        Self { bucket: bucket.to_owned(), scope: None, collection: None }
    }
}

impl Role {
    /// The role that allows everything.
    pub fn admin() -> Self {
        let [kind, ..] = &ROLES;
        Self { kind, bucket: None, scope: None, collection: None }
    }

    /// Whether it allows everything.
    pub fn is_admin(&self) -> bool {
        self.kind.on_node == PrivilegeSet::ALL
    }

    /// Whether it is limited to this place, or to a part of it.
    pub(crate) fn is_in(&self, place: &RolePlace) -> bool {
        let is_same =
            |own: &Option<String>, named: &Option<String>| named.is_none() || own == named;
        self.bucket.as_deref() == Some(place.bucket.as_str())
            && is_same(&self.scope, &place.scope)
            && is_same(&self.collection, &place.collection)
    }

    /// Reads a role. `None` when there is no such one, or not in such a place.
    pub fn parse(text: &str) -> Option<Self> {
        let (name, place) = match text.trim().split_once('[') {
            None => (text.trim(), None),
            Some((name, rest)) => (name, Some(rest.strip_suffix(']')?)),
        };
        let kind = all_roles().find(|kind| kind.name == name)?;
        let mut names = place.into_iter().flat_map(|place| place.split(':'));
        let mut next = || match names.next() {
            Some("") => Err(()),
            Some("*") | None => Ok(None),
            Some(name) => Ok(Some(name.to_owned())),
        };
        let role =
            Self { kind, bucket: next().ok()?, scope: next().ok()?, collection: next().ok()? };
        let count = place.map_or(0, |place| place.split(':').count());
        let count_max = match kind.extent {
            RoleExtent::Cluster => 0,
            RoleExtent::Bucket => 1,
            RoleExtent::Scope => 2,
            RoleExtent::Collection => 3,
        };
        let is_limited = kind.extent != RoleExtent::Cluster;
        let is_place = count <= count_max && (count > 0) == is_limited;
        let is_nested = (role.bucket.is_some() || role.scope.is_none())
            && (role.scope.is_some() || role.collection.is_none());
        (is_place && is_nested).then_some(role)
    }

    /// Reads roles with commas between them.
    ///
    /// # Errors
    /// The roles that there are not.
    pub fn parse_all(text: &str) -> Result<Vec<Self>, Vec<String>> {
        let (mut roles, mut unknown) = (Vec::new(), Vec::new());
        for text in text.split(',').map(str::trim).filter(|text| !text.is_empty()) {
            match Self::parse(text) {
                Some(role) if roles.contains(&role) => {}
                Some(role) => roles.push(role),
                None => unknown.push(text.to_owned()),
            }
        }
        if unknown.is_empty() { Ok(roles) } else { Err(unknown) }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.kind.name)?;
        if self.kind.extent == RoleExtent::Cluster {
            return Ok(());
        }
        let shown = |name: &Option<String>| name.clone().unwrap_or_else(|| "*".to_owned());
        match (&self.scope, &self.collection) {
            (None, _) => write!(formatter, "[{}]", shown(&self.bucket)),
            (Some(scope), None) => write!(formatter, "[{}:{scope}]", shown(&self.bucket)),
            (Some(scope), Some(collection)) => {
                write!(formatter, "[{}:{scope}:{collection}]", shown(&self.bucket))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_are_read_as_they_are_written() {
        for (text, written) in [
            ("admin", Some("admin")),
            (" admin ", Some("admin")),
            ("bucket_admin[travel]", Some("bucket_admin[travel]")),
            ("data_reader[*]", Some("data_reader[*]")),
            ("data_reader[b]", Some("data_reader[b]")),
            ("data_reader[b:*:*]", Some("data_reader[b]")),
            ("data_reader[b:s]", Some("data_reader[b:s]")),
            ("data_reader[b:s:*]", Some("data_reader[b:s]")),
            ("data_reader[b:s:c]", Some("data_reader[b:s:c]")),
            ("scope_admin[b:s]", Some("scope_admin[b:s]")),
            ("admin[b]", None),
            ("data_reader", None),
            ("data_reader[]", None),
            ("data_reader[b", None),
            ("data_reader[b:*:c]", None),
            ("data_reader[*:s]", None),
            ("data_reader[b:s:c:d]", None),
            ("scope_admin[b:s:c]", None),
            ("bucket_admin[b:s]", None),
            ("root", None),
            ("", None),
        ] {
            let role = Role::parse(text).map(|role| role.to_string());
            assert_eq!(role.as_deref(), written, "{text:?}");
        }
        assert!(Role::admin().is_admin() && !Role::parse("ro_admin").unwrap().is_admin());
    }

    #[test]
    fn of_several_roles_those_that_there_are_not_are_named() {
        let roles = Role::parse_all("admin, data_reader[b],admin,").unwrap();
        assert_eq!(roles.len(), 2);
        assert_eq!(Role::parse_all("admin,root,x[y]").unwrap_err(), ["root", "x[y]"]);
    }

    #[test]
    fn every_role_has_words_and_a_name_of_its_own() {
        for kind in all_roles() {
            assert!(!kind.title.is_empty() && kind.description.ends_with('.'), "{kind:?}");
            assert_eq!(all_roles().filter(|other| other.name == kind.name).count(), 1);
            assert!(kind.on_node.contains(SystemSettings), "{}: clients bootstrap", kind.name);
        }
    }
}
