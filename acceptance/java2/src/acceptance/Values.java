package acceptance;

import com.couchbase.client.java.document.ByteArrayDocument;
import com.couchbase.client.java.document.Document;
import com.couchbase.client.java.document.JsonArrayDocument;
import com.couchbase.client.java.document.JsonBooleanDocument;
import com.couchbase.client.java.document.JsonDocument;
import com.couchbase.client.java.document.JsonDoubleDocument;
import com.couchbase.client.java.document.JsonLongDocument;
import com.couchbase.client.java.document.JsonStringDocument;
import com.couchbase.client.java.document.RawJsonDocument;
import com.couchbase.client.java.document.SerializableDocument;
import com.couchbase.client.java.document.StringDocument;
import com.couchbase.client.java.document.json.JsonArray;
import com.couchbase.client.java.document.json.JsonObject;
import com.couchbase.client.java.error.RequestTooBigException;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.TimeUnit;

/** Cases: values of all kinds and sizes. */
final class Values {
  private static final int BYTES_MAX = 20 << 20;
  private static final long PATIENCE_SECONDS = 20;

  static void declare(Cases cases) {
    cases.add("json-values", Values::jsonValues);
    cases.add("json-as-text", sdk -> expectReturns(sdk,
        RawJsonDocument.create(sdk.key(), "{\"a\" : 1,  \"b\":[ 2 ] }")));
    cases.add("string-values", sdk -> {
      for (String text : List.of("plain", "\u00e4 \u65e5\u672c \ud83d\udecb", "{not json")) {
        expectReturns(sdk, StringDocument.create(sdk.key(), text));
      }
    });
    cases.add("objects-of-the-language", sdk -> expectReturns(sdk,
        SerializableDocument.create(sdk.key(), new java.util.ArrayList<>(List.of(1, "two")))));
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
      ByteArrayDocument large = ByteArrayDocument.create(sdk.key(), noise(BYTES_MAX + 1));
      Expect.error(() -> sdk.bucket.upsert(large, PATIENCE_SECONDS, TimeUnit.SECONDS),
          RequestTooBigException.class);
      Expect.that(sdk.isGone(large.id()), "nothing is stored");
    });
    cases.add("compressible-value", sdk -> expectReturns(sdk,
        StringDocument.create(sdk.key(), "to be compressed ".repeat(1000))));
  }

  private static void jsonValues(Sdk sdk) {
    for (JsonObject value : List.of(JsonObject.create(), JsonObject.create().putNull("\u00e4"),
        JsonObject.from(Map.of("a", JsonObject.from(Map.of("b", JsonArray.from(1, 2))))))) {
      expectReturns(sdk, JsonDocument.create(sdk.key(), value));
    }
    for (JsonArray value : List.of(JsonArray.empty(), JsonArray.from(true, false).addNull())) {
      expectReturns(sdk, JsonArrayDocument.create(sdk.key(), value));
    }
    for (String value : List.of("text", "")) {
      expectReturns(sdk, JsonStringDocument.create(sdk.key(), value));
    }
    for (long value : List.of(0L, -1L, 9007199254740992L)) {
      expectReturns(sdk, JsonLongDocument.create(sdk.key(), value));
    }
    expectReturns(sdk, JsonDoubleDocument.create(sdk.key(), 1.5));
    expectReturns(sdk, JsonBooleanDocument.create(sdk.key(), true));
  }

  private static <T> void expectReturns(Sdk sdk, Document<T> document) {
    sdk.bucket.upsert(document);
    Expect.equal(sdk.bucket.get(document.id(), document.getClass()).content(),
        document.content(), "value");
  }

  private static void expectBytesReturn(Sdk sdk, byte[] value) {
    ByteArrayDocument document = ByteArrayDocument.create(sdk.key(), value);
    sdk.bucket.upsert(document, PATIENCE_SECONDS, TimeUnit.SECONDS);
    byte[] read = sdk.bucket.get(document.id(), ByteArrayDocument.class, PATIENCE_SECONDS,
        TimeUnit.SECONDS).content();
    Expect.that(Arrays.equals(read, value), "bytes come back unchanged");
  }

  /** Bytes that do not compress. */
  private static byte[] noise(int size) {
    byte[] bytes = new byte[size];
    new Random(size).nextBytes(bytes);
    return bytes;
  }
}
