package acceptance;

import com.couchbase.client.core.message.ResponseStatus;
import com.couchbase.client.java.document.ByteArrayDocument;
import com.couchbase.client.java.document.JsonDocument;
import com.couchbase.client.java.document.json.JsonArray;
import com.couchbase.client.java.document.json.JsonObject;
import com.couchbase.client.java.error.CASMismatchException;
import com.couchbase.client.java.error.DocumentDoesNotExistException;
import com.couchbase.client.java.error.TemporaryFailureException;
import com.couchbase.client.java.error.subdoc.DocumentNotJsonException;
import com.couchbase.client.java.error.subdoc.MultiMutationException;
import com.couchbase.client.java.error.subdoc.PathExistsException;
import com.couchbase.client.java.error.subdoc.PathInvalidException;
import com.couchbase.client.java.error.subdoc.PathMismatchException;
import com.couchbase.client.java.error.subdoc.PathNotFoundException;
import com.couchbase.client.java.error.subdoc.SubDocumentException;
import com.couchbase.client.java.subdoc.DocumentFragment;
import com.couchbase.client.java.subdoc.MutateInBuilder;
import com.couchbase.client.java.subdoc.SubdocOptionsBuilder;
import java.util.Map;

/** Cases: parts of documents. */
final class SubDocuments {
  private static final JsonObject DOCUMENT = JsonObject.fromJson("{\"name\":\"Ann\","
      + "\"scores\":[3,5],\"address\":{\"city\":\"Ulm\",\"lines\":[1,2,3]}}");

  private static final SubdocOptionsBuilder WITH_PARENTS =
      SubdocOptionsBuilder.builder().createPath(true);

  static void declare(Cases cases) {
    cases.add("paths-are-looked-up", SubDocuments::lookedUp);
    cases.add("paths-that-are-not-there", SubDocuments::notThere);
    cases.add("paths-are-changed", SubDocuments::changed);
    cases.add("arrays-are-changed", SubDocuments::arrays);
    cases.add("counters-in-documents", SubDocuments::counters);
    cases.add("parents-are-created", SubDocuments::parents);
    cases.add("documents-are-created-by-paths", SubDocuments::created);
    cases.add("paths-change-together-or-not-at-all", SubDocuments::together);
    cases.add("paths-need-json", SubDocuments::needJson);
    cases.add("paths-with-cas-and-locks", SubDocuments::casAndLocks);
    cases.add("parallel-changes-of-one-document", SubDocuments::inParallel);
  }

  static JsonDocument stored(Sdk sdk, JsonObject content) {
    return sdk.bucket.upsert(JsonDocument.create(sdk.key(), content));
  }

  static JsonDocument stored(Sdk sdk, Map<String, ?> content) {
    return stored(sdk, JsonObject.from(content));
  }

  static void expectValue(Sdk sdk, String key, Map<String, ?> wanted) {
    Expect.equal(sdk.bucket.get(key).content(), JsonObject.from(wanted), "value");
  }

  private static void lookedUp(Sdk sdk) {
    JsonDocument stored = stored(sdk, DOCUMENT);
    DocumentFragment<?> found = sdk.bucket.lookupIn(stored.id()).get("name")
        .get("address.lines[-1]").exists("scores").getCount("scores").get().execute();
    Expect.equal(found.cas(), stored.cas(), "CAS");
    Expect.equal(found.content(0), "Ann", "text");
    Expect.equal(found.content(1), 3, "last element");
    Expect.equal(found.content(2), true, "whether there is such a path");
    Expect.equal(found.content(3), 2L, "count");
    Expect.equal(found.content(4), DOCUMENT, "the whole document");
  }

  private static void notThere(Sdk sdk) {
    String key = stored(sdk, DOCUMENT).id();
    DocumentFragment<?> found = sdk.bucket.lookupIn(key)
        .get("none", "name.first", "name").exists("none").get("a..b").execute();
    // What is not there is null to the SDK.
    Expect.equal(found.content(0), null, "what is not there");
    Expect.equal(found.status(0), ResponseStatus.SUBDOC_PATH_NOT_FOUND, "status");
    Expect.error(() -> found.content(1), PathMismatchException.class);
    Expect.equal(found.content(2), "Ann", "another path is answered");
    Expect.equal(found.content(3), false, "whether there is such a path");
    Expect.error(() -> found.content(4), PathInvalidException.class);
    Expect.error(() -> sdk.bucket.lookupIn(sdk.key()).get("a").execute(),
        DocumentDoesNotExistException.class);
  }

  private static void changed(Sdk sdk) {
    JsonDocument stored = stored(sdk, DOCUMENT);
    String key = stored.id();
    DocumentFragment<?> changed = sdk.bucket.mutateIn(key).upsert("name", "Eva")
        .insert("born", 1980).replace("address.city", "Bonn").remove("scores").execute();
    Expect.that(changed.cas() > stored.cas(), "the CAS grows");
    Expect.that(changed.mutationToken() != null, "there is a token");
    JsonObject address =
        JsonObject.create().put("city", "Bonn").put("lines", JsonArray.from(1, 2, 3));
    expectValue(sdk, key, Map.of("name", "Eva", "born", 1980, "address", address));
    expectRefused(at(sdk, key).insert("born", 1), PathExistsException.class);
    expectRefused(at(sdk, key).replace("none", 1), PathNotFoundException.class);
    expectRefused(at(sdk, key).remove("none"), PathNotFoundException.class);
    expectRefused(at(sdk, key).upsert("name.first", 1), PathMismatchException.class);
    expectRefused(at(sdk, sdk.key()).upsert("a", 1), DocumentDoesNotExistException.class);
  }

  private static MutateInBuilder at(Sdk sdk, String key) {
    return sdk.bucket.mutateIn(key);
  }

  /** The SDK wraps what is wrong with a path. */
  private static void expectRefused(MutateInBuilder change, Class<? extends Throwable> kind) {
    Expect.error(() -> {
      try {
        change.execute();
      } catch (MultiMutationException error) {
        throw (SubDocumentException) error.getCause();
      }
    }, kind);
  }

  private static void arrays(Sdk sdk) {
    String key = stored(sdk, Map.of("list", JsonArray.from(2))).id();
    at(sdk, key).arrayAppendAll("list", 3, 4).arrayPrepend("list", 1)
        .arrayInsert("list[1]", 1.5).arrayAddUnique("list", 5).execute();
    expectValue(sdk, key, Map.of("list", JsonArray.from(1, 1.5, 2, 3, 4, 5)));
    expectRefused(at(sdk, key).arrayAddUnique("list", 5), PathExistsException.class);
    expectRefused(at(sdk, key).arrayInsert("list[9]", 5), PathNotFoundException.class);
  }

  private static void counters(Sdk sdk) {
    String key = stored(sdk, Map.of("n", 5, "text", "a")).id();
    DocumentFragment<?> counted = at(sdk, key).counter("n", 3).counter("m", -2).execute();
    Expect.equal(counted.content("n"), 8, "counter");
    Expect.equal(counted.content("m"), -2, "new counter");
    expectRefused(at(sdk, key).counter("text", 1), PathMismatchException.class);
    expectRefused(at(sdk, key).counter("n", Long.MAX_VALUE), SubDocumentException.class);
    expectValue(sdk, key, Map.of("n", 8, "text", "a", "m", -2));
  }

  private static void parents(Sdk sdk) {
    String key = stored(sdk, JsonObject.empty()).id();
    expectRefused(at(sdk, key).upsert("a.b.c", 1), PathNotFoundException.class);
    at(sdk, key).upsert("a.b.c", 1, WITH_PARENTS).execute();
    expectValue(sdk, key, Map.of("a", JsonObject.fromJson("{\"b\":{\"c\":1}}")));
    String deep = String.join(".", "abcdefghijklmnopqrstuvwxyz0123456789".split(""));
    expectRefused(at(sdk, key).upsert(deep, 1, WITH_PARENTS), SubDocumentException.class);
  }

  private static void created(Sdk sdk) {
    String key = sdk.key();
    String other = sdk.key();
    at(sdk, key).upsertDocument(true).upsert("a", 1).execute();
    at(sdk, key).upsertDocument(true).upsert("b", 2).execute();
    expectValue(sdk, key, Map.of("a", 1, "b", 2));
    at(sdk, other).insertDocument(true).insert("a", 1).execute();
    // So the SDK calls an insertion of what is there.
    expectRefused(at(sdk, other).insertDocument(true).insert("b", 1),
        CASMismatchException.class);
    expectValue(sdk, other, Map.of("a", 1));
  }

  private static void together(Sdk sdk) {
    JsonDocument stored = stored(sdk, Map.of("a", 1));
    MultiMutationException error = (MultiMutationException) Expect.error(
        () -> at(sdk, stored.id()).upsert("b", 2).insert("a", 2).upsert("c", 3).execute(),
        MultiMutationException.class);
    Expect.equal(error.firstFailureIndex(), 1, "the change that failed");
    Expect.that(error.getCause() instanceof PathExistsException, "cause: " + error.getCause());
    expectValue(sdk, stored.id(), Map.of("a", 1));
    Expect.equal(sdk.bucket.get(stored.id()).cas(), stored.cas(), "CAS");
  }

  private static void needJson(Sdk sdk) {
    byte[] bytes = {0, (byte) 255};
    String key = sdk.bucket.upsert(ByteArrayDocument.create(sdk.key(), bytes)).id();
    Expect.error(() -> sdk.bucket.lookupIn(key).get("a").execute().content(0),
        DocumentNotJsonException.class);
    expectRefused(at(sdk, key).upsert("a", 1), DocumentNotJsonException.class);
  }

  private static void casAndLocks(Sdk sdk) {
    JsonDocument stored = stored(sdk, Map.of("a", 1));
    String key = stored.id();
    expectRefused(at(sdk, key).withCas(stored.cas() + 1).upsert("a", 2),
        CASMismatchException.class);
    at(sdk, key).withCas(stored.cas()).upsert("a", 2).execute();
    long lock = sdk.bucket.getAndLock(key, 15).cas();
    expectRefused(at(sdk, key).upsert("a", 3), TemporaryFailureException.class);
    at(sdk, key).withCas(lock).upsert("a", 4).execute();
    expectValue(sdk, key, Map.of("a", 4));
  }

  private static void inParallel(Sdk sdk) {
    String key = stored(sdk, Map.of("n", 0)).id();
    Bulk.inParallel(400, index -> sdk.bucket.async().mutateIn(key).counter("n", 1)
        .counter("of" + index % 16, 1).execute());
    JsonObject wanted = JsonObject.create().put("n", 400);
    for (int writer = 0; writer < 16; writer++) {
      wanted.put("of" + writer, 25);
    }
    Expect.equal(sdk.bucket.get(key).content(), wanted, "all changes");
  }
}
