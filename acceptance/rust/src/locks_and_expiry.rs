//! Cases: locks, and documents that expire.

use std::time::{Duration, Instant, SystemTime};

use couchbase::error::{Error, ErrorKind};
use couchbase::options::kv_options::{
    GetAndLockOptions, GetOptions, RemoveOptions, ReplaceOptions, UnlockOptions, UpsertOptions,
};

use crate::case::{Failure, Outcome, expect, expect_equal, once, wait_until};
use crate::sdk::Sdk;

const LOCK: Duration = Duration::from_secs(15);
const SECOND: Duration = Duration::from_secs(1);
// Expiry is counted in whole seconds of the clock, so a document may live a second less.
const LIFETIME: Duration = Duration::from_secs(2);
const LIFETIME_MIN: Duration = Duration::from_millis(900);
pub const LIFETIME_MAX: Duration = Duration::from_secs(4);

cases! {
    "get-and-lock": get_and_lock,
    "locked-write-is-refused": locked_write,
    "locked-twice-is-refused": locked_twice,
    "locked-is-readable": locked_is_readable,
    "write-with-lock-cas-unlocks": write_with_lock_cas,
    "unlock": unlock,
    "unlock-with-wrong-cas": unlock_with_wrong_cas,
    "unlock-not-locked": unlock_not_locked,
    "unlock-missing": unlock_missing,
    "lock-ends": lock_ends,
    "touch": touch,
    "touch-missing": touch_missing,
    "get-and-touch": get_and_touch,
    "expiry": expiry,
    "expiry-is-told": expiry_is_told,
    "expiry-is-removed-by-upsert": expiry_is_removed,
    "preserve-expiry": preserve_expiry,
    "expired-can-be-inserted": expired_can_be_inserted,
}

/// A locked document and the CAS of the lock; it holds 1.
async fn locked(sdk: &Sdk) -> Outcome<(String, u64)> {
    let (key, stored) = sdk.stored(1, None).await?;
    let lock = sdk.collection.get_and_lock(&key, LOCK, None).await?;
    expect_equal(&lock.content_as::<i64>()?, &1, "value")?;
    expect(lock.cas() != stored.cas(), "a lock has a CAS of its own")?;
    Ok((key, lock.cas()))
}

async fn get_and_lock(sdk: &Sdk) -> Outcome {
    locked(sdk).await?;
    let missing = sdk.collection.get_and_lock(sdk.key(), LOCK, None);
    refused!(missing, ErrorKind::DocumentNotFound)
}

async fn locked_write(sdk: &Sdk) -> Outcome {
    let (key, _) = locked(sdk).await?;
    let store = sdk.collection.upsert(&key, 2, UpsertOptions::new().retry_strategy(once()));
    refused!(store, ErrorKind::DocumentLocked)?;
    let remove = sdk.collection.remove(&key, RemoveOptions::new().retry_strategy(once()));
    refused!(remove, ErrorKind::DocumentLocked)?;
    sdk.expect_value(&key, 1).await
}

async fn locked_twice(sdk: &Sdk) -> Outcome {
    let (key, _) = locked(sdk).await?;
    let options = GetAndLockOptions::new().retry_strategy(once());
    refused!(sdk.collection.get_and_lock(&key, LOCK, options), ErrorKind::DocumentLocked)
}

async fn locked_is_readable(sdk: &Sdk) -> Outcome {
    let (key, cas) = locked(sdk).await?;
    let read = sdk.collection.get(&key, None).await?;
    expect(read.cas() != cas, "a read does not give away the lock")?;
    sdk.expect_value(&key, 1).await
}

async fn write_with_lock_cas(sdk: &Sdk) -> Outcome {
    let (key, cas) = locked(sdk).await?;
    sdk.collection.replace(&key, 2, ReplaceOptions::new().cas(cas)).await?;
    sdk.collection.upsert(&key, 3, None).await?;
    sdk.expect_value(&key, 3).await
}

async fn unlock(sdk: &Sdk) -> Outcome {
    let (key, cas) = locked(sdk).await?;
    sdk.collection.unlock(&key, cas, None).await?;
    sdk.collection.upsert(&key, 2, None).await?;
    sdk.expect_value(&key, 2).await
}

async fn unlock_with_wrong_cas(sdk: &Sdk) -> Outcome {
    let (key, cas) = locked(sdk).await?;
    let wrong = sdk.collection.unlock(&key, cas + 1, UnlockOptions::new().retry_strategy(once()));
    refused!(wrong, ErrorKind::CasMismatch | ErrorKind::DocumentLocked)?;
    Ok(sdk.collection.unlock(&key, cas, None).await?)
}

async fn unlock_not_locked(sdk: &Sdk) -> Outcome {
    let (key, stored) = sdk.stored(1, None).await?;
    refused!(sdk.collection.unlock(&key, stored.cas(), None), ErrorKind::DocumentNotLocked)
}

async fn unlock_missing(sdk: &Sdk) -> Outcome {
    refused!(sdk.collection.unlock(sdk.key(), 1, None), ErrorKind::DocumentNotFound)
}

async fn lock_ends(sdk: &Sdk) -> Outcome {
    let (key, stored) = sdk.stored(1, None).await?;
    sdk.collection.get_and_lock(&key, SECOND, None).await?;
    wait_until(LIFETIME_MAX, "the lock ends by itself", || async {
        let read = sdk.collection.get(&key, None).await;
        read.is_ok_and(|read| read.cas() == stored.cas())
    })
    .await?;
    sdk.collection.upsert(&key, 2, None).await?;
    Ok(())
}

/// Watches a document of that lifetime, which has just been stored, until it is gone.
async fn expect_lifetime(sdk: &Sdk, key: &str, started: Instant) -> Outcome {
    let stored = Instant::now();
    loop {
        let is_gone = sdk.is_gone(key).await;
        if started.elapsed() >= LIFETIME_MIN {
            break;
        }
        expect(!is_gone, "it is not gone at once")?;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let left = LIFETIME_MAX.saturating_sub(stored.elapsed());
    wait_until(left, "it expires", || sdk.is_gone(key)).await
}

async fn touch(sdk: &Sdk) -> Outcome {
    let (key, stored) = sdk.stored(1, None).await?;
    let started = Instant::now();
    let touched = sdk.collection.touch(&key, LIFETIME, None).await?;
    expect(touched.cas() > stored.cas(), "a new expiry is a mutation")?;
    expect_lifetime(sdk, &key, started).await
}

async fn touch_missing(sdk: &Sdk) -> Outcome {
    refused!(sdk.collection.touch(sdk.key(), LIFETIME, None), ErrorKind::DocumentNotFound)
}

async fn get_and_touch(sdk: &Sdk) -> Outcome {
    let (key, _) = sdk.stored(1, None).await?;
    let started = Instant::now();
    let read = sdk.collection.get_and_touch(&key, LIFETIME, None).await?;
    expect_equal(&read.content_as::<i64>()?, &1, "value")?;
    expect_lifetime(sdk, &key, started).await?;
    refused!(sdk.collection.get_and_touch(&key, LIFETIME, None), ErrorKind::DocumentNotFound)
}

async fn expiring(sdk: &Sdk, lifetime: Duration) -> Result<String, Error> {
    Ok(sdk.stored(1, UpsertOptions::new().expiry(lifetime)).await?.0)
}

async fn expiry(sdk: &Sdk) -> Outcome {
    let started = Instant::now();
    let key = expiring(sdk, LIFETIME).await?;
    expect_lifetime(sdk, &key, started).await?;
    refused!(sdk.collection.get(&key, None), ErrorKind::DocumentNotFound)?;
    refused!(sdk.collection.replace(&key, 2, None), ErrorKind::DocumentNotFound)?;
    refused!(sdk.collection.remove(&key, None), ErrorKind::DocumentNotFound)
}

/// When a document expires, in seconds of the clock.
async fn told(sdk: &Sdk, key: &str) -> Result<Option<i64>, Failure> {
    let read = sdk.collection.get(key, GetOptions::new().expiry(true)).await?;
    // Of a document without an expiry the SDK tells the second 0.
    Ok(read.expiry_time().map(|time| time.timestamp()).filter(|seconds| *seconds != 0))
}

async fn expiry_is_told(sdk: &Sdk) -> Outcome {
    let key = expiring(sdk, Duration::from_secs(3600)).await?;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_secs() as i64;
    let left = told(sdk, &key).await?.ok_or("an expiry")? - now;
    expect((3500..3610).contains(&left), "an hour is left, or nearly so")?;
    let (lasting, _) = sdk.stored(1, None).await?;
    expect_equal(&told(sdk, &lasting).await?, &None, "an expiry")
}

async fn expiry_is_removed(sdk: &Sdk) -> Outcome {
    let (passing, lasting) = (expiring(sdk, SECOND).await?, expiring(sdk, SECOND).await?);
    sdk.collection.upsert(&lasting, 2, None).await?;
    wait_until(LIFETIME_MAX, "the other document expires", || sdk.is_gone(&passing)).await?;
    sdk.expect_value(&lasting, 2).await
}

async fn preserve_expiry(sdk: &Sdk) -> Outcome {
    let started = Instant::now();
    let key = expiring(sdk, LIFETIME).await?;
    sdk.collection.upsert(&key, 2, UpsertOptions::new().preserve_expiry(true)).await?;
    sdk.expect_value(&key, 2).await?;
    expect_lifetime(sdk, &key, started).await
}

async fn expired_can_be_inserted(sdk: &Sdk) -> Outcome {
    let key = expiring(sdk, SECOND).await?;
    wait_until(LIFETIME_MAX, "the document expires", || sdk.is_gone(&key)).await?;
    sdk.collection.insert(&key, 2, None).await?;
    sdk.expect_value(&key, 2).await
}
