//! Which request a response answers.

use protocol::FeatureSet;

/// The identity of a response: which request it answers, and in which dialect.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reply {
    /// The opcode byte of the request.
    pub(crate) opcode: u8,
    pub(crate) opaque: u32,
    pub(crate) features: FeatureSet,
}
