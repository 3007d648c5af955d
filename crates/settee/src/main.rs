//! The `settee` binary.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;
use platform::files::RealFiles;

#[global_allocator]
static ALLOCATOR: platform::allocator::Allocator = platform::allocator::Allocator;

/// An open, memory-first, persistent key-value server that Couchbase SDKs talk to unmodified.
#[derive(Parser)]
#[command(
    name = "settee",
    version,
    after_help = "Begin with `settee serve`, or `settee serve --dev` to try things out.\n\
                  `settee <command> --help` teaches each command, with examples.\n\
                  cbstats, mctimings, cbepctl, couchbase-cli and cbbackupmgr are answered behind \
                  `settee`, too."
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
    /// Show a document of a running node.
    Get(Box<cli::DocumentTool<cli::GetOrder>>),
    /// Write a document of a running node.
    Set(Box<cli::DocumentTool<cli::SetOrder>>),
    /// Remove documents of a running node.
    Delete(Box<cli::DocumentTool<cli::DeleteOrder>>),
    /// Give a document of a running node another expiry.
    Touch(Box<cli::DocumentTool<cli::TouchOrder>>),
    /// Add to a counter of a running node, and show it.
    Incr(Box<cli::DocumentTool<cli::IncrOrder>>),
    /// List the keys of a running node's collection, or its documents.
    Scan(Box<cli::DocumentTool<cli::ScanOrder>>),
    /// Put load on a node and measure it, with cbc-pillowfight's options.
    Load(Box<cli::LoadArguments>),
    /// Say whether a node serves, for whoever supervises it.
    Health(cli::HealthArguments),
    /// Show a running node's statistics.
    Stats(cli::StatsArguments),
    /// Show a running node's latency histograms.
    Timings(cli::TimingsArguments),
    /// Show what a running node does, again and again.
    Top(cli::TopArguments),
    /// Read and write documents of a running node, line by line.
    Shell(Box<cli::ShellArguments>),
    /// Show what took long on a running node, and where the time went.
    WhySlow(cli::WhySlowArguments),
    /// Sample for a while which documents of a running node are asked for most.
    HotKeys(cli::HotKeysArguments),
    /// Change a parameter of a running node, until it stops.
    SetParam(cli::SetParamArguments),
    /// Have a running node log other lines, until it stops.
    SetLogLevel(Box<cli::SetLogLevelArguments>),
    /// List, set and delete the users of a running node.
    User(Box<cli::UserArguments>),
    /// List, set and delete the groups of a running node's users.
    Group(Box<cli::GroupArguments>),
    /// List, create, edit, empty and delete the buckets of a running node.
    Bucket(Box<cli::BucketArguments>),
    /// List, create and drop the scopes and collections of a running node's bucket.
    Collection(Box<cli::CollectionArguments>),
    /// Back a bucket of a running node up, or list backups.
    Backup(Box<cli::BackupArguments>),
    /// Put a backup into the data directory of a node that does not run.
    Restore(Box<cli::RestoreArguments>),
    /// Change a bucket's parameters until the node stops, or wait until everything is durable.
    #[command(hide = true)]
    EngineControl(Box<cli::EngineControlArguments>),
    /// List damaged vBuckets of a running node, or have one begin anew.
    ResetVbucket(Box<cli::ResetVbucketArguments>),
    /// Show what is in couchstore files.
    Dump(cli::DumpArguments),
    /// Check everything in couchstore files.
    VerifyFile(cli::VerifyFileArguments),
    /// Check a data directory, explain what is found, and propose what to do.
    Doctor(cli::DoctorArguments),
    /// Tell what of another server's directory a node takes over, and what not.
    Adopt(settee::AdoptArguments),
    /// Put logs, statistics, configuration without secrets and timings into one archive.
    Collect(Box<cli::CollectArguments>),
    /// Print what a shell needs to complete these commands and their flags.
    #[command(after_help = COMPLETIONS_HELP)]
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Write manual pages of these commands.
    #[command(after_help = MANUAL_HELP)]
    Man {
        /// Where the pages go; it is made when it is missing
        #[arg(value_name = "DIRECTORY")]
        directory: PathBuf,
    },
}

const COMPLETIONS_HELP: &str = "\
Examples:
  settee completions bash > ~/.local/share/bash-completion/completions/settee
  settee completions zsh > \"${fpath[1]}/_settee\"
  settee completions fish > ~/.config/fish/completions/settee.fish";

const MANUAL_HELP: &str = "\
Examples:
  settee man ~/.local/share/man/man1
  man settee-set-param";

fn main() -> ExitCode {
    platform::allocator::set_up();
    platform::process::keep_files_private();
    let meant = cli::aliases::meant(std::env::args_os().collect());
    let words = meant.unwrap_or_else(|refused| refused.exit());
    let result = match Arguments::parse_from(words).command {
        Command::Serve(arguments) => settee::serve(*arguments),
        Command::ClusterRun(arguments) => settee::cluster_run(&arguments),
        Command::Get(tool) => tool.run(),
        Command::Set(tool) => tool.run(),
        Command::Delete(tool) => tool.run(),
        Command::Touch(tool) => tool.run(),
        Command::Incr(tool) => tool.run(),
        Command::Scan(tool) => tool.run(),
        Command::Load(arguments) => cli::load::run(&arguments),
        Command::Health(arguments) => cli::health::run(&arguments),
        Command::Stats(arguments) => cli::stats::run(&arguments),
        Command::Timings(arguments) => cli::timings::run(&arguments),
        Command::Top(arguments) => cli::top::run(&arguments),
        Command::Shell(arguments) => cli::shell::run(&arguments),
        Command::WhySlow(arguments) => cli::why_slow::run(&arguments),
        Command::HotKeys(arguments) => cli::hot_keys::run(&arguments),
        Command::SetParam(arguments) => cli::set_param::run(&arguments),
        Command::SetLogLevel(arguments) => cli::set_log_level::run(&arguments),
        Command::User(arguments) => cli::user::run(&arguments),
        Command::Group(arguments) => cli::group::run(&arguments),
        Command::Bucket(arguments) => cli::bucket::run(&arguments),
        Command::Collection(arguments) => cli::collection::run(&arguments),
        Command::Backup(arguments) => cli::backup::run(&arguments),
        Command::Restore(arguments) => settee::restore(&arguments),
        Command::EngineControl(arguments) => cli::engine_control::run(&arguments),
        Command::ResetVbucket(arguments) => cli::reset_vbucket::run(&arguments),
        Command::Dump(arguments) => cli::dump::run(&arguments),
        Command::VerifyFile(arguments) => cli::verify_file::run(&arguments),
        Command::Doctor(arguments) => settee::doctor(&arguments),
        Command::Adopt(arguments) => settee::adopt(&arguments, &RealFiles),
        Command::Collect(arguments) => cli::collect::run(&arguments),
        Command::Man { directory } => {
            settee::write_manual(&RealFiles, &directory, Arguments::command())
                .map(|_| ExitCode::SUCCESS)
        }
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
