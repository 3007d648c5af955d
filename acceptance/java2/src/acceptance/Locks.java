package acceptance;

import com.couchbase.client.core.CouchbaseException;
import com.couchbase.client.java.document.JsonDocument;
import com.couchbase.client.java.error.CASMismatchException;
import com.couchbase.client.java.error.DocumentDoesNotExistException;
import com.couchbase.client.java.error.TemporaryLockFailureException;

/** Cases: locks. */
final class Locks {
  private static final int LOCK_SECONDS = 15;

  static void declare(Cases cases) {
    cases.add("get-and-lock", sdk -> {
      locked(sdk);
      Expect.equal(sdk.bucket.getAndLock(sdk.key(), LOCK_SECONDS), null,
          "a document that is not there");
    });
    cases.add("locked-write-is-refused", sdk -> {
      String key = locked(sdk).id();
      expectLocked(() -> sdk.bucket.upsert(Sdk.numbered(key, 2)));
      expectLocked(() -> sdk.bucket.remove(key));
      sdk.expectNumber(key, 1);
    });
    cases.add("locked-twice-is-refused", sdk -> {
      String key = locked(sdk).id();
      expectLocked(() -> sdk.bucket.getAndLock(key, LOCK_SECONDS));
    });
    cases.add("locked-is-readable", sdk -> {
      JsonDocument lock = locked(sdk);
      Expect.that(sdk.bucket.get(lock.id()).cas() != lock.cas(),
          "a read does not give away the lock");
      sdk.expectNumber(lock.id(), 1);
    });
    cases.add("write-with-lock-cas-unlocks", sdk -> {
      JsonDocument lock = locked(sdk);
      sdk.bucket.replace(Documents.withCas(lock.id(), 2, lock.cas()));
      sdk.bucket.upsert(Sdk.numbered(lock.id(), 3));
      sdk.expectNumber(lock.id(), 3);
    });
    cases.add("unlock", sdk -> {
      JsonDocument lock = locked(sdk);
      Expect.that(sdk.bucket.unlock(lock), "it is unlocked");
      sdk.bucket.upsert(Sdk.numbered(lock.id(), 2));
      sdk.expectNumber(lock.id(), 2);
    });
    cases.add("unlock-with-wrong-cas", sdk -> {
      JsonDocument lock = locked(sdk);
      expectLocked(() -> sdk.bucket.unlock(lock.id(), lock.cas() + 1));
      Expect.that(sdk.bucket.unlock(lock), "the lock has stayed");
    });
    cases.add("unlock-not-locked", sdk -> {
      JsonDocument stored = sdk.stored();
      Expect.error(() -> sdk.bucket.unlock(stored), CouchbaseException.class);
    });
    cases.add("unlock-missing", sdk -> Expect.error(() -> sdk.bucket.unlock(sdk.key(), 1),
        DocumentDoesNotExistException.class));
    cases.add("lock-ends", sdk -> {
      JsonDocument stored = sdk.stored();
      sdk.bucket.getAndLock(stored.id(), 1);
      Expect.within(Expiry.LIFETIME_MAX, () -> sdk.bucket.get(stored.id()).cas() == stored.cas(),
          "the lock ends by itself");
      sdk.bucket.upsert(Sdk.numbered(stored.id(), 2));
    });
  }

  /** A locked document with the CAS of the lock; it holds 1. */
  private static JsonDocument locked(Sdk sdk) {
    JsonDocument stored = sdk.stored();
    JsonDocument lock = sdk.bucket.getAndLock(stored.id(), LOCK_SECONDS);
    Expect.equal(lock.content(), stored.content(), "value");
    Expect.that(lock.cas() != stored.cas(), "a lock has a CAS of its own");
    return lock;
  }

  static void expectLocked(Expect.Attempt attempt) {
    Expect.error(attempt, TemporaryLockFailureException.class, CASMismatchException.class);
  }
}
