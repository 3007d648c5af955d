//! `settee scan`: the keys of a collection, or its documents.

use std::io::Write;
use std::ops::ControlFlow;
use std::process::ExitCode;

use anyhow::ensure;
use document::Vbid;
use protocol::Feature;
use protocol::range_scan::ScannedDocument;
use serde_json::Value;

use crate::document_tool::{DocumentOrder, Documents, bytes_member, cas_text, write_json};
use crate::output_format::OutputFormat;
use crate::printable::escaped;
use crate::range_scan::RangeScan;
use crate::server_arguments::explain;

/// Lists the keys of a collection, or its documents
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct ScanOrder {
    /// What keys begin with; all when it is left out
    #[arg(default_value = "", hide_default_value = true)]
    prefix: String,
    /// Show bodies, too: behind a tabulator, with escapes
    #[arg(long)]
    with_values: bool,
    /// End after so many
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
}

const HELP: &str = "\
Keys are in order within each vBucket, not over all of them; `settee scan | sort` orders them.
What was written in the last moment may be missing: a scan is of what is persisted when it begins.
With -o json each document is an object on a line of its own.

Examples:
  settee scan --password secret
  settee scan user:: --limit 10 --with-values -P secret
  settee scan -o json --with-values --collection shop.orders -P secret > orders.jsonl";

impl DocumentOrder for ScanOrder {
    fn carry_out(
        &self,
        documents: &mut Documents,
        out: &mut dyn Write,
    ) -> anyhow::Result<ExitCode> {
        let is_known = documents.has(Feature::Collections);
        ensure!(is_known, "only servers with Couchbase's extensions have scans");
        let (format, collection) = (documents.format, documents.collection);
        let mut left = self.limit;
        for vbid in 0..documents.client().routing().vbucket_count() {
            let scan = RangeScan {
                collection,
                prefix: self.prefix.as_bytes(),
                keys_only: !self.with_values,
                sample_count: None,
                count_max: left.unwrap_or(0),
            };
            let mut show = |document: &ScannedDocument<'_>| {
                left = left.map(|left| left.saturating_sub(1));
                self.show(format, document, out)
            };
            let connection = documents.client().connection_of(Vbid(vbid));
            let connection = connection.map_err(explain)?;
            let went = scan.run(connection, Vbid(vbid), &mut show)?;
            if went == ControlFlow::Break(()) || left == Some(0) {
                break;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl ScanOrder {
    fn show(
        &self,
        format: OutputFormat,
        document: &ScannedDocument<'_>,
        out: &mut dyn Write,
    ) -> anyhow::Result<()> {
        let ScannedDocument { name, value, cas, expiry, .. } = *document;
        match format {
            OutputFormat::Json => {
                let mut members = vec![bytes_member("key", name)];
                if self.with_values {
                    members.push(("cas".to_owned(), cas_text(cas.0)));
                    members.push(("expiry".to_owned(), Value::from(expiry)));
                    members.push(bytes_member("value", value));
                }
                write_json(members, out)
            }
            OutputFormat::Table if self.with_values => {
                Ok(writeln!(out, "{}\t{}", escaped(name), escaped(value))?)
            }
            OutputFormat::Table => Ok(writeln!(out, "{}", escaped(name))?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_a_line_whatever_its_bytes() {
        let document = ScannedDocument { name: b"k\n", value: b"\xff", ..Default::default() };
        for (with_values, format, expected) in [
            (false, OutputFormat::Table, "k\\n\n"),
            (true, OutputFormat::Table, "k\\n\t\\xff\n"),
            (false, OutputFormat::Json, "{\"key\":\"k\\n\"}\n"),
            (
                true,
                OutputFormat::Json,
                "{\"cas\":\"0\",\"expiry\":0,\"key\":\"k\\n\",\"value_base64\":\"/w==\"}\n",
            ),
        ] {
            let order = ScanOrder { prefix: String::new(), with_values, limit: None };
            let mut out = Vec::new();
            order.show(format, &document, &mut out).unwrap();
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }
}
