//! Who a consumer is, and to whom it speaks.

use platform::Entropy;

/// What a consumer says about itself.
#[derive(Clone)]
pub struct ConsumerNames {
    /// The node's name in topologies: what it acknowledges counts for this one.
    pub node: String,
    /// The connection's name.
    pub connection: String,
    /// The bucket.
    pub bucket: String,
    /// Its identity, if that is known: the producer may have an earlier one of that name, which was
    /// deleted.
    pub bucket_uuid: Option<String>,
    /// Who logs in.
    pub user: String,
    /// The password.
    pub password: String,
    /// Where the login's nonces come from.
    pub entropy: Entropy,
}
