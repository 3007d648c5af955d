//! Large documents, found among some that are chosen by chance.

use document::Vbid;
use protocol::range_scan::ScannedDocument;

use crate::document_tool::Documents;
use crate::printable::escaped;
use crate::range_scan::RangeScan;
use crate::server_arguments::explain;
use crate::table::Table;

/// Documents that are shown.
const SHOWN: usize = 10;

/// How large documents are looked for.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct BigKeys {
    /// About so many documents are looked at
    #[arg(long, value_name = "N", default_value_t = 10_000,
          value_parser = clap::value_parser!(u64).range(1..))]
    samples: u64,
}

/// The largest documents of a sample.
#[derive(Default)]
struct Largest {
    /// Size and name, the largest first.
    found: Vec<(usize, Vec<u8>)>,
    looked_at: u64,
    bytes: u64,
}

/// Looks at some documents of each vBucket.
pub(super) fn find(order: &BigKeys, documents: &mut Documents) -> anyhow::Result<String> {
    let collection = documents.collection;
    let vbucket_count = documents.client().routing().vbucket_count();
    let sample_count = order.samples.div_ceil(vbucket_count.into());
    let scan = RangeScan {
        collection,
        prefix: b"",
        keys_only: false,
        sample_count: Some(sample_count),
        count_max: 0,
    };
    let mut largest = Largest::default();
    for vbid in 0..vbucket_count {
        let connection = documents.client().connection_of(Vbid(vbid)).map_err(explain)?;
        let mut note = |document: &ScannedDocument<'_>| {
            largest.note(document.name, document.value.len());
            Ok(())
        };
        if scan.run(connection, Vbid(vbid), &mut note)?.is_break() {
            break;
        }
    }
    Ok(largest.to_table())
}

impl Largest {
    fn note(&mut self, name: &[u8], size: usize) {
        self.looked_at += 1;
        self.bytes = self.bytes.saturating_add(u64::try_from(size).unwrap_or(u64::MAX));
        let place = self.found.partition_point(|(other, _)| *other >= size);
        if place < SHOWN {
            self.found.insert(place, (size, name.to_vec()));
            self.found.truncate(SHOWN);
        }
    }

    fn to_table(&self) -> String {
        let mut table = Table::new(&["BYTES", "KEY"]);
        for (size, name) in &self.found {
            table.push(vec![size.to_string(), escaped(name)]);
        }
        let mean = self.bytes / self.looked_at.max(1);
        format!("{table}{} documents were looked at, of {mean} bytes on average\n", self.looked_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_ones_are_kept_in_order() {
        let mut largest = Largest::default();
        for size in (0..100).rev().chain(100..200) {
            largest.note(format!("k{size}").as_bytes(), size);
        }
        let table = largest.to_table();
        let rows: Vec<&str> = table.lines().collect();
        assert_eq!(rows[..3], ["BYTES  KEY", "199    k199", "198    k198"]);
        assert_eq!(rows.len(), 1 + SHOWN + 1);
        assert_eq!(rows[11], "200 documents were looked at, of 99 bytes on average");
        assert!(Largest::default().to_table().ends_with("0 bytes on average\n"));
    }
}
