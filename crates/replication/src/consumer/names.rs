//! Who a consumer is, and to whom it speaks.

/// What a consumer says about itself.
#[derive(Clone)]
pub struct ConsumerNames {
    /// The node's name in topologies: what it acknowledges counts for this one.
    pub node: String,
    /// The connection's name.
    pub connection: String,
    /// The bucket.
    pub bucket: String,
    /// Who logs in.
    pub user: String,
    /// The password.
    pub password: String,
}
