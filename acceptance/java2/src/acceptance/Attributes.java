package acceptance;

import com.couchbase.client.java.document.JsonDocument;
import com.couchbase.client.java.document.json.JsonArray;
import com.couchbase.client.java.document.json.JsonObject;
import com.couchbase.client.java.error.DocumentDoesNotExistException;
import com.couchbase.client.java.subdoc.DocumentFragment;
import com.couchbase.client.java.subdoc.LookupInBuilder;
import com.couchbase.client.java.subdoc.SubdocOptionsBuilder;
import java.util.Map;

/** Cases: attributes of documents, and macros. */
final class Attributes {
  private static final SubdocOptionsBuilder ATTRIBUTE = SubdocOptionsBuilder.builder().xattr(true);
  private static final SubdocOptionsBuilder DEEP =
      SubdocOptionsBuilder.builder().xattr(true).createPath(true);
  private static final SubdocOptionsBuilder MACRO =
      SubdocOptionsBuilder.builder().xattr(true).createPath(true).expandMacros(true);

  static void declare(Cases cases) {
    cases.add("attributes-are-beside-the-body", Attributes::besideTheBody);
    cases.add("attributes-of-the-server", Attributes::ofTheServer);
    cases.add("macros-name-the-change", Attributes::macros);
    cases.add("removed-documents-keep-system-attributes", Attributes::ofRemoved);
  }

  /** What is at the path of an attribute. */
  private static Object attribute(Sdk sdk, String key, String path) {
    return sdk.bucket.lookupIn(key).get(path, ATTRIBUTE).execute().content(0);
  }

  private static void besideTheBody(Sdk sdk) {
    String key = SubDocuments.stored(sdk, Map.of("a", 1)).id();
    sdk.bucket.mutateIn(key).upsert("meta.by", "me", DEEP)
        .upsert("_system", JsonArray.from(1), ATTRIBUTE).upsert("b", 2).execute();
    SubDocuments.expectValue(sdk, key, Map.of("a", 1, "b", 2));
    Expect.equal(attribute(sdk, key, "meta.by"), "me", "attribute");
    sdk.bucket.replace(JsonDocument.create(key, JsonObject.create().put("c", 3)));
    Expect.equal(attribute(sdk, key, "meta"), JsonObject.create().put("by", "me"),
        "stores keep it");
    sdk.bucket.mutateIn(key).remove("meta", ATTRIBUTE).execute();
    Expect.equal(sdk.bucket.lookupIn(key).exists("meta", ATTRIBUTE).execute().content(0), false,
        "whether it is there");
    Expect.equal(attribute(sdk, key, "_system"), JsonArray.from(1), "another stays");
    SubDocuments.expectValue(sdk, key, Map.of("c", 3));
  }

  private static void ofTheServer(Sdk sdk) {
    JsonDocument stored = SubDocuments.stored(sdk, Map.of("a", 1));
    JsonObject document = (JsonObject) attribute(sdk, stored.id(), "$document");
    Expect.equal(Long.decode(document.getString("CAS")), stored.cas(), "CAS");
    Expect.equal(document.getBoolean("deleted"), false, "deleted");
    Expect.equal(document.getArray("datatype"), JsonArray.from("json"), "datatype");
    Expect.equal(Long.decode(document.getString("seqno")),
        stored.mutationToken().sequenceNumber(), "seqno");
    JsonObject clock = (JsonObject) attribute(sdk, stored.id(), "$vbucket.HLC");
    long now = Long.parseLong(clock.getString("now"));
    Expect.that(Math.abs(now - System.currentTimeMillis() / 1000) < 60, "the time: " + clock);
    sdk.bucket.mutateIn(stored.id()).upsert("x", 1, ATTRIBUTE).execute();
    Expect.equal(attribute(sdk, stored.id(), "$XTOC"), JsonArray.from("x"), "keys");
  }

  private static void macros(Sdk sdk) {
    String key = SubDocuments.stored(sdk, Map.of("a", 1)).id();
    DocumentFragment<?> changed = sdk.bucket.mutateIn(key)
        .upsert("m.cas", "${Mutation.CAS}", MACRO)
        .upsert("m.seqno", "${Mutation.seqno}", MACRO)
        .upsert("m.sum", "${Mutation.value_crc32c}", MACRO).execute();
    JsonObject macros = (JsonObject) attribute(sdk, key, "m");
    // The number's bytes are in the other order.
    long cas = Long.parseUnsignedLong(macros.getString("cas").substring(2), 16);
    Expect.equal(Long.reverseBytes(cas), changed.cas(), "CAS");
    Expect.equal(Long.decode(macros.getString("seqno")),
        changed.mutationToken().sequenceNumber(), "seqno");
    Expect.equal(attribute(sdk, key, "$document.value_crc32c"), macros.getString("sum"), "sum");
  }

  private static void ofRemoved(Sdk sdk) {
    String key = SubDocuments.stored(sdk, Map.of("a", 1)).id();
    sdk.bucket.mutateIn(key).upsert("_system", JsonObject.create().put("kept", 1), ATTRIBUTE)
        .upsert("meta", 1, ATTRIBUTE).execute();
    sdk.bucket.remove(key);
    LookupInBuilder keys = sdk.bucket.lookupIn(key).get("$XTOC", ATTRIBUTE);
    Expect.error(keys::execute, DocumentDoesNotExistException.class);
    // The SDK does not know the status of paths that a removed document has not.
    Expect.equal(keys.accessDeleted(true).execute().content(0), JsonArray.from("_system"), "keys");
    DocumentFragment<?> found =
        sdk.bucket.lookupIn(key).get("_system", ATTRIBUTE).accessDeleted(true).execute();
    Expect.equal(found.content(0), JsonObject.create().put("kept", 1), "the system's attribute");
  }
}
