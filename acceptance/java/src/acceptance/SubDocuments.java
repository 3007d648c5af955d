package acceptance;

import static com.couchbase.client.java.kv.GetOptions.getOptions;
import static com.couchbase.client.java.kv.LookupInOptions.lookupInOptions;
import static com.couchbase.client.java.kv.MutateInOptions.mutateInOptions;
import static com.couchbase.client.java.kv.UpsertOptions.upsertOptions;

import com.couchbase.client.core.error.CasMismatchException;
import com.couchbase.client.core.error.CouchbaseException;
import com.couchbase.client.core.error.DocumentExistsException;
import com.couchbase.client.core.error.DocumentLockedException;
import com.couchbase.client.core.error.DocumentNotFoundException;
import com.couchbase.client.core.error.TimeoutException;
import com.couchbase.client.core.error.subdoc.DocumentNotJsonException;
import com.couchbase.client.core.error.subdoc.PathExistsException;
import com.couchbase.client.core.error.subdoc.PathInvalidException;
import com.couchbase.client.core.error.subdoc.PathMismatchException;
import com.couchbase.client.core.error.subdoc.PathNotFoundException;
import com.couchbase.client.core.msg.kv.DurabilityLevel;
import com.couchbase.client.java.codec.RawBinaryTranscoder;
import com.couchbase.client.java.kv.GetResult;
import com.couchbase.client.java.kv.LookupInMacro;
import com.couchbase.client.java.kv.LookupInResult;
import com.couchbase.client.java.kv.LookupInSpec;
import com.couchbase.client.java.kv.MutateInMacro;
import com.couchbase.client.java.kv.MutateInOptions;
import com.couchbase.client.java.kv.MutateInResult;
import com.couchbase.client.java.kv.MutateInSpec;
import com.couchbase.client.java.kv.StoreSemantics;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** Cases: parts of documents, and their attributes. */
final class SubDocuments {
  private static final Map<String, Object> DOCUMENT = Map.of("name", "Ann", "scores",
      List.of(3, 5), "address", Map.of("city", "Ulm", "lines", List.of(1, 2, 3)));
  private static final Class<PathNotFoundException> NOT_FOUND = PathNotFoundException.class;

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
    cases.add("paths-and-expiry", SubDocuments::expiry);
    cases.add("attributes-are-beside-the-body", SubDocuments::attributes);
    cases.add("attributes-of-the-server", SubDocuments::attributesOfTheServer);
    cases.add("macros-name-the-change", SubDocuments::macros);
    cases.add("paths-are-changed-durably", SubDocuments::durably);
    cases.add("parallel-changes-of-one-document", SubDocuments::inParallel);
    cases.add("removed-documents-keep-system-attributes", SubDocuments::ofRemoved);
  }

  private static MutateInResult change(Sdk sdk, String key, MutateInSpec... specs) {
    return sdk.collection.mutateIn(key, List.of(specs));
  }

  private static MutateInResult change(
      Sdk sdk, String key, MutateInOptions options, MutateInSpec... specs) {
    return sdk.collection.mutateIn(key, List.of(specs), options);
  }

  /** What is at the path of an attribute. */
  private static <T> T attribute(Sdk sdk, String key, String path, Class<T> kind) {
    return sdk.collection.lookupIn(key, List.of(LookupInSpec.get(path).xattr()))
        .contentAs(0, kind);
  }

  private static void lookedUp(Sdk sdk) {
    Sdk.Stored stored = sdk.stored(DOCUMENT);
    LookupInResult found = sdk.collection.lookupIn(stored.key(), List.of(LookupInSpec.get("name"),
        LookupInSpec.get("address.lines[-1]"), LookupInSpec.exists("scores"),
        LookupInSpec.count("scores"), LookupInSpec.get("")));
    Expect.equal(found.cas(), stored.cas(), "CAS");
    Expect.equal(found.contentAs(0, String.class), "Ann", "text");
    Expect.equal(found.contentAs(1, Integer.class), 3, "last element");
    Expect.that(found.exists(2), "there is such a path");
    Expect.equal(found.contentAs(3, Integer.class), 2, "count");
    Expect.equal(found.contentAs(4, Object.class), DOCUMENT, "the whole document");
    GetResult projected =
        sdk.collection.get(stored.key(), getOptions().project("name", "address.city"));
    Expect.equal(projected.contentAs(Object.class),
        Map.of("name", "Ann", "address", Map.of("city", "Ulm")), "part");
  }

  private static void notThere(Sdk sdk) {
    String key = sdk.stored(DOCUMENT).key();
    LookupInResult found = sdk.collection.lookupIn(key, List.of(LookupInSpec.get("none"),
        LookupInSpec.get("name.first"), LookupInSpec.get("name"), LookupInSpec.exists("none"),
        LookupInSpec.get("a..b")));
    Expect.error(() -> found.contentAs(0, String.class), NOT_FOUND);
    Expect.error(() -> found.contentAs(1, String.class), PathMismatchException.class);
    Expect.equal(found.contentAs(2, String.class), "Ann", "another path is answered");
    Expect.that(!found.exists(3), "there is no such path");
    Expect.error(() -> found.contentAs(4, String.class), PathInvalidException.class);
    Expect.error(() -> sdk.collection.lookupIn(sdk.key(), List.of(LookupInSpec.get("a"))),
        DocumentNotFoundException.class);
  }

  private static void changed(Sdk sdk) {
    Sdk.Stored stored = sdk.stored(DOCUMENT);
    String key = stored.key();
    MutateInResult changed = change(sdk, key, MutateInSpec.upsert("name", "Eva"),
        MutateInSpec.insert("born", 1980), MutateInSpec.replace("address.city", "Bonn"),
        MutateInSpec.remove("scores"));
    Expect.that(changed.cas() > stored.cas(), "the CAS grows");
    Expect.that(changed.mutationToken().isPresent(), "there is a token");
    sdk.expectValue(key, Map.of("name", "Eva", "born", 1980, "address",
        Map.of("city", "Bonn", "lines", List.of(1, 2, 3))));
    Expect.error(() -> change(sdk, key, MutateInSpec.insert("born", 1)),
        PathExistsException.class);
    Expect.error(() -> change(sdk, key, MutateInSpec.replace("none", 1)), NOT_FOUND);
    Expect.error(() -> change(sdk, key, MutateInSpec.remove("none")), NOT_FOUND);
    Expect.error(() -> change(sdk, key, MutateInSpec.upsert("name.first", 1)),
        PathMismatchException.class);
    Expect.error(() -> change(sdk, sdk.key(), MutateInSpec.upsert("a", 1)),
        DocumentNotFoundException.class);
  }

  private static void arrays(Sdk sdk) {
    String key = sdk.stored(Map.of("list", List.of(2))).key();
    change(sdk, key, MutateInSpec.arrayAppend("list", List.of(3, 4)),
        MutateInSpec.arrayPrepend("list", List.of(1)),
        MutateInSpec.arrayInsert("list[1]", List.of(1.5)),
        MutateInSpec.arrayAddUnique("list", 5));
    sdk.expectValue(key, Map.of("list", List.of(1, 1.5, 2, 3, 4, 5)));
    Expect.error(() -> change(sdk, key, MutateInSpec.arrayAddUnique("list", 5)),
        PathExistsException.class);
    Expect.error(() -> change(sdk, key, MutateInSpec.arrayInsert("list[9]", List.of(5))),
        NOT_FOUND);
  }

  private static void counters(Sdk sdk) {
    String key = sdk.stored(Map.of("n", 5, "text", "a")).key();
    MutateInResult counted =
        change(sdk, key, MutateInSpec.increment("n", 3), MutateInSpec.decrement("m", 2));
    Expect.equal(counted.contentAs(0, Long.class), 8L, "counter");
    Expect.equal(counted.contentAs(1, Long.class), -2L, "new counter");
    Expect.error(() -> change(sdk, key, MutateInSpec.increment("text", 1)),
        PathMismatchException.class);
    Expect.error(() -> change(sdk, key, MutateInSpec.increment("n", Long.MAX_VALUE)),
        CouchbaseException.class);
    sdk.expectValue(key, Map.of("n", 8, "text", "a", "m", -2));
  }

  private static void parents(Sdk sdk) {
    String key = sdk.stored(Map.of()).key();
    Expect.error(() -> change(sdk, key, MutateInSpec.upsert("a.b.c", 1)), NOT_FOUND);
    change(sdk, key, MutateInSpec.upsert("a.b.c", 1).createPath());
    sdk.expectValue(key, Map.of("a", Map.of("b", Map.of("c", 1))));
    String deep = String.join(".", "abcdefghijklmnopqrstuvwxyz0123456789".split(""));
    Expect.error(() -> change(sdk, key, MutateInSpec.upsert(deep, 1).createPath()),
        CouchbaseException.class);
  }

  private static void created(Sdk sdk) {
    String key = sdk.key();
    String other = sdk.key();
    change(sdk, key, mutateInOptions().storeSemantics(StoreSemantics.UPSERT),
        MutateInSpec.upsert("a", 1));
    change(sdk, key, mutateInOptions().storeSemantics(StoreSemantics.UPSERT),
        MutateInSpec.upsert("b", 2));
    sdk.expectValue(key, Map.of("a", 1, "b", 2));
    change(sdk, other, mutateInOptions().storeSemantics(StoreSemantics.INSERT),
        MutateInSpec.insert("a", 1));
    Expect.error(() -> change(sdk, other, mutateInOptions().storeSemantics(StoreSemantics.INSERT),
        MutateInSpec.insert("b", 1)), DocumentExistsException.class);
    sdk.expectValue(other, Map.of("a", 1));
  }

  private static void together(Sdk sdk) {
    Sdk.Stored stored = sdk.stored(Map.of("a", 1));
    Expect.error(() -> change(sdk, stored.key(), MutateInSpec.upsert("b", 2),
        MutateInSpec.insert("a", 2), MutateInSpec.upsert("c", 3)), PathExistsException.class);
    sdk.expectValue(stored.key(), Map.of("a", 1));
    Expect.equal(sdk.collection.get(stored.key()).cas(), stored.cas(), "CAS");
  }

  private static void needJson(Sdk sdk) {
    byte[] bytes = {0, (byte) 255};
    String key = sdk.stored(bytes, upsertOptions().transcoder(RawBinaryTranscoder.INSTANCE)).key();
    LookupInResult found = sdk.collection.lookupIn(key, List.of(LookupInSpec.get("a")));
    Expect.error(() -> found.contentAs(0, String.class), DocumentNotJsonException.class);
    Expect.error(() -> change(sdk, key, MutateInSpec.upsert("a", 1)),
        DocumentNotJsonException.class);
  }

  private static void casAndLocks(Sdk sdk) {
    Sdk.Stored stored = sdk.stored(Map.of("a", 1));
    String key = stored.key();
    Expect.error(() -> change(sdk, key, mutateInOptions().cas(stored.cas() + 1),
        MutateInSpec.upsert("a", 2)), CasMismatchException.class);
    change(sdk, key, mutateInOptions().cas(stored.cas()), MutateInSpec.upsert("a", 2));
    long lock = sdk.collection.getAndLock(key, Duration.ofSeconds(15)).cas();
    Expect.error(() -> change(sdk, key, mutateInOptions().timeout(Sdk.BRIEF),
        MutateInSpec.upsert("a", 3)), DocumentLockedException.class, TimeoutException.class);
    change(sdk, key, mutateInOptions().cas(lock), MutateInSpec.upsert("a", 4));
    sdk.expectValue(key, Map.of("a", 4));
  }

  private static void expiry(Sdk sdk) throws Exception {
    String key = sdk.stored(Map.of(), upsertOptions().expiry(Duration.ofSeconds(60))).key();
    change(sdk, key, mutateInOptions().preserveExpiry(true), MutateInSpec.upsert("a", 1));
    Expect.that(expires(sdk, key), "the expiry is kept");
    change(sdk, key, MutateInSpec.upsert("a", 2));
    Expect.that(!expires(sdk, key), "without an expiry it lasts");
    change(sdk, key, mutateInOptions().expiry(Duration.ofSeconds(1)), MutateInSpec.upsert("a", 3));
    Expect.within(Duration.ofSeconds(4), () -> sdk.isGone(key), "it expires");
  }

  private static boolean expires(Sdk sdk, String key) {
    return sdk.collection.get(key, getOptions().withExpiry(true)).expiryTime().isPresent();
  }

  private static void attributes(Sdk sdk) {
    String key = sdk.stored(Map.of("a", 1)).key();
    change(sdk, key, MutateInSpec.upsert("meta.by", "me").xattr().createPath(),
        MutateInSpec.upsert("_system", List.of(1)).xattr(), MutateInSpec.upsert("b", 2));
    sdk.expectValue(key, Map.of("a", 1, "b", 2));
    Expect.equal(attribute(sdk, key, "meta.by", String.class), "me", "attribute");
    sdk.collection.replace(key, Map.of("c", 3));
    Expect.equal(attribute(sdk, key, "meta", Object.class), Map.of("by", "me"), "stores keep it");
    change(sdk, key, MutateInSpec.remove("meta").xattr());
    Expect.that(!sdk.collection.lookupIn(key, List.of(LookupInSpec.exists("meta").xattr()))
        .exists(0), "it is removed");
    Expect.equal(attribute(sdk, key, "_system", Object.class), List.of(1), "another stays");
    sdk.expectValue(key, Map.of("c", 3));
  }

  private static void attributesOfTheServer(Sdk sdk) {
    Sdk.Stored stored = sdk.stored(Map.of("a", 1));
    String key = stored.key();
    Map<?, ?> document = attribute(sdk, key, LookupInMacro.DOCUMENT, Map.class);
    Expect.equal(Long.decode((String) document.get("CAS")), stored.cas(), "CAS");
    Expect.equal(document.get("deleted"), false, "deleted");
    Expect.equal(document.get("datatype"), List.of("json"), "datatype");
    Expect.equal(Long.decode((String) document.get("seqno")),
        stored.result().mutationToken().get().sequenceNumber(), "seqno");
    for (String macro : List.of(LookupInMacro.EXPIRY_TIME, LookupInMacro.CAS, LookupInMacro.SEQ_NO,
        LookupInMacro.LAST_MODIFIED, LookupInMacro.IS_DELETED, LookupInMacro.VALUE_SIZE_BYTES,
        LookupInMacro.REV_ID, LookupInMacro.FLAGS)) {
      Expect.that(attribute(sdk, key, macro, Object.class) != null, macro);
    }
    Map<?, ?> clock = attribute(sdk, key, "$vbucket.HLC", Map.class);
    long now = Long.parseLong((String) clock.get("now"));
    Expect.that(Math.abs(now - System.currentTimeMillis() / 1000) < 60, "the time: " + clock);
    change(sdk, key, MutateInSpec.upsert("x", 1).xattr());
    Expect.equal(attribute(sdk, key, "$XTOC", Object.class), List.of("x"), "keys");
  }

  private static void macros(Sdk sdk) {
    String key = sdk.stored(Map.of("a", 1)).key();
    MutateInResult changed = change(sdk, key,
        MutateInSpec.upsert("m.cas", MutateInMacro.CAS).xattr().createPath(),
        MutateInSpec.upsert("m.seqno", MutateInMacro.SEQ_NO).xattr(),
        MutateInSpec.upsert("m.sum", MutateInMacro.VALUE_CRC_32C).xattr());
    Map<?, ?> macros = attribute(sdk, key, "m", Map.class);
    Expect.equal(casOf(macros.get("cas")), changed.cas(), "CAS");
    Expect.equal(Long.decode((String) macros.get("seqno")),
        changed.mutationToken().get().sequenceNumber(), "seqno");
    Expect.equal(attribute(sdk, key, "$document.value_crc32c", String.class), macros.get("sum"),
        "sum");
  }

  /** The CAS that a macro has written: a number whose bytes are in the other order. */
  private static long casOf(Object macro) {
    return Long.reverseBytes(Long.parseUnsignedLong(((String) macro).substring(2), 16));
  }

  private static void durably(Sdk sdk) {
    String key = sdk.stored(Map.of("n", 1)).key();
    for (DurabilityLevel level : Durability.LEVELS) {
      MutateInResult counted = change(sdk, key, mutateInOptions().durability(level),
          MutateInSpec.increment("n", 1), MutateInSpec.upsert("cas", MutateInMacro.CAS).xattr());
      GetResult found = sdk.collection.get(key);
      Expect.equal(counted.contentAs(0, Integer.class), found.contentAsObject().getInt("n"),
          "counter");
      Expect.equal(found.cas(), counted.cas(), "CAS");
      Expect.equal(casOf(attribute(sdk, key, "cas", String.class)), counted.cas(), "CAS");
    }
    sdk.expectValue(key, Map.of("n", 4));
  }

  private static void inParallel(Sdk sdk) throws Exception {
    String key = sdk.stored(Map.of("n", 0)).key();
    Map<String, Object> expected = new TreeMap<>();
    Bulk.inParallel(16, writer -> {
      for (int turn = 0; turn < 25; turn++) {
        change(sdk, key, MutateInSpec.increment("n", 1), MutateInSpec.increment("of" + writer, 1));
      }
      return null;
    });
    expected.put("n", 400);
    for (int writer = 0; writer < 16; writer++) {
      expected.put("of" + writer, 25);
    }
    sdk.expectValue(key, expected);
  }

  private static void ofRemoved(Sdk sdk) {
    String key = sdk.stored(Map.of("a", 1)).key();
    change(sdk, key, MutateInSpec.upsert("_system", Map.of("kept", 1)).xattr(),
        MutateInSpec.upsert("meta", 1).xattr());
    sdk.collection.remove(key);
    List<LookupInSpec> paths =
        List.of(LookupInSpec.get("_system").xattr(), LookupInSpec.exists("meta").xattr());
    Expect.error(() -> sdk.collection.lookupIn(key, paths), DocumentNotFoundException.class);
    LookupInResult found =
        sdk.collection.lookupIn(key, paths, lookupInOptions().accessDeleted(true));
    Expect.that(found.isDeleted(), "it is deleted");
    Expect.equal(found.contentAs(0, Object.class), Map.of("kept", 1), "the system's attribute");
    Expect.that(!found.exists(1), "the user's attribute is gone");
  }
}
