package acceptance;

import static com.couchbase.client.java.kv.UpsertOptions.upsertOptions;

import com.couchbase.client.java.Bucket;
import com.couchbase.client.java.Collection;
import com.couchbase.client.java.codec.RawBinaryTranscoder;
import com.couchbase.client.java.codec.RawJsonTranscoder;
import com.couchbase.client.java.codec.Transcoder;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.stream.IntStream;

/** Writes to a bucket, and knows what is in it. */
final class Writer {
  final Bucket bucket;
  final Collection collection;
  /** By scope, collection and key, with points between them. */
  final Map<String, byte[]> documents = new TreeMap<>();

  Writer(Bucket bucket) {
    this.bucket = bucket;
    collection = bucket.defaultCollection();
  }

  static String qualified(Collection collection, String key) {
    return collection.scopeName() + "." + collection.name() + "." + key;
  }

  static byte[] json(String key, int size) {
    return ("{\"key\":\"" + key + "\",\"filler\":\"" + "x".repeat(size) + "\"}")
        .getBytes(StandardCharsets.UTF_8);
  }

  /** Bytes that are no text and cannot be compressed. */
  static byte[] binary(int seed, int size) {
    byte[] bytes = new byte[size];
    new Random(seed).nextBytes(bytes);
    bytes[0] = (byte) 0xff;
    return bytes;
  }

  void store(String key, byte[] value) {
    store(collection, key, value);
  }

  void store(Collection into, String key, byte[] value) {
    storing(into, key, value, RawJsonTranscoder.INSTANCE).join();
  }

  void storeBinary(String key, byte[] value) {
    storing(collection, key, value, RawBinaryTranscoder.INSTANCE).join();
  }

  void storeFor(String key, byte[] value, Duration life) {
    collection.upsert(key, value,
        upsertOptions().transcoder(RawJsonTranscoder.INSTANCE).expiry(life));
  }

  void remove(String key) {
    collection.remove(key);
    documents.remove(qualified(collection, key));
  }

  /** Many documents at once. */
  void storeMany(String name, int count, int size) {
    storeMany(collection, keys(name, count), size);
  }

  void storeMany(Collection into, List<String> keys, int size) {
    all(keys.stream().map(key -> storing(into, key, json(key, size),
        RawJsonTranscoder.INSTANCE)).toList());
  }

  /** New documents, JSON and bytes, of which some are changed and some removed. */
  void churn(String name, int count, int size) {
    storeMany(name, count, size / 2);
    List<CompletableFuture<?>> changes = new ArrayList<>();
    for (int number = 0; number < count; number++) {
      String key = name + "-" + number;
      switch (number % 4) {
        case 0 -> changes.add(storing(collection, key, json(key, size),
            RawJsonTranscoder.INSTANCE));
        case 1 -> changes.add(storing(collection, key, binary(number, size + 1),
            RawBinaryTranscoder.INSTANCE));
        case 2 -> {
          changes.add(collection.async().remove(key));
          documents.remove(qualified(collection, key));
        }
        default -> { }
      }
    }
    all(changes);
  }

  static List<String> keys(String name, int count) {
    return IntStream.range(0, count).mapToObj(number -> name + "-" + number).toList();
  }

  private static void all(List<? extends CompletableFuture<?>> changes) {
    CompletableFuture.allOf(changes.toArray(CompletableFuture[]::new)).join();
  }

  private CompletableFuture<?> storing(Collection into, String key, byte[] value,
      Transcoder transcoder) {
    documents.put(qualified(into, key), value);
    return into.async().upsert(key, value, upsertOptions().transcoder(transcoder));
  }
}
