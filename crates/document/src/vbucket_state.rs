//! What role a vBucket plays on this node.

/// The role of a vBucket on this node, with its number on the wire (SET_VBUCKET).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VbucketState {
    /// Serves reads and writes.
    Active = 1,
    /// Follows an active vBucket elsewhere.
    Replica = 2,
    /// About to become active; requests wait.
    Pending = 3,
    /// Serves nothing, waits to be deleted.
    Dead = 4,
}

impl VbucketState {
    /// The name in files and statistics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Replica => "replica",
            Self::Pending => "pending",
            Self::Dead => "dead",
        }
    }

    /// The state with this number on the wire.
    pub fn from_number(number: u8) -> Option<Self> {
        [Self::Active, Self::Replica, Self::Pending, Self::Dead]
            .into_iter()
            .find(|state| *state as u8 == number)
    }

    /// The state with this [`VbucketState::name`].
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Active, Self::Replica, Self::Pending, Self::Dead]
            .into_iter()
            .find(|state| state.name() == name)
    }
}
