//! The `settee` binary.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;

#[global_allocator]
static ALLOCATOR: platform::allocator::Allocator = platform::allocator::Allocator;

/// An open, memory-first, persistent key-value server that Couchbase SDKs talk to unmodified.
#[derive(Parser)]
#[command(
    name = "settee",
    version,
    after_help = "Begin with `settee serve`, or `settee serve --dev` to try things out.\n\
                  `settee <command> --help` teaches each command, with examples."
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Start a node: one process, no configuration needed.
    Serve(Box<settee::ServeArguments>),
    /// Start several nodes on this machine as a cluster, and play with their failure.
    ClusterRun(Box<settee::ClusterRunArguments>),
    /// Put load on a node and measure it, with cbc-pillowfight's options.
    Load(Box<cli::LoadArguments>),
    /// Say whether a node serves, for whoever supervises it.
    Health(cli::HealthArguments),
    /// Show a running node's statistics.
    Stats(cli::StatsArguments),
    /// Show a running node's latency histograms.
    Timings(cli::TimingsArguments),
    /// List, set and delete the users of a running node.
    User(Box<cli::UserArguments>),
    /// List, create, edit, empty and delete the buckets of a running node.
    Bucket(Box<cli::BucketArguments>),
    /// List, create and drop the scopes and collections of a running node's bucket.
    Collection(Box<cli::CollectionArguments>),
    /// Back a bucket of a running node up, or list backups.
    Backup(Box<cli::BackupArguments>),
    /// Put a backup into the data directory of a node that does not run.
    Restore(Box<cli::RestoreArguments>),
    /// List damaged vBuckets of a running node, or have one begin anew.
    ResetVbucket(Box<cli::ResetVbucketArguments>),
    /// Show what is in couchstore files.
    Dump(cli::DumpArguments),
    /// Check everything in couchstore files.
    VerifyFile(cli::VerifyFileArguments),
    /// Print what a shell needs to complete these commands and their flags.
    #[command(after_help = COMPLETIONS_HELP)]
    Completions {
        /// The shell
        shell: Shell,
    },
}

const COMPLETIONS_HELP: &str = "\
Examples:
  settee completions bash > ~/.local/share/bash-completion/completions/settee
  settee completions zsh > \"${fpath[1]}/_settee\"
  settee completions fish > ~/.config/fish/completions/settee.fish";

fn main() -> ExitCode {
    platform::allocator::set_up();
    platform::process::keep_files_private();
    let result = match Arguments::parse().command {
        Command::Serve(arguments) => settee::serve(*arguments),
        Command::ClusterRun(arguments) => settee::cluster_run(&arguments),
        Command::Load(arguments) => cli::load::run(&arguments),
        Command::Health(arguments) => cli::health::run(&arguments),
        Command::Stats(arguments) => cli::stats::run(&arguments),
        Command::Timings(arguments) => cli::timings::run(&arguments),
        Command::User(arguments) => cli::user::run(&arguments),
        Command::Bucket(arguments) => cli::bucket::run(&arguments),
        Command::Collection(arguments) => cli::collection::run(&arguments),
        Command::Backup(arguments) => cli::backup::run(&arguments),
        Command::Restore(arguments) => settee::restore(&arguments),
        Command::ResetVbucket(arguments) => cli::reset_vbucket::run(&arguments),
        Command::Dump(arguments) => cli::dump::run(&arguments),
        Command::VerifyFile(arguments) => cli::verify_file::run(&arguments),
        Command::Completions { shell } => print_completions(shell),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            // The last word of a command that failed; nobody may be there to read it.
            drop(writeln!(io::stderr(), "settee: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// Writes the script at once: a reader that goes away early is its own business.
fn print_completions(shell: Shell) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "settee", &mut script);
    match io::stdout().write_all(&script) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(ExitCode::SUCCESS),
    }
}
