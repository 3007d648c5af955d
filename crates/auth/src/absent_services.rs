//! Roles of services that there are not: users may have them, as programs that set up an
//! application for several services give them, and nothing is allowed by them.
//!
//! Those that allow documents by themselves, of views, backups and the Sync Gateway, are not among
//! them: whoever had one would be refused what it promises.

use crate::privilege::PrivilegeSet;
use crate::role::RoleExtent::{self, Bucket, Cluster, Collection, Scope};
use crate::role::{RoleKind, SEES};

const fn of_service(
    name: &'static str,
    title: &'static str,
    description: &'static str,
    extent: RoleExtent,
) -> RoleKind {
    let none = PrivilegeSet::NONE;
    RoleKind { name, title, description, extent, on_node: SEES, in_bucket: none, in_part: none }
}

const fn query(name: &'static str, title: &'static str, extent: RoleExtent) -> RoleKind {
    of_service(name, title, "Of the query service, which is not here: allows nothing.", extent)
}

const fn search(name: &'static str, title: &'static str, extent: RoleExtent) -> RoleKind {
    of_service(name, title, "Of the search service, which is not here: allows nothing.", extent)
}

const fn analytics(name: &'static str, title: &'static str, extent: RoleExtent) -> RoleKind {
    of_service(name, title, "Of the analytics service, which is not here: allows nothing.", extent)
}

const fn eventing(name: &'static str, title: &'static str, extent: RoleExtent) -> RoleKind {
    of_service(name, title, "Of the eventing service, which is not here: allows nothing.", extent)
}

/// All of them.
pub(crate) static ROLES_OF_ABSENT_SERVICES: [RoleKind; 25] = [
    query("query_select", "Query Select", Collection),
    query("query_insert", "Query Insert", Collection),
    query("query_update", "Query Update", Collection),
    query("query_delete", "Query Delete", Collection),
    query("query_manage_index", "Query Manage Index", Collection),
    query("query_use_sequential_scans", "Query Use Sequential Scans", Collection),
    query("query_manage_functions", "Manage Scope Functions", Scope),
    query("query_execute_functions", "Execute Scope Functions", Scope),
    query("query_manage_external_functions", "Manage Scope External Functions", Scope),
    query("query_execute_external_functions", "Execute Scope External Functions", Scope),
    query("query_manage_sequences", "Query Manage Sequences", Scope),
    query("query_use_sequences", "Query Use Sequences", Scope),
    query("query_system_catalog", "Query System Catalog", Cluster),
    query("query_external_access", "Query CURL Access", Cluster),
    query("query_manage_global_functions", "Manage Global Functions", Cluster),
    query("query_execute_global_functions", "Execute Global Functions", Cluster),
    query("query_manage_global_external_functions", "Manage Global External Functions", Cluster),
    query("query_execute_global_external_functions", "Execute Global External Functions", Cluster),
    search("fts_admin", "Search Admin", Bucket),
    search("fts_searcher", "Search Reader", Collection),
    analytics("analytics_admin", "Analytics Admin", Cluster),
    analytics("analytics_reader", "Analytics Reader", Cluster),
    analytics("analytics_manager", "Analytics Manager", Bucket),
    analytics("analytics_select", "Analytics Select", Collection),
    eventing("eventing_manage_functions", "Manage Scope Eventing Functions", Scope),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::role::Role;

    #[test]
    fn they_may_be_given_where_they_belong_and_allow_no_document() {
        for text in [
            "query_select[b:s:c]",
            "query_use_sequences[b:s]",
            "fts_admin[*]",
            "query_system_catalog",
        ] {
            let role = Role::parse(text).unwrap();
            assert_eq!(role.kind.in_bucket.with(role.kind.in_part), PrivilegeSet::NONE, "{text}");
        }
        for text in ["query_select", "query_use_sequences[b:s:c]", "backup_admin", "views_admin[b]"]
        {
            assert_eq!(Role::parse(text), None, "{text}");
        }
    }
}
