//! A certificate that ends soon is told of while the node runs, too: it may do so for years.

use std::sync::Arc;
use std::time::Duration;

use executor::{ExecutorPool, Next, Owner, OwnerIsGone, TaskContext, TaskKind, TaskName};
use tls::CertificateStore;

static REMINDER: TaskName =
    TaskName::new("CertificateReminder", TaskKind::NonIo).priority(10).may_be_dropped();

/// How often people are told.
const INTERVAL: Duration = Duration::from_secs(24 * 60 * 60);

/// Tells of the certificate that clients are shown, if people are to do something about it.
pub(crate) fn warn(certificates: &CertificateStore) {
    if let Some(why) = certificates.warning() {
        tracing::warn!(why, "the certificate that clients are shown is to be replaced");
    }
}

/// Has `remind` called once a day from now on. It ends with the owner.
pub(crate) fn start(
    pool: &ExecutorPool,
    certificates: &Arc<CertificateStore>,
    remind: impl Fn(&CertificateStore) + Send + 'static,
) -> Result<Owner, OwnerIsGone> {
    let owner = pool.register_owner("certificates");
    let certificates = Arc::clone(certificates);
    // Of the first day the start itself tells.
    let mut is_first = true;
    pool.schedule_detached(&owner, &REMINDER, move |_: &TaskContext<'_>| {
        if !is_first {
            remind(&certificates);
        }
        is_first = false;
        Next::SleepFor(INTERVAL)
    })?;
    Ok(owner)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::atomic::{AtomicU32, Ordering};

    use executor::DeterministicPool;
    use platform::simulated::SimulatedFiles;
    use platform::{Clock, WallTime};
    use tls::CertificateSources;

    use super::*;

    #[test]
    fn a_certificate_that_ends_soon_is_told_of_once_a_day() {
        let clock = Clock::simulated(WallTime(1_700_000_000_000_000_000));
        let mut pool = DeterministicPool::new(clock.clone(), 1);
        let sources = CertificateSources {
            directory: PathBuf::from("/data/certificates"),
            advertised_host: "h".to_owned(),
            ..CertificateSources::default()
        };
        let files = Arc::new(SimulatedFiles::new());
        let store = Arc::new(CertificateStore::open(clock, files, sources).unwrap());
        let told = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&told);
        let owner = start(pool.pool(), &store, move |certificates| {
            counted.fetch_add(certificates.warning().is_some().into(), Ordering::Relaxed);
        });
        let owner = owner.unwrap();
        // A node's own counts ten years.
        let mut days_later = |days| {
            pool.advance(INTERVAL * days, 10);
            told.load(Ordering::Relaxed)
        };
        assert_eq!(days_later(3600), 0, "it goes on for more than a month");
        let told = days_later(40);
        assert!(told > 0);
        assert_eq!(days_later(5), told + 5);
        drop(owner);
    }
}
