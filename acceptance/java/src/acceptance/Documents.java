package acceptance;

import static com.couchbase.client.java.kv.RemoveOptions.removeOptions;
import static com.couchbase.client.java.kv.ReplaceOptions.replaceOptions;

import com.couchbase.client.core.error.CasMismatchException;
import com.couchbase.client.core.error.DocumentExistsException;
import com.couchbase.client.core.error.DocumentNotFoundException;
import com.couchbase.client.core.error.TimeoutException;
import com.couchbase.client.core.msg.kv.MutationToken;
import com.couchbase.client.java.kv.ExistsResult;
import com.couchbase.client.java.kv.GetResult;
import com.couchbase.client.java.kv.MutationResult;
import java.util.List;
import java.util.Map;

/** Cases: whole documents. */
final class Documents {
  static void declare(Cases cases) {
    cases.add("upsert-and-get", Documents::upsertAndGet);
    cases.add("upsert-overwrites", sdk -> {
      Overwritten document = overwritten(sdk);
      Expect.that(document.present > document.stale, "the CAS of a document grows");
      sdk.expectValue(document.key, 2);
    });
    cases.add("insert-new", sdk -> {
      String key = sdk.key();
      sdk.collection.insert(key, 1);
      sdk.expectValue(key, 1);
    });
    cases.add("insert-existing", sdk -> {
      String key = sdk.stored(1).key();
      Expect.error(() -> sdk.collection.insert(key, 2), DocumentExistsException.class);
      sdk.expectValue(key, 1);
    });
    cases.add("get-missing", sdk -> {
      Expect.error(() -> sdk.collection.get(sdk.key()), DocumentNotFoundException.class);
      Expect.equal(sdk.collection.getOrNull(sdk.key()), null, "null instead of an error");
    });
    cases.add("replace-existing", sdk -> {
      String key = sdk.stored(1).key();
      sdk.collection.replace(key, 2);
      sdk.expectValue(key, 2);
    });
    cases.add("replace-missing", sdk -> {
      String key = sdk.key();
      Expect.error(() -> sdk.collection.replace(key, 1), DocumentNotFoundException.class);
      Expect.that(sdk.isGone(key), "a refused replace creates nothing");
    });
    cases.add("replace-with-cas", sdk -> {
      Sdk.Stored stored = sdk.stored(1);
      MutationResult replaced =
          sdk.collection.replace(stored.key(), 2, replaceOptions().cas(stored.cas()));
      Expect.that(replaced.cas() != stored.cas(), "a replace changes the CAS");
      sdk.expectValue(stored.key(), 2);
    });
    cases.add("replace-with-stale-cas", sdk -> {
      Overwritten document = overwritten(sdk);
      Expect.error(
          () -> sdk.collection.replace(document.key, 3, replaceOptions().cas(document.stale)),
          CasMismatchException.class);
      sdk.expectValue(document.key, 2);
    });
    cases.add("exists", Documents::exists);
    cases.add("remove", sdk -> {
      Sdk.Stored stored = sdk.stored(1);
      MutationResult removed = sdk.collection.remove(stored.key());
      Expect.that(removed.cas() > stored.cas(), "a removal has a CAS of its own");
      Expect.error(() -> sdk.collection.get(stored.key()), DocumentNotFoundException.class);
    });
    cases.add("remove-missing", sdk -> {
      String key = sdk.stored(1).key();
      sdk.collection.remove(key);
      for (String missing : List.of(key, sdk.key())) {
        Expect.error(() -> sdk.collection.remove(missing), DocumentNotFoundException.class);
      }
    });
    cases.add("remove-with-stale-cas", sdk -> {
      Overwritten document = overwritten(sdk);
      Expect.error(() -> sdk.collection.remove(document.key, removeOptions().cas(document.stale)),
          CasMismatchException.class);
      sdk.expectValue(document.key, 2);
      sdk.collection.remove(document.key, removeOptions().cas(document.present));
      Expect.that(sdk.isGone(document.key), "the right CAS removes");
    });
    cases.add("insert-after-remove", sdk -> {
      String key = sdk.stored(1).key();
      long removed = sdk.collection.remove(key).cas();
      Expect.that(sdk.collection.insert(key, 2).cas() > removed, "the CAS grows over a removal");
      sdk.expectValue(key, 2);
    });
    cases.add("mutation-tokens", Documents::mutationTokens);
    cases.add("unicode-key", sdk -> {
      for (String name : List.of("\u00e4\u00f6\u00fc", "\u65e5\u672c\u8a9e", "\ud83d\udecb",
          "a b/c\t%41")) {
        String key = name + sdk.key();
        sdk.collection.upsert(key, name);
        sdk.expectValue(key, name);
      }
    });
    // The SDK counts the collection's byte, too.
    cases.add("key-of-249-bytes", sdk -> {
      String key = "k".repeat(249);
      sdk.collection.upsert(key, 249);
      sdk.expectValue(key, 249);
    });
    cases.add("key-of-251-bytes", sdk -> {
      Throwable error =
          Expect.error(() -> sdk.collection.upsert("k".repeat(251), 251), Exception.class);
      Expect.that(!(error instanceof TimeoutException), "the refusal is no timeout");
    });
  }

  private record Overwritten(String key, long stale, long present) {}

  /** A document with an old and a present CAS; it holds 2. */
  private static Overwritten overwritten(Sdk sdk) {
    Sdk.Stored stored = sdk.stored(1);
    long present = sdk.collection.upsert(stored.key(), 2).cas();
    return new Overwritten(stored.key(), stored.cas(), present);
  }

  private static void upsertAndGet(Sdk sdk) {
    Sdk.Stored stored = sdk.stored(Map.of("n", 1));
    GetResult read = sdk.collection.get(stored.key());
    Expect.that(stored.cas() != 0, "a store returns a CAS");
    Expect.equal(read.cas(), stored.cas(), "CAS that is read");
    Expect.equal(read.contentAsObject().getInt("n"), 1, "value");
  }

  private static void exists(Sdk sdk) {
    String key = sdk.key();
    Expect.that(sdk.isGone(key), "a key never stored does not exist");
    long cas = sdk.collection.upsert(key, 1).cas();
    ExistsResult found = sdk.collection.exists(key);
    Expect.that(found.exists(), "a stored document exists");
    Expect.equal(found.cas(), cas, "CAS of a document");
    sdk.collection.remove(key);
    Expect.that(sdk.isGone(key), "a removed document does not exist");
  }

  private static void mutationTokens(Sdk sdk) {
    Sdk.Stored stored = sdk.stored(1);
    MutationToken first = stored.result().mutationToken().get();
    Expect.that(first.partitionUUID() != 0, "a mutation returns a token with a uuid");
    long seqno = first.sequenceNumber();
    for (MutationResult next : List.of(
        sdk.collection.replace(stored.key(), 2), sdk.collection.remove(stored.key()))) {
      MutationToken token = next.mutationToken().get();
      Expect.equal(token.bucketName(), Sdk.BUCKET, "bucket");
      Expect.equal(token.partitionID(), first.partitionID(), "vBucket");
      Expect.equal(token.partitionUUID(), first.partitionUUID(), "uuid");
      seqno += 1;
      Expect.equal(token.sequenceNumber(), seqno, "seqno");
    }
  }
}
