//! Paths of collections. Source:
//! docs/specification/protocol.md, sections 9.2 and 9.3.

use document::manifest::DEFAULT_NAME;

/// `scope.collection`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CollectionPath<'a> {
    /// The scope's name.
    pub scope: &'a str,
    /// The collection's name.
    pub collection: &'a str,
}

impl<'a> CollectionPath<'a> {
    /// Reads a path with exactly one dot; `None` is answered with EINVAL.
    pub fn parse(path: &'a str) -> Option<Self> {
        let (scope, collection) = path.split_once('.')?;
        let is_whole = !collection.contains('.');
        is_whole.then(|| Self { scope: or_default(scope), collection: or_default(collection) })
    }
}

/// The scope of a path with at most one dot, of which the part behind it does not matter.
pub fn scope_of(path: &str) -> Option<&str> {
    let (scope, rest) = path.split_once('.').unwrap_or((path, ""));
    (!rest.contains('.')).then(|| or_default(scope))
}

fn or_default(name: &str) -> &str {
    if name.is_empty() { DEFAULT_NAME } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_exactly_one_dot() {
        let path = |path| CollectionPath::parse(path).map(|path| (path.scope, path.collection));
        assert_eq!(path("s.c"), Some(("s", "c")));
        assert_eq!(path("."), Some(("_default", "_default")));
        assert_eq!(path("s."), Some(("s", "_default")));
        assert_eq!(path(".c"), Some(("_default", "c")));
        assert_eq!(path("s"), None);
        assert_eq!(path("s.c.d"), None);
        assert_eq!(path(""), None);
    }

    #[test]
    fn a_scope_may_have_a_tail() {
        assert_eq!(scope_of("s"), Some("s"));
        assert_eq!(scope_of("s.anything"), Some("s"));
        assert_eq!(scope_of(""), Some("_default"));
        assert_eq!(scope_of("a.b.c"), None);
    }
}
