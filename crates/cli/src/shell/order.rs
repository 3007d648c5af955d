//! What can be said in a line.

use std::io::Write;
use std::process::ExitCode;

use anyhow::bail;
use document::Vbid;
use platform::process::{Caught, Interrupts};

use super::big_keys::{self, BigKeys};
use crate::delete::DeleteOrder;
use crate::document_tool::{DocumentOrder, Documents};
use crate::get::GetOrder;
use crate::hot_keys;
use crate::incr::IncrOrder;
use crate::scan::ScanOrder;
use crate::server_arguments::explain;
use crate::set::SetOrder;
use crate::stats::explain_group;
use crate::timings;
use crate::touch::TouchOrder;
use crate::why_slow;

/// Documents that hotkeys and monitor show.
const HOT_SHOWN: usize = 10;

/// A line.
#[derive(Debug, clap::Parser)]
#[command(no_binary_name = true, name = "settee shell", disable_version_flag = true)]
pub(super) struct ShellLine {
    #[command(subcommand)]
    pub(super) order: ShellOrder,
}

/// What a line asks for.
#[derive(Debug, clap::Subcommand)]
pub(super) enum ShellOrder {
    /// Show a document
    Get(GetOrder),
    /// Write a document
    Set(SetOrder),
    /// Remove documents
    #[command(visible_alias = "del")]
    Delete(DeleteOrder),
    /// Give a document another expiry
    #[command(visible_alias = "expire")]
    Touch(TouchOrder),
    /// Add to a counter
    Incr(IncrOrder),
    /// List keys
    #[command(visible_alias = "keys")]
    Scan(ScanOrder),
    /// Go on with the documents of another collection
    #[command(visible_alias = "select")]
    Use {
        /// Scope and name with a point between them; _default._default is where a shell begins
        #[arg(value_name = "SCOPE.COLLECTION")]
        collection: String,
    },
    /// Show statistics, as settee stats does
    #[command(visible_alias = "info")]
    Stats {
        /// The group, and what it is asked about
        words: Vec<String>,
    },
    /// Draw how long commands take, as settee timings does
    Latency {
        /// Which histograms
        #[arg(default_values_t = ["get_cmd".to_owned(), "store_cmd".to_owned()])]
        histograms: Vec<String>,
    },
    /// Find large documents among some that are chosen by chance
    Bigkeys(BigKeys),
    /// Sample which documents are asked for most
    Hotkeys {
        /// How long
        #[arg(default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=600))]
        seconds: u64,
    },
    /// Show every second what was asked for most in it; Ctrl-C ends it
    Monitor {
        /// How long
        #[arg(default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=600))]
        seconds: u64,
    },
    /// Show what took long, as settee why-slow does
    Slowlog,
    /// End the shell
    #[command(visible_alias = "quit")]
    Exit,
}

impl ShellOrder {
    /// Does it, and writes what there is to say of it. What shows something again and again ends
    /// early where somebody interrupts it, if `interrupts` are heard. The exit code tells whether
    /// everything was found that was meant.
    ///
    /// # Errors
    /// The server refuses, or is not there.
    pub(super) fn carry_out(
        &self,
        documents: &mut Documents,
        interrupts: Option<&Interrupts>,
        out: &mut dyn Write,
    ) -> anyhow::Result<ExitCode> {
        let text = match self {
            Self::Get(order) => return order.carry_out(documents, out),
            Self::Set(order) if order.wants_standard_input() => {
                bail!("say the body behind the key; in quotes, if there are spaces in it")
            }
            Self::Set(order) => return order.carry_out(documents, out),
            Self::Delete(order) => return order.carry_out(documents, out),
            Self::Touch(order) => return order.carry_out(documents, out),
            Self::Incr(order) => return order.carry_out(documents, out),
            Self::Scan(order) => return order.carry_out(documents, out),
            Self::Use { collection } => {
                documents.enter(collection)?;
                String::new()
            }
            Self::Stats { words } => statistics(documents, &words.join(" "))?,
            Self::Latency { histograms } => timings::drawn(
                documents.client().connection_of(Vbid(0)).map_err(explain)?,
                histograms,
            )?,
            Self::Bigkeys(order) => big_keys::find(order, documents)?,
            Self::Hotkeys { seconds } => sampled(documents, *seconds)?,
            Self::Monitor { seconds } => {
                let caught = interrupts.map(Interrupts::catch);
                for _ in 0..*seconds {
                    let text = sampled(documents, 1)?;
                    if caught.as_ref().is_some_and(Caught::has_come) {
                        break;
                    }
                    writeln!(out, "{text}")?;
                    out.flush()?;
                }
                String::new()
            }
            Self::Slowlog => {
                why_slow::told(documents.client().connection_of(Vbid(0)).map_err(explain)?)?
            }
            Self::Exit => String::new(),
        };
        out.write_all(text.as_bytes())?;
        Ok(ExitCode::SUCCESS)
    }
}

fn statistics(documents: &mut Documents, group: &str) -> anyhow::Result<String> {
    let connection = documents.client().connection_of(Vbid(0)).map_err(explain)?;
    let found = connection.statistics(group).map_err(|error| explain_group(error, group))?;
    Ok(found.iter().map(|(name, value)| format!("{name} {value}\n")).collect())
}

fn sampled(documents: &mut Documents, seconds: u64) -> anyhow::Result<String> {
    let connection = documents.client().connection_of(Vbid(0)).map_err(explain)?;
    Ok(hot_keys::sample(connection, seconds)?.to_table(HOT_SHOWN))
}
