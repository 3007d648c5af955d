//! What a cluster can be called.

/// As the original has it.
const BYTES_MAX: usize = 256;

/// What [`is_cluster_name`] wants, for people.
pub const CLUSTER_NAME_RULE: &str = "at most 256 bytes and no control characters";

/// Whether a cluster can have this name.
pub fn is_cluster_name(name: &str) -> bool {
    name.len() <= BYTES_MAX && !name.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_short_and_visible() {
        for (name, is_one) in [("", true), ("Z\u{fc}rich 1", true), ("a\nb", false)] {
            assert_eq!(is_cluster_name(name), is_one, "{name:?}");
        }
        assert!(is_cluster_name(&"x".repeat(256)) && !is_cluster_name(&"x".repeat(257)));
        assert!(CLUSTER_NAME_RULE.contains(&BYTES_MAX.to_string()));
    }
}
