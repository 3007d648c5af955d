//! Who makes and deletes buckets on behalf of clients.

/// What a client says of a bucket that is to be made: names and values, as in the original's
/// configuration.
pub type BucketWords = Vec<(String, String)>;

/// Makes and deletes buckets, and knows their replicas. All may wait for files and other nodes.
pub trait BucketAdministrator: Send + Sync {
    /// Makes a bucket. It can be selected on return.
    ///
    /// # Errors
    /// See [`BucketRefusal`]; there is no such bucket then, or the one that there was.
    fn create(&self, name: &str, words: &BucketWords) -> Result<(), BucketRefusal>;

    /// Deletes a bucket. It cannot be selected on return; `done` is called when nothing of it is
    /// left, perhaps before. Returns the names of the nodes that do not know of it yet.
    ///
    /// # Errors
    /// See [`BucketRefusal`]; the bucket is as it was then, and `done` is not called.
    fn delete(
        &self,
        name: &str,
        done: Box<dyn FnOnce() + Send>,
    ) -> Result<Vec<String>, BucketRefusal>;

    /// How far the replicas of the bucket's active vBuckets on this node are.
    fn followers(&self, name: &str) -> Followers;
}

/// Whether replicas are of the histories that their active copies have now: those that are not hold
/// what was there before, and a failover would bring it back. The texts are for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Followers {
    /// All are.
    Followed,
    /// One is not, or not yet.
    Behind(String),
    /// One does not say.
    Silent(String),
}

/// Why buckets are as they were. The texts are for people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BucketRefusal {
    /// There is one of that name.
    #[error("Bucket with given name already exists")]
    Exists,
    /// There is none of that name.
    #[error("there is no such bucket")]
    NotFound,
    /// It cannot be as is said: the name of what is wrong, and why.
    #[error("{0}: {1}")]
    Invalid(String, String),
    /// Whoever wants it may try again.
    #[error("{0}")]
    Failed(String),
}
