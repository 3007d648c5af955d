package acceptance;

import static com.couchbase.client.java.kv.GetOptions.getOptions;
import static com.couchbase.client.java.kv.UpsertOptions.upsertOptions;

import com.couchbase.client.core.error.ValueTooLargeException;
import com.couchbase.client.java.codec.RawBinaryTranscoder;
import com.couchbase.client.java.codec.RawJsonTranscoder;
import com.couchbase.client.java.codec.RawStringTranscoder;
import com.couchbase.client.java.codec.Transcoder;
import com.couchbase.client.java.json.JsonObject;
import java.time.Duration;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Random;

/** Cases: values of all kinds and sizes. */
final class Values {
  private static final int BYTES_MAX = 20 << 20;
  private static final Duration PATIENT = Duration.ofSeconds(20);

  static void declare(Cases cases) {
    cases.add("json-values", Values::jsonValues);
    cases.add("json-as-text", sdk -> {
      String text = "{\"a\" : 1,  \"b\":[ 2 ] }";
      Expect.equal(roundTrip(sdk, text, RawJsonTranscoder.INSTANCE, String.class), text, "JSON");
    });
    cases.add("string-values", sdk -> {
      for (String text : List.of("plain", "\u00e4 \u65e5\u672c \ud83d\udecb", "{not json")) {
        Expect.equal(roundTrip(sdk, text, RawStringTranscoder.INSTANCE, String.class), text,
            "string");
      }
    });
    cases.add("binary-values", sdk -> {
      byte[] everything = new byte[25600];
      for (int index = 0; index < everything.length; index++) {
        everything[index] = (byte) index;
      }
      for (byte[] value : List.of(everything, new byte[] {0}, "\r\n".getBytes())) {
        expectBytesReturn(sdk, value);
      }
    });
    cases.add("empty-value", sdk -> expectBytesReturn(sdk, new byte[0]));
    cases.add("value-of-1-mib", sdk -> expectBytesReturn(sdk, noise(1 << 20)));
    cases.add("value-of-20-mib", sdk -> {
      expectBytesReturn(sdk, noise(BYTES_MAX));
      expectBytesReturn(sdk, noise(BYTES_MAX - 1));
    });
    cases.add("value-above-20-mib", sdk -> {
      String key = sdk.key();
      Expect.error(() -> sdk.collection.upsert(key, noise(BYTES_MAX + 1),
          upsertOptions().transcoder(RawBinaryTranscoder.INSTANCE).timeout(PATIENT)),
          ValueTooLargeException.class);
      Expect.that(sdk.isGone(key), "nothing is stored");
    });
    cases.add("compressible-value", sdk -> {
      String text = "to be compressed ".repeat(1000);
      Expect.equal(roundTrip(sdk, text, RawStringTranscoder.INSTANCE, String.class), text, "text");
    });
  }

  private static void jsonValues(Sdk sdk) {
    for (Object value : List.of(Map.of(), List.of(), Map.of("a", Map.of("b", List.of(1, 2))),
        Arrays.asList(true, false, null), "text", "", 0, -1, 9007199254740992L, 1.5,
        Collections.singletonMap("\u00e4", null), JsonObject.create().put("n", 1).toMap())) {
      sdk.expectValue(sdk.stored(value).key(), value);
    }
  }

  private static <T> T roundTrip(Sdk sdk, T value, Transcoder transcoder, Class<T> kind) {
    String key =
        sdk.stored(value, upsertOptions().transcoder(transcoder).timeout(PATIENT)).key();
    return sdk.collection.get(key, getOptions().transcoder(transcoder).timeout(PATIENT))
        .contentAs(kind);
  }

  private static void expectBytesReturn(Sdk sdk, byte[] value) {
    byte[] read = roundTrip(sdk, value, RawBinaryTranscoder.INSTANCE, byte[].class);
    Expect.that(Arrays.equals(read, value), "bytes come back unchanged");
  }

  /** Bytes that do not compress. */
  private static byte[] noise(int size) {
    byte[] bytes = new byte[size];
    new Random(size).nextBytes(bytes);
    return bytes;
  }
}
