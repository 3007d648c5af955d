package acceptance;

import com.couchbase.client.java.Bucket;
import com.couchbase.client.java.document.JsonDocument;
import com.couchbase.client.java.document.json.JsonObject;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.concurrent.atomic.AtomicLong;

/** The SDK's objects that the cases share. */
final class Sdk implements AutoCloseable {
  final Connection connection = Connection.as(Connection.byPassword());
  final Bucket bucket = connection.open();
  private final AtomicLong names = new AtomicLong();
  private final BufferedReader answers = new BufferedReader(new InputStreamReader(System.in));

  @Override
  public void close() {
    connection.close();
  }

  /** A key that no other case uses. */
  String key() {
    return "key-" + names.incrementAndGet();
  }

  /** What most cases store. */
  static JsonDocument numbered(String key, int number) {
    return JsonDocument.create(key, JsonObject.create().put("n", number));
  }

  /** A new document that holds 1, as the SDK returns it. */
  JsonDocument stored() {
    return bucket.upsert(numbered(key(), 1));
  }

  void expectNumber(String key, int wanted) {
    Expect.equal(bucket.get(key).content(), JsonObject.create().put("n", wanted),
        "value of " + key);
  }

  /** Whether no document has this key. */
  boolean isGone(String key) {
    return !bucket.exists(key);
  }

  /** Whether the SDK reaches the node of a key. */
  boolean answers(String key) {
    try {
      bucket.exists(key);
      return true;
    } catch (RuntimeException error) {
      return false;
    }
  }

  /** Asks whoever runs the node, and waits until it is done. */
  void order(String line) throws IOException {
    System.out.println(line);
    Expect.equal(answers.readLine(), "NODE ready", line);
  }
}
