package acceptance;

import com.couchbase.client.java.document.JsonLongDocument;
import com.couchbase.client.java.document.StringDocument;
import com.couchbase.client.java.error.CASMismatchException;
import com.couchbase.client.java.error.DocumentDoesNotExistException;
import java.util.concurrent.TimeoutException;

/** Cases: counters, and bytes that are added. */
final class NumbersAndBytes {
  static void declare(Cases cases) {
    declareBytes(cases);
    declareNumbers(cases);
  }

  private static void declareBytes(Cases cases) {
    cases.add("append", sdk -> {
      String key = storedText(sdk, "hello");
      sdk.bucket.append(StringDocument.create(key, " world"));
      expectText(sdk, key, "hello world");
    });
    cases.add("prepend", sdk -> {
      String key = storedText(sdk, "world");
      sdk.bucket.prepend(StringDocument.create(key, "hello "));
      expectText(sdk, key, "hello world");
    });
    cases.add("append-with-stale-cas", sdk -> {
      String key = storedText(sdk, "hello");
      long cas = sdk.bucket.get(key, StringDocument.class).cas();
      StringDocument more = StringDocument.create(key, " ", cas);
      sdk.bucket.append(more);
      Expect.error(() -> sdk.bucket.append(more), CASMismatchException.class);
      Expect.error(() -> sdk.bucket.prepend(more), CASMismatchException.class);
      expectText(sdk, key, "hello ");
    });
    cases.add("append-missing", sdk -> {
      StringDocument more = StringDocument.create(sdk.key(), "x");
      Expect.error(() -> sdk.bucket.append(more), DocumentDoesNotExistException.class);
      Expect.error(() -> sdk.bucket.prepend(more), DocumentDoesNotExistException.class);
    });
  }

  private static void declareNumbers(Cases cases) {
    cases.add("increment-creates", sdk -> expectNumber(sdk, counter(sdk, 100), 100));
    cases.add("increment", sdk -> {
      String key = counter(sdk, 1);
      Expect.that(sdk.bucket.counter(key, 1).cas() != 0, "a counter returns a CAS");
      expectCounted(sdk, key, 40, 42);
    });
    cases.add("decrement", sdk -> {
      String key = counter(sdk, 42);
      expectCounted(sdk, key, -1, 41);
      expectCounted(sdk, key, -40, 1);
    });
    cases.add("decrement-stops-at-zero", sdk -> expectCounted(sdk, counter(sdk, 2), -10, 0));
    cases.add("increment-missing", sdk -> {
      String key = sdk.key();
      Expect.error(() -> sdk.bucket.counter(key, 1), DocumentDoesNotExistException.class);
      Expect.that(sdk.isGone(key), "a counter without an initial value is not created");
    });
    cases.add("increment-not-a-number", sdk -> {
      String key = storedText(sdk, "twelve");
      Throwable error = Expect.error(() -> sdk.bucket.counter(key, 1), Exception.class);
      Expect.that(!(error.getCause() instanceof TimeoutException), "the refusal is no timeout");
      expectText(sdk, key, "twelve");
    });
    cases.add("counter-is-a-document", sdk -> {
      String key = sdk.bucket.upsert(JsonLongDocument.create(sdk.key(), 41L)).id();
      expectCounted(sdk, key, 1, 42);
      expectNumber(sdk, key, 42);
    });
  }

  private static String storedText(Sdk sdk, String text) {
    return sdk.bucket.upsert(StringDocument.create(sdk.key(), text)).id();
  }

  private static void expectText(Sdk sdk, String key, String text) {
    Expect.equal(sdk.bucket.get(key, StringDocument.class).content(), text, "value");
  }

  private static void expectNumber(Sdk sdk, String key, long wanted) {
    Expect.equal(sdk.bucket.get(key, JsonLongDocument.class).content(), wanted, "value");
  }

  private static void expectCounted(Sdk sdk, String key, long delta, long wanted) {
    Expect.equal(sdk.bucket.counter(key, delta).content(), wanted, "counter");
  }

  /** A counter with this value. */
  static String counter(Sdk sdk, long initial) {
    JsonLongDocument made = sdk.bucket.counter(sdk.key(), 1, initial);
    Expect.equal(made.content(), initial, "initial value");
    return made.id();
  }
}
