//! Permissions as tools ask for them: `cluster.bucket[travel].data.docs!read`.

use auth::{Access, Privilege, PrivilegeSet};

/// Whether `access` gives a permission. What nobody has heard of is given to full administrators.
pub(crate) fn is_given(access: &Access, permission: &str) -> bool {
    let (general, place) = match permission.split_once('[') {
        None => (permission.to_owned(), None),
        Some((before, rest)) => {
            let Some((place, behind)) = rest.split_once(']') else { return false };
            let before = before.replace("cluster.collection", "cluster.bucket");
            let before = before.replace("cluster.scope", "cluster.bucket");
            (format!("{before}[]{behind}"), Some(place))
        }
    };
    let named = |privilege: &&Privilege| privilege.permission() == general;
    let privilege = Privilege::ALL.iter().find(named).unwrap_or(&Privilege::NodesWrite);
    privileges_at(access, place).contains(*privilege)
}

/// `.` stands for any bucket, scope or collection.
fn privileges_at(access: &Access, place: Option<&str>) -> PrivilegeSet {
    let Some(place) = place else { return access.on_node() };
    let mut names = place.splitn(3, ':');
    let bucket = match names.next() {
        None | Some("." | "") => access.in_any_bucket(),
        Some(name) => access.in_bucket(name),
    };
    match (names.next(), names.next()) {
        (None, _) if matches!(place, "." | "") => bucket.anywhere(),
        (None, _) => bucket.everywhere,
        (Some("."), _) => bucket.anywhere(),
        (Some(scope), None) => bucket.in_scope(scope),
        (Some(scope), Some(".")) => bucket.within_scope(scope),
        (Some(scope), Some(collection)) => bucket.in_collection(scope, collection),
    }
}

#[cfg(test)]
mod tests {
    use auth::Role;

    use super::*;

    #[test]
    fn a_permission_is_given_where_the_role_was() {
        let access = Access::of(Role::parse_all("data_reader[b:s:c]").unwrap().iter());
        for (permission, expected) in [
            ("cluster.pools!read", true),
            ("cluster.admin.security!read", false),
            ("cluster.bucket[b].data.docs!read", false),
            ("cluster.collection[b:s:c].data.docs!read", true),
            ("cluster.collection[b:s:d].data.docs!read", false),
            ("cluster.collection[b:s:.].data.docs!read", true),
            ("cluster.collection[b:.:.].data.docs!read", true),
            ("cluster.scope[b:s].data.docs!read", false),
            ("cluster.bucket[.].data.docs!read", true),
            ("cluster.bucket[.].data.docs!upsert", false),
            ("cluster.bucket[b].settings!read", true),
            ("cluster.bucket[b", false),
            ("cluster.something!else", false),
        ] {
            assert_eq!(is_given(&access, permission), expected, "{permission}");
        }
        let admin = Access::of([Role::admin()].iter());
        assert!(is_given(&admin, "cluster.something!else"));
    }
}
