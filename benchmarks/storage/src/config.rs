//! What the bucket's own source of pacing expects under this name.

pub(crate) use bucket::ApplyConfig;
