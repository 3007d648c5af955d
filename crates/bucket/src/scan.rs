//! Reading many documents: scans of what is durable in the order of keys, lists of keys, and a
//! document by chance.

mod cursor;
mod idle_timeout;
mod key_list;
mod key_range;
mod open_scan;
mod random_document;
mod refused;
mod registry;
mod scan_content;
mod scan_id;
mod scan_turn;
mod statistics;

pub use cursor::{PortionEnd, ScanSampling, ScanSink};
pub use key_range::KeyRange;
pub use open_scan::{ScanRequest, ScanSnapshot};
pub use refused::ScanRefused;
pub use scan_content::ScanContent;
pub use scan_id::ScanId;
pub use scan_turn::{ScanLimits, ScanTurn};
pub use statistics::{OpenScan, RangeScanStatistics};

pub(crate) use idle_timeout::start;
pub(crate) use registry::RangeScans;
