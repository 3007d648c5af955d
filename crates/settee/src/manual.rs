//! Manual pages, from the command line's own description.

use std::path::Path;

use anyhow::Context;
use clap::Command;
use clap_mangen::Man;
use platform::Files;

/// Writes a page for the whole and for each command, those below commands included, as
/// `settee-<command>.1`. Returns how many there are.
///
/// # Errors
/// A page cannot be written.
pub fn write_manual(
    files: &dyn Files,
    directory: &Path,
    command: Command,
) -> anyhow::Result<usize> {
    files
        .create_directories(directory)
        .with_context(|| format!("{} cannot be made; give another", directory.display()))?;
    let mut command = command.disable_help_subcommand(true);
    // Names of commands below others become whole, and flags of the whole theirs.
    command.build();
    write_page(files, directory, &command)
}

fn write_page(files: &dyn Files, directory: &Path, command: &Command) -> anyhow::Result<usize> {
    let manual = Man::new(command.clone());
    let (name, mut page) = (manual.get_filename(), Vec::new());
    manual.render(&mut page)?;
    files
        .replace_all(&directory.join(&name), &page)
        .with_context(|| format!("the page {name} cannot be written"))?;
    let mut count = 1;
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        count += write_page(files, directory, below)?;
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use platform::files::{RealFiles, read_text};

    use super::*;

    #[test]
    fn each_command_has_a_page() {
        let below = Command::new("list").about("Lists").after_help("Examples:\n  a list");
        let hidden = Command::new("secret").hide(true);
        let command = Command::new("a").subcommand(Command::new("b").subcommand(below));
        let command = command.subcommand(hidden);
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("man1");
        assert_eq!(write_manual(&RealFiles, &place, command).unwrap(), 3);
        let mut names = RealFiles.list(&place).unwrap();
        names.sort();
        assert_eq!(names, ["a-b-list.1", "a-b.1", "a.1"]);
        let page = read_text(&place.join("a-b-list.1")).unwrap();
        assert!(page.contains(".TH a-b-list 1"), "{page}");
        assert!(page.contains("Lists") && page.contains("Examples"), "{page}");
    }
}
