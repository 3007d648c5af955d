//! Choices that operators make by name.

/// A choice among a few named ones.
pub trait Named: Copy + PartialEq + Sized + 'static {
    /// What is chosen, for people.
    const WHAT: &str;
    /// All choices and their names.
    const NAMES: &[(&str, Self)];

    /// The name of this choice.
    fn name(self) -> &'static str {
        let named = Self::NAMES.iter().find(|(_, choice)| *choice == self);
        named.expect("every choice has a name").0
    }

    /// The choice of that name; otherwise a sentence that lists them.
    fn by_name(name: &str) -> Result<Self, String> {
        let named = Self::NAMES.iter().find(|(known, _)| *known == name);
        named.map(|(_, choice)| *choice).ok_or_else(|| {
            let names: Vec<&str> = Self::NAMES.iter().map(|(name, _)| *name).collect();
            format!("there is no {} `{name}`; there are: {}", Self::WHAT, names.join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::CompressionMode;

    #[test]
    fn choices_are_made_by_name() {
        assert_eq!(CompressionMode::by_name("active"), Ok(CompressionMode::Active));
        assert_eq!(CompressionMode::Active.name(), "active");
        let wrong = CompressionMode::by_name("Active").unwrap_err();
        assert!(wrong.contains("off, passive, active"), "{wrong}");
    }
}
