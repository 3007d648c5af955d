//! For whom a tool shows what it has found.

/// How answers are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum OutputFormat {
    /// For people
    #[default]
    #[value(alias = "text")]
    Table,
    /// For programs
    Json,
}
