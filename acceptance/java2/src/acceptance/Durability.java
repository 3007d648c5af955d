package acceptance;

import com.couchbase.client.core.message.kv.MutationToken;
import com.couchbase.client.java.PersistTo;
import com.couchbase.client.java.document.JsonDocument;
import com.couchbase.client.java.document.JsonLongDocument;
import java.util.ArrayList;
import java.util.List;

/** Cases: writes that are watched until they are durable, and what is there after a restart. */
final class Durability {
  private static final int COUNT = 200;

  static void declare(Cases cases) {
    cases.add("persist-to-active", sdk -> {
      PersistTo active = PersistTo.MASTER;
      String key = sdk.bucket.insert(Sdk.numbered(sdk.key(), 1), active).id();
      sdk.bucket.replace(Sdk.numbered(key, 2), active);
      sdk.expectNumber(key, 2);
      Expect.equal(sdk.bucket.counter(sdk.key(), 1, 41, active).content(), 41L, "counter");
      sdk.bucket.remove(key, active);
    });
    cases.add("restart-keeps-everything", Durability::restartKeepsEverything);
    cases.add("restart-goes-on-in-the-same-branch", Durability::restartGoesOn);
  }

  private static void restartKeepsEverything(Sdk sdk) throws Exception {
    List<JsonDocument> stored = new ArrayList<>();
    for (int index = 0; index < COUNT; index++) {
      stored.add(sdk.bucket.upsert(Sdk.numbered(sdk.key(), index)));
    }
    String removed = sdk.stored().id();
    sdk.bucket.remove(removed);
    String counter = sdk.bucket.upsert(JsonLongDocument.create(sdk.key(), 41L)).id();
    String expiring = Expiry.passing(sdk, 2);
    sdk.order("NODE restart");
    Expect.within(Connection.READY, () -> sdk.answers(removed), "the same SDK object works");
    for (int index = 0; index < COUNT; index++) {
      JsonDocument each = stored.get(index);
      sdk.expectNumber(each.id(), index);
      Expect.equal(sdk.bucket.get(each.id()).cas(), each.cas(), "CAS");
    }
    Expect.that(sdk.isGone(removed), "a removed document stays removed");
    Expect.equal(sdk.bucket.counter(counter, 1).content(), 42L, "counter");
    Expect.within(Expiry.LIFETIME_MAX, () -> sdk.isGone(expiring), "the expiry is kept");
  }

  private static void restartGoesOn(Sdk sdk) throws Exception {
    JsonDocument before = sdk.stored();
    sdk.order("NODE restart");
    Expect.within(Connection.READY, () -> sdk.answers(before.id()), "the same SDK object works");
    JsonDocument after = sdk.bucket.upsert(Sdk.numbered(before.id(), 2));
    MutationToken old = before.mutationToken();
    MutationToken young = after.mutationToken();
    Expect.that(after.cas() > before.cas(), "the CAS grows");
    Expect.equal(young.vbucketUUID(), old.vbucketUUID(), "uuid");
    Expect.that(young.sequenceNumber() > old.sequenceNumber(), "seqnos go on");
  }
}
