package acceptance;

import com.couchbase.client.core.message.kv.MutationToken;
import com.couchbase.client.java.document.JsonDocument;
import com.couchbase.client.java.document.StringDocument;
import com.couchbase.client.java.error.CASMismatchException;
import com.couchbase.client.java.error.DocumentAlreadyExistsException;
import com.couchbase.client.java.error.DocumentDoesNotExistException;
import java.util.List;
import java.util.concurrent.TimeoutException;

/** Cases: whole documents. */
final class Documents {
  private static final Class<DocumentDoesNotExistException> NOT_FOUND =
      DocumentDoesNotExistException.class;

  static void declare(Cases cases) {
    declareStores(cases);
    declareReplacements(cases);
    declareRemovals(cases);
    declareKeys(cases);
  }

  private static void declareStores(Cases cases) {
    cases.add("upsert-and-get", sdk -> {
      JsonDocument stored = sdk.stored();
      Expect.that(stored.cas() != 0, "a store returns a CAS");
      Expect.equal(sdk.bucket.get(stored.id()).cas(), stored.cas(), "CAS that is read");
      sdk.expectNumber(stored.id(), 1);
    });
    cases.add("upsert-overwrites", sdk -> {
      Overwritten document = overwritten(sdk);
      Expect.that(document.present > document.stale, "the CAS of a document grows");
      sdk.expectNumber(document.key, 2);
    });
    cases.add("insert-new", sdk -> {
      String key = sdk.key();
      sdk.bucket.insert(Sdk.numbered(key, 1));
      sdk.expectNumber(key, 1);
    });
    cases.add("insert-existing", sdk -> {
      String key = sdk.stored().id();
      Expect.error(() -> sdk.bucket.insert(Sdk.numbered(key, 2)),
          DocumentAlreadyExistsException.class);
      sdk.expectNumber(key, 1);
    });
    // The SDK says so with null.
    cases.add("get-missing",
        sdk -> Expect.equal(sdk.bucket.get(sdk.key()), null, "a document that is not there"));
    cases.add("exists", sdk -> {
      String key = sdk.key();
      Expect.that(sdk.isGone(key), "a key never stored does not exist");
      sdk.bucket.upsert(Sdk.numbered(key, 1));
      Expect.that(sdk.bucket.exists(key), "a stored document exists");
      sdk.bucket.remove(key);
      Expect.that(sdk.isGone(key), "a removed document does not exist");
    });
    cases.add("mutation-tokens", Documents::mutationTokens);
  }

  private static void declareReplacements(Cases cases) {
    cases.add("replace-existing", sdk -> {
      String key = sdk.stored().id();
      sdk.bucket.replace(Sdk.numbered(key, 2));
      sdk.expectNumber(key, 2);
    });
    cases.add("replace-missing", sdk -> {
      String key = sdk.key();
      Expect.error(() -> sdk.bucket.replace(Sdk.numbered(key, 1)), NOT_FOUND);
      Expect.that(sdk.isGone(key), "a refused replace creates nothing");
    });
    cases.add("replace-with-cas", sdk -> {
      JsonDocument stored = sdk.stored();
      JsonDocument replaced = sdk.bucket.replace(withCas(stored.id(), 2, stored.cas()));
      Expect.that(replaced.cas() != stored.cas(), "a replace changes the CAS");
      sdk.expectNumber(stored.id(), 2);
    });
    cases.add("replace-with-stale-cas", sdk -> {
      Overwritten document = overwritten(sdk);
      Expect.error(() -> sdk.bucket.replace(withCas(document.key, 3, document.stale)),
          CASMismatchException.class);
      sdk.expectNumber(document.key, 2);
    });
  }

  private static void declareRemovals(Cases cases) {
    cases.add("remove", sdk -> {
      JsonDocument stored = sdk.stored();
      JsonDocument removed = sdk.bucket.remove(stored.id());
      Expect.that(removed.cas() > stored.cas(), "a removal has a CAS of its own");
      Expect.equal(sdk.bucket.get(stored.id()), null, "a removed document");
    });
    cases.add("remove-missing", sdk -> {
      String key = sdk.stored().id();
      sdk.bucket.remove(key);
      for (String missing : List.of(key, sdk.key())) {
        Expect.error(() -> sdk.bucket.remove(missing), NOT_FOUND);
      }
    });
    cases.add("remove-with-stale-cas", sdk -> {
      Overwritten document = overwritten(sdk);
      Expect.error(() -> sdk.bucket.remove(withCas(document.key, 0, document.stale)),
          CASMismatchException.class);
      sdk.expectNumber(document.key, 2);
      sdk.bucket.remove(withCas(document.key, 0, document.present));
      Expect.that(sdk.isGone(document.key), "the right CAS removes");
    });
    cases.add("insert-after-remove", sdk -> {
      String key = sdk.stored().id();
      long removed = sdk.bucket.remove(key).cas();
      Expect.that(sdk.bucket.insert(Sdk.numbered(key, 2)).cas() > removed,
          "the CAS grows over a removal");
      sdk.expectNumber(key, 2);
    });
  }

  private static void declareKeys(Cases cases) {
    cases.add("unicode-key", sdk -> {
      for (String name : List.of("\u00e4\u00f6\u00fc", "\u65e5\u672c\u8a9e", "\ud83d\udecb",
          "a b/c\t%41")) {
        String key = name + sdk.key();
        sdk.bucket.upsert(Sdk.numbered(key, 1));
        sdk.expectNumber(key, 1);
      }
    });
    cases.add("key-of-250-bytes", sdk -> {
      String key = "k".repeat(250);
      sdk.bucket.upsert(Sdk.numbered(key, 250));
      sdk.expectNumber(key, 250);
    });
    cases.add("key-of-251-bytes", sdk -> {
      Throwable error = Expect.error(
          () -> sdk.bucket.upsert(StringDocument.create("k".repeat(251), "")), Exception.class);
      Expect.that(!(error.getCause() instanceof TimeoutException), "the refusal is no timeout");
    });
  }

  static JsonDocument withCas(String key, int number, long cas) {
    JsonDocument document = Sdk.numbered(key, number);
    return JsonDocument.create(key, document.content(), cas);
  }

  private record Overwritten(String key, long stale, long present) {}

  /** A document with an old and a present CAS; it holds 2. */
  private static Overwritten overwritten(Sdk sdk) {
    JsonDocument stored = sdk.stored();
    long present = sdk.bucket.upsert(Sdk.numbered(stored.id(), 2)).cas();
    return new Overwritten(stored.id(), stored.cas(), present);
  }

  private static void mutationTokens(Sdk sdk) {
    JsonDocument stored = sdk.stored();
    MutationToken first = stored.mutationToken();
    Expect.that(first.vbucketUUID() != 0, "a mutation returns a token with a uuid");
    long seqno = first.sequenceNumber();
    for (JsonDocument next : List.of(sdk.bucket.replace(Sdk.numbered(stored.id(), 2)),
        sdk.bucket.remove(stored.id()))) {
      MutationToken token = next.mutationToken();
      Expect.equal(token.bucket(), Connection.BUCKET, "bucket");
      Expect.equal(token.vbucketID(), first.vbucketID(), "vBucket");
      Expect.equal(token.vbucketUUID(), first.vbucketUUID(), "uuid");
      seqno += 1;
      Expect.equal(token.sequenceNumber(), seqno, "seqno");
    }
  }
}
