package acceptance;

import static com.couchbase.client.java.kv.AppendOptions.appendOptions;
import static com.couchbase.client.java.kv.DecrementOptions.decrementOptions;
import static com.couchbase.client.java.kv.GetOptions.getOptions;
import static com.couchbase.client.java.kv.IncrementOptions.incrementOptions;
import static com.couchbase.client.java.kv.PrependOptions.prependOptions;
import static com.couchbase.client.java.kv.UpsertOptions.upsertOptions;

import com.couchbase.client.core.error.CasMismatchException;
import com.couchbase.client.core.error.DocumentNotFoundException;
import com.couchbase.client.core.error.TimeoutException;
import com.couchbase.client.java.codec.RawBinaryTranscoder;

/** Cases: counters, and bytes that are added. */
final class NumbersAndBytes {
  static void declare(Cases cases) {
    cases.add("append", sdk -> {
      String key = storedBytes(sdk, "hello");
      sdk.binary.append(key, " world".getBytes());
      expectBytes(sdk, key, "hello world");
    });
    cases.add("prepend", sdk -> {
      String key = storedBytes(sdk, "world");
      sdk.binary.prepend(key, "hello ".getBytes());
      expectBytes(sdk, key, "hello world");
    });
    cases.add("append-with-stale-cas", sdk -> {
      String key = storedBytes(sdk, "hello");
      long cas = sdk.collection.get(key).cas();
      byte[] bytes = " ".getBytes();
      sdk.binary.append(key, bytes, appendOptions().cas(cas));
      Expect.error(() -> sdk.binary.append(key, bytes, appendOptions().cas(cas)),
          CasMismatchException.class);
      Expect.error(() -> sdk.binary.prepend(key, bytes, prependOptions().cas(cas)),
          CasMismatchException.class);
      expectBytes(sdk, key, "hello ");
    });
    cases.add("append-missing", sdk -> {
      Expect.error(() -> sdk.binary.append(sdk.key(), "x".getBytes()),
          DocumentNotFoundException.class);
      Expect.error(() -> sdk.binary.prepend(sdk.key(), "x".getBytes()),
          DocumentNotFoundException.class);
    });
    cases.add("increment-creates", sdk -> sdk.expectValue(counter(sdk, 100), 100));
    cases.add("increment", sdk -> {
      String key = counter(sdk, 1);
      Expect.that(sdk.binary.increment(key).cas() != 0, "a counter returns a CAS");
      Expect.equal(sdk.binary.increment(key, incrementOptions().delta(40)).content(), 42L,
          "counter");
    });
    cases.add("decrement", sdk -> {
      String key = counter(sdk, 42);
      Expect.equal(sdk.binary.decrement(key).content(), 41L, "counter");
      Expect.equal(sdk.binary.decrement(key, decrementOptions().delta(40)).content(), 1L,
          "counter");
    });
    cases.add("decrement-stops-at-zero", sdk -> {
      String key = counter(sdk, 2);
      Expect.equal(sdk.binary.decrement(key, decrementOptions().delta(10)).content(), 0L,
          "counter");
    });
    cases.add("increment-missing", sdk -> {
      String key = sdk.key();
      Expect.error(() -> sdk.binary.increment(key), DocumentNotFoundException.class);
      Expect.that(sdk.isGone(key), "a counter without an initial value is not created");
    });
    cases.add("increment-not-a-number", sdk -> {
      String key = storedBytes(sdk, "twelve");
      Throwable error = Expect.error(() -> sdk.binary.increment(key), Exception.class);
      Expect.that(!(error instanceof TimeoutException), "the refusal is no timeout");
      expectBytes(sdk, key, "twelve");
    });
    cases.add("counter-is-a-document", sdk -> {
      String key = sdk.stored(41).key();
      Expect.equal(sdk.binary.increment(key).content(), 42L, "counter");
      sdk.expectValue(key, 42);
    });
  }

  private static String storedBytes(Sdk sdk, String text) {
    return sdk.stored(text.getBytes(), upsertOptions().transcoder(RawBinaryTranscoder.INSTANCE))
        .key();
  }

  private static void expectBytes(Sdk sdk, String key, String text) {
    byte[] read = sdk.collection.get(key, getOptions().transcoder(RawBinaryTranscoder.INSTANCE))
        .contentAs(byte[].class);
    Expect.equal(new String(read), text, "value");
  }

  /** A counter with this value. */
  private static String counter(Sdk sdk, long initial) {
    String key = sdk.key();
    long value = sdk.binary.increment(key, incrementOptions().initial(initial)).content();
    Expect.equal(value, initial, "initial value");
    return key;
  }
}
