package acceptance;

import static com.couchbase.client.java.kv.MutateInOptions.mutateInOptions;

import com.couchbase.client.core.error.DocumentNotFoundException;
import com.couchbase.client.dcp.config.CompressionMode;
import com.couchbase.client.dcp.config.DcpControl;
import com.couchbase.client.dcp.highlevel.Deletion;
import com.couchbase.client.dcp.highlevel.Mutation;
import com.couchbase.client.java.kv.GetResult;
import com.couchbase.client.java.kv.MutateInSpec;
import com.couchbase.client.java.kv.StoreSemantics;
import java.time.Duration;
import java.util.List;
import java.util.Map;

/** Cases: what comes of documents. */
final class Contents {
  static void declare(Cases cases) {
    cases.add("streams-from-the-beginning", Contents::fromTheBeginning);
    cases.add("values-come-compressed-or-not", Contents::compression);
    cases.add("deletions-and-expirations-are-told-apart", Contents::expirations);
    cases.add("attributes-come-beside-the-body", Contents::attributes);
    cases.add("keys-come-alone", Contents::keysAlone);
  }

  private static void fromTheBeginning(Sdk sdk) throws Exception {
    sdk.writer.churn("first", 2000, 300);
    Consumer got = Consumer.toNow(builder -> { });
    got.expectDocuments(sdk.writer);
    Expect.that(got.deletions(false) > 0, "there are deletions");
    for (String key : List.of("first-0", "first-1")) {
      GetResult read = sdk.writer.collection.get(key);
      Mutation mutation = got.documents().get("_default._default." + key);
      Expect.equal(mutation.getCas(), read.cas(), "CAS");
      Expect.equal(mutation.isJson(), key.equals("first-0"), "whether its flags say JSON");
      Expect.equal(mutation.getRevision(), 2L, "revision");
      Expect.equal(mutation.getExpiry(), 0, "expiry");
    }
  }

  private static void compression(Sdk sdk) throws Exception {
    sdk.writer.store("compressible", Writer.json("compressible", 300_000));
    sdk.writer.store("small", Writer.json("small", 10));
    sdk.writer.storeBinary("incompressible", Writer.binary(1, 300_000));
    for (CompressionMode mode : CompressionMode.values()) {
      Consumer.toNow(builder -> builder.compression(mode)).expectDocuments(sdk.writer);
    }
  }

  private static void expirations(Sdk sdk) throws Exception {
    List<String> keys = Writer.keys("short-lived", 50);
    for (String key : keys) {
      sdk.writer.storeFor(key, Writer.json(key, 10), Duration.ofSeconds(1));
    }
    for (String key : keys) {
      Expect.within(Consumer.LIMIT, () -> isGone(sdk, key), key + " has expired");
    }
    for (boolean isTold : List.of(true, false)) {
      Consumer got = Consumer.toNow(builder -> builder
          .controlParam(DcpControl.Names.ENABLE_EXPIRY_OPCODE, isTold));
      got.expectDocuments(sdk.writer);
      Expect.equal(got.deletions(true), isTold ? (long) keys.size() : 0L, "expirations");
      Expect.that(got.deletions(false) >= (isTold ? 0 : keys.size()), "deletions");
    }
  }

  /** Whether a read finds nothing; one that finds something expired removes it. */
  private static boolean isGone(Sdk sdk, String key) {
    try {
      sdk.writer.collection.get(key);
      return false;
    } catch (DocumentNotFoundException error) {
      return true;
    }
  }

  private static void attributes(Sdk sdk) throws Exception {
    String key = "with-attributes";
    sdk.writer.store(key, Writer.json(key, 300));
    sdk.writer.storeBinary("bytes", Writer.binary(2, 40));
    List<MutateInSpec> own = List.of(MutateInSpec.upsert("meta", Map.of("a", 1)).xattr(),
        MutateInSpec.upsert("_sys", "s").xattr());
    sdk.writer.collection.mutateIn(key, own);
    sdk.writer.collection.mutateIn("bytes", own);
    sdk.writer.collection.mutateIn("removed", own,
        mutateInOptions().storeSemantics(StoreSemantics.UPSERT));
    sdk.writer.collection.remove("removed");
    Consumer got = Consumer.toNow(builder -> builder.xattrs(true));
    got.expectDocuments(sdk.writer);
    for (String each : List.of(key, "bytes")) {
      Mutation mutation = got.documents().get("_default._default." + each);
      Expect.equal(mutation.getXattrs(), Map.of("meta", "{\"a\":1}", "_sys", "\"s\""),
          "attributes of " + each);
    }
    Deletion tombstone = got.of(Deletion.class).stream()
        .filter(each -> each.getKey().equals("removed")).findFirst().orElseThrow();
    Expect.equal(tombstone.getXattrs(), Map.of("_sys", "\"s\""), "attributes of a deletion");
    Consumer without = Consumer.toNow(builder -> { });
    without.expectDocuments(sdk.writer);
    Expect.that(without.documents().values().stream().allMatch(
        each -> each.getXattrs().isEmpty()), "no attributes come unless they are asked for");
  }

  private static void keysAlone(Sdk sdk) throws Exception {
    Consumer got = Consumer.toNow(builder -> builder.noValue(true));
    Expect.equal(got.documents().keySet(), sdk.writer.documents.keySet(), "keys");
    Expect.that(got.documents().values().stream().allMatch(
        each -> each.getContent().length == 0), "no values come");
  }
}
