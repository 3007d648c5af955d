package acceptance;

import com.couchbase.client.java.document.JsonDocument;
import com.couchbase.client.java.document.json.JsonObject;
import com.couchbase.client.java.error.DocumentDoesNotExistException;
import java.time.Duration;

/** Cases: documents that expire. */
final class Expiry {
  // Expiry is counted in whole seconds of the clock, so a document may live a second less.
  private static final int LIFETIME_SECONDS = 2;
  static final Duration LIFETIME_MAX = Duration.ofSeconds(4);
  private static final long LIFETIME_MS_MIN = 900;

  static void declare(Cases cases) {
    cases.add("touch", sdk -> {
      String key = sdk.stored().id();
      long started = System.nanoTime();
      Expect.that(sdk.bucket.touch(key, LIFETIME_SECONDS), "it is touched");
      expectLifetime(sdk, key, started);
    });
    cases.add("touch-missing", sdk -> Expect.error(
        () -> sdk.bucket.touch(sdk.key(), LIFETIME_SECONDS),
        DocumentDoesNotExistException.class));
    cases.add("get-and-touch", sdk -> {
      String key = sdk.stored().id();
      long started = System.nanoTime();
      JsonDocument read = sdk.bucket.getAndTouch(key, LIFETIME_SECONDS);
      Expect.equal(read.content().getInt("n"), 1, "value");
      expectLifetime(sdk, key, started);
      Expect.equal(sdk.bucket.getAndTouch(key, LIFETIME_SECONDS), null, "an expired document");
    });
    cases.add("expiry", sdk -> {
      long started = System.nanoTime();
      String key = passing(sdk, LIFETIME_SECONDS);
      expectLifetime(sdk, key, started);
      Expect.equal(sdk.bucket.get(key), null, "an expired document");
      Expect.error(() -> sdk.bucket.replace(Sdk.numbered(key, 2)),
          DocumentDoesNotExistException.class);
      Expect.error(() -> sdk.bucket.remove(key), DocumentDoesNotExistException.class);
    });
    cases.add("expiry-is-removed-by-upsert", sdk -> {
      String passing = passing(sdk, 1);
      String lasting = passing(sdk, 1);
      sdk.bucket.upsert(Sdk.numbered(lasting, 2));
      Expect.within(LIFETIME_MAX, () -> sdk.isGone(passing), "the other document expires");
      sdk.expectNumber(lasting, 2);
    });
    cases.add("expired-can-be-inserted", sdk -> {
      String key = passing(sdk, 1);
      Expect.within(LIFETIME_MAX, () -> sdk.isGone(key), "the document expires");
      sdk.bucket.insert(Sdk.numbered(key, 2));
      sdk.expectNumber(key, 2);
    });
  }

  /** The key of a new document that lives so long. */
  static String passing(Sdk sdk, int seconds) {
    JsonObject content = JsonObject.create().put("n", 1);
    return sdk.bucket.upsert(JsonDocument.create(sdk.key(), seconds, content)).id();
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
