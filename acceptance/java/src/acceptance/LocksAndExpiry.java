package acceptance;

import static com.couchbase.client.java.kv.GetAndLockOptions.getAndLockOptions;
import static com.couchbase.client.java.kv.GetOptions.getOptions;
import static com.couchbase.client.java.kv.RemoveOptions.removeOptions;
import static com.couchbase.client.java.kv.ReplaceOptions.replaceOptions;
import static com.couchbase.client.java.kv.UnlockOptions.unlockOptions;
import static com.couchbase.client.java.kv.UpsertOptions.upsertOptions;

import com.couchbase.client.core.error.CasMismatchException;
import com.couchbase.client.core.error.DocumentLockedException;
import com.couchbase.client.core.error.DocumentNotFoundException;
import com.couchbase.client.core.error.DocumentNotLockedException;
import com.couchbase.client.core.error.TimeoutException;
import com.couchbase.client.java.kv.GetResult;
import java.time.Duration;
import java.time.Instant;

/** Cases: locks, and documents that expire. */
final class LocksAndExpiry {
  private static final Duration LOCK = Duration.ofSeconds(15);
  // Expiry is counted in whole seconds of the clock, so a document may live a second less.
  private static final Duration LIFETIME = Duration.ofSeconds(2);
  static final Duration LIFETIME_MAX = Duration.ofSeconds(4);
  private static final long LIFETIME_MS_MIN = 900;

  static void declare(Cases cases) {
    declareLocks(cases);
    declareExpiry(cases);
  }

  private static void declareLocks(Cases cases) {
    cases.add("get-and-lock", sdk -> {
      locked(sdk);
      Expect.error(() -> sdk.collection.getAndLock(sdk.key(), LOCK),
          DocumentNotFoundException.class);
    });
    cases.add("locked-write-is-refused", sdk -> {
      String key = locked(sdk).key;
      expectLocked(() -> sdk.collection.upsert(key, 2, upsertOptions().timeout(Sdk.BRIEF)));
      expectLocked(() -> sdk.collection.remove(key, removeOptions().timeout(Sdk.BRIEF)));
      sdk.expectValue(key, 1);
    });
    cases.add("locked-twice-is-refused", sdk -> {
      String key = locked(sdk).key;
      expectLocked(
          () -> sdk.collection.getAndLock(key, LOCK, getAndLockOptions().timeout(Sdk.BRIEF)));
    });
    cases.add("locked-is-readable", sdk -> {
      Locked locked = locked(sdk);
      GetResult read = sdk.collection.get(locked.key);
      Expect.that(read.cas() != locked.cas, "a read does not give away the lock");
      sdk.expectValue(locked.key, 1);
    });
    cases.add("write-with-lock-cas-unlocks", sdk -> {
      Locked locked = locked(sdk);
      sdk.collection.replace(locked.key, 2, replaceOptions().cas(locked.cas));
      sdk.collection.upsert(locked.key, 3);
      sdk.expectValue(locked.key, 3);
    });
    cases.add("unlock", sdk -> {
      Locked locked = locked(sdk);
      sdk.collection.unlock(locked.key, locked.cas);
      sdk.collection.upsert(locked.key, 2);
      sdk.expectValue(locked.key, 2);
    });
    cases.add("unlock-with-wrong-cas", sdk -> {
      Locked locked = locked(sdk);
      Expect.error(() -> sdk.collection.unlock(locked.key, locked.cas + 1,
          unlockOptions().timeout(Sdk.BRIEF)), CasMismatchException.class,
          DocumentLockedException.class, TimeoutException.class);
      sdk.collection.unlock(locked.key, locked.cas);
    });
    cases.add("unlock-not-locked", sdk -> {
      Sdk.Stored stored = sdk.stored(1);
      Expect.error(() -> sdk.collection.unlock(stored.key(), stored.cas()),
          DocumentNotLockedException.class);
    });
    cases.add("unlock-missing", sdk -> Expect.error(() -> sdk.collection.unlock(sdk.key(), 1),
        DocumentNotFoundException.class));
    cases.add("lock-ends", sdk -> {
      Sdk.Stored stored = sdk.stored(1);
      sdk.collection.getAndLock(stored.key(), Duration.ofSeconds(1));
      Expect.within(LIFETIME_MAX, () -> sdk.collection.get(stored.key()).cas() == stored.cas(),
          "the lock ends by itself");
      sdk.collection.upsert(stored.key(), 2);
    });
  }

  private static void declareExpiry(Cases cases) {
    cases.add("touch", sdk -> {
      Sdk.Stored stored = sdk.stored(1);
      long started = System.nanoTime();
      long cas = sdk.collection.touch(stored.key(), LIFETIME).cas();
      Expect.that(cas > stored.cas(), "a new expiry is a mutation");
      expectLifetime(sdk, stored.key(), started);
    });
    cases.add("touch-missing", sdk -> Expect.error(
        () -> sdk.collection.touch(sdk.key(), LIFETIME), DocumentNotFoundException.class));
    cases.add("get-and-touch", sdk -> {
      String key = sdk.stored(1).key();
      long started = System.nanoTime();
      Expect.equal(sdk.collection.getAndTouch(key, LIFETIME).contentAs(Integer.class), 1, "value");
      expectLifetime(sdk, key, started);
      Expect.error(() -> sdk.collection.getAndTouch(key, LIFETIME),
          DocumentNotFoundException.class);
    });
    cases.add("expiry", sdk -> {
      long started = System.nanoTime();
      String key = sdk.stored(1, upsertOptions().expiry(LIFETIME)).key();
      expectLifetime(sdk, key, started);
      Expect.error(() -> sdk.collection.get(key), DocumentNotFoundException.class);
      Expect.error(() -> sdk.collection.replace(key, 2), DocumentNotFoundException.class);
      Expect.error(() -> sdk.collection.remove(key), DocumentNotFoundException.class);
    });
    cases.add("expiry-is-told", sdk -> {
      String key = sdk.stored(1, upsertOptions().expiry(Duration.ofHours(1))).key();
      Instant told = sdk.collection.get(key, getOptions().withExpiry(true)).expiryTime().get();
      long left = Duration.between(Instant.now(), told).toSeconds();
      Expect.that(left > 3500 && left < 3610, "an hour is left, or nearly so: " + left);
      Instant far = Instant.now().plus(Duration.ofDays(100));
      sdk.collection.touch(key, far);
      told = sdk.collection.get(key, getOptions().withExpiry(true)).expiryTime().get();
      Expect.equal(told.getEpochSecond(), far.getEpochSecond(), "an absolute time");
      String lasting = sdk.stored(1).key();
      GetResult read = sdk.collection.get(lasting, getOptions().withExpiry(true));
      Expect.that(read.expiryTime().isEmpty(), "without an expiry it lasts");
    });
    cases.add("expiry-is-removed-by-upsert", sdk -> {
      String passing = sdk.stored(1, upsertOptions().expiry(Duration.ofSeconds(1))).key();
      String lasting = sdk.stored(1, upsertOptions().expiry(Duration.ofSeconds(1))).key();
      sdk.collection.upsert(lasting, 2);
      Expect.within(LIFETIME_MAX, () -> sdk.isGone(passing), "the other document expires");
      sdk.expectValue(lasting, 2);
    });
    cases.add("preserve-expiry", sdk -> {
      long started = System.nanoTime();
      String key = sdk.stored(1, upsertOptions().expiry(LIFETIME)).key();
      sdk.collection.upsert(key, 2, upsertOptions().preserveExpiry(true));
      sdk.expectValue(key, 2);
      expectLifetime(sdk, key, started);
    });
    cases.add("expired-can-be-inserted", sdk -> {
      String key = sdk.stored(1, upsertOptions().expiry(Duration.ofSeconds(1))).key();
      Expect.within(LIFETIME_MAX, () -> sdk.isGone(key), "the document expires");
      sdk.collection.insert(key, 2);
      sdk.expectValue(key, 2);
    });
  }

  private record Locked(String key, long cas) {}

  /** A locked document and the CAS of the lock; it holds 1. */
  private static Locked locked(Sdk sdk) {
    Sdk.Stored stored = sdk.stored(1);
    GetResult lock = sdk.collection.getAndLock(stored.key(), LOCK);
    Expect.equal(lock.contentAs(Integer.class), 1, "value");
    Expect.that(lock.cas() != stored.cas(), "a lock has a CAS of its own");
    return new Locked(stored.key(), lock.cas());
  }

  /** The SDK repeats what met a lock until its time is over. */
  private static void expectLocked(Expect.Attempt attempt) {
    Expect.error(attempt, DocumentLockedException.class, TimeoutException.class);
  }

  /** Watches a document of that lifetime, which has just been stored, until it is gone. */
  private static void expectLifetime(Sdk sdk, String key, long started) throws Exception {
    long stored = System.nanoTime();
    for (boolean isGone = sdk.isGone(key);
        (System.nanoTime() - started) / 1_000_000 < LIFETIME_MS_MIN; isGone = sdk.isGone(key)) {
      Expect.that(!isGone, key + " is not gone at once");
      Thread.sleep(50);
    }
    Duration left = LIFETIME_MAX.minusNanos(System.nanoTime() - stored);
    Expect.within(left, () -> sdk.isGone(key), key + " expires");
  }
}
