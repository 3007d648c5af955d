//! What clients want buckets to be.

/// What is said of a bucket: names and values, as in the original's configuration of one.
pub type BucketOrder = Vec<(String, String)>;

/// Why buckets are as they were. The texts are for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BucketOrderError {
    /// There is one of that name.
    Exists,
    /// There is none of that name.
    NotFound,
    /// It cannot be as is said: the name of what is wrong, and why.
    Invalid(String, String),
    /// Clients may try again.
    Failed(String),
}
