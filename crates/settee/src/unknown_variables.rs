//! Variables that look like settings and are none: a word that is spelled wrong would go unnoticed.

use std::ffi::OsString;

use clap::Command;

/// How variables of this program begin.
const PREFIX: &str = "SETTEE_";

/// Variables that tools and the package's scripts read.
const OTHERS: &[&str] = &[
    "SETTEE_CA",
    "SETTEE_CLIENT_CERT",
    "SETTEE_CLIENT_KEY",
    "SETTEE_NEW_PASSWORD",
    "SETTEE_RESTART_ON_UPGRADE",
];

/// Warns of each variable that no flag of this command reads.
pub(crate) fn warn(command: &Command) {
    for variable in unknown(command, std::env::vars_os().map(|(name, _)| name)) {
        tracing::warn!(variable, "no setting is called so: it is left alone");
    }
}

fn unknown(command: &Command, names: impl Iterator<Item = OsString>) -> Vec<String> {
    let is_known = |name: &str| {
        OTHERS.contains(&name)
            || command.get_arguments().any(|flag| flag.get_env().is_some_and(|env| env == name))
    };
    let named = names.filter_map(|name| name.into_string().ok());
    let mut unknown: Vec<_> =
        named.filter(|name| name.starts_with(PREFIX) && !is_known(name)).collect();
    unknown.sort_unstable();
    unknown
}

#[cfg(test)]
mod tests {
    use clap::Args;

    use super::*;
    use crate::serve::ServeArguments;

    #[test]
    fn what_no_flag_reads_is_unknown() {
        let command = ServeArguments::augment_args(Command::new("serve"));
        let names = ["SETTEE_PROT", "SETTEE_PORT", "SETTEE_DATA_DIR", "SETTEE_PASSWORD", "HOME"];
        let names = names.iter().chain(OTHERS).map(OsString::from);
        assert_eq!(unknown(&command, names), ["SETTEE_PROT"]);
    }
}
