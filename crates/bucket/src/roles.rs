//! Which vBuckets there are, which roles they play, and how their histories end and begin.

mod damage;
mod emptying;
mod life_error;
pub(crate) mod persistence_timeouts;
mod reset;
mod role_flush;
mod rollback;
pub(crate) mod sync_write_timeouts;
mod timeouts;
mod vbucket_life;

pub use life_error::LifeError;
pub use reset::ResetLoss;
pub use vbucket_life::NewRole;

pub(crate) use timeouts::Timeouts;
