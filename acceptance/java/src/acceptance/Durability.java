package acceptance;

import static com.couchbase.client.java.kv.AppendOptions.appendOptions;
import static com.couchbase.client.java.kv.DecrementOptions.decrementOptions;
import static com.couchbase.client.java.kv.IncrementOptions.incrementOptions;
import static com.couchbase.client.java.kv.InsertOptions.insertOptions;
import static com.couchbase.client.java.kv.PrependOptions.prependOptions;
import static com.couchbase.client.java.kv.RemoveOptions.removeOptions;
import static com.couchbase.client.java.kv.ReplaceOptions.replaceOptions;
import static com.couchbase.client.java.kv.UpsertOptions.upsertOptions;

import com.couchbase.client.core.error.CasMismatchException;
import com.couchbase.client.core.error.DocumentExistsException;
import com.couchbase.client.core.msg.kv.DurabilityLevel;
import com.couchbase.client.core.msg.kv.MutationToken;
import com.couchbase.client.java.kv.GetResult;
import com.couchbase.client.java.kv.MutationResult;
import com.couchbase.client.java.kv.PersistTo;
import com.couchbase.client.java.kv.ReplicateTo;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** Cases: durable writes, and what is there after a restart. */
final class Durability {
  static final List<DurabilityLevel> LEVELS = List.of(DurabilityLevel.MAJORITY,
      DurabilityLevel.MAJORITY_AND_PERSIST_TO_ACTIVE, DurabilityLevel.PERSIST_TO_MAJORITY);
  private static final int COUNT = 200;

  static void declare(Cases cases) {
    cases.add("durable-writes-are-committed", sdk -> {
      for (DurabilityLevel level : LEVELS) {
        durableLife(sdk, level);
      }
    });
    cases.add("persist-to-active", sdk -> {
      PersistTo active = PersistTo.ACTIVE;
      ReplicateTo none = ReplicateTo.NONE;
      String key = sdk.stored(1, upsertOptions().durability(active, none)).key();
      sdk.collection.replace(key, 2, replaceOptions().durability(active, none));
      sdk.expectValue(key, 2);
      sdk.collection.remove(key, removeOptions().durability(active, none));
    });
    cases.add("restart-keeps-everything", Durability::restartKeepsEverything);
    cases.add("restart-goes-on-in-the-same-branch", Durability::restartGoesOn);
  }

  /** Takes a document from its insertion to its removal. */
  private static void durableLife(Sdk sdk, DurabilityLevel level) {
    String key = sdk.key();
    String count = sdk.key();
    long first = sdk.collection.insert(key, 1, insertOptions().durability(level)).cas();
    MutationResult second = sdk.collection.upsert(key, 2, upsertOptions().durability(level));
    Expect.error(() -> sdk.collection.replace(key, 3,
        replaceOptions().durability(level).cas(first)), CasMismatchException.class);
    MutationResult third = sdk.collection.replace(key, 3,
        replaceOptions().durability(level).cas(second.cas()));
    Expect.error(() -> sdk.collection.insert(key, 4, insertOptions().durability(level)),
        DocumentExistsException.class);
    GetResult read = sdk.collection.get(key);
    Expect.equal(read.contentAs(Integer.class), 3, "value");
    Expect.equal(read.cas(), third.cas(), "CAS");
    Expect.that(seqno(third) > seqno(second), "seqnos of commits rise");
    for (long value : List.of(41L, 42L)) {
      Expect.equal(sdk.binary.increment(count, incrementOptions().initial(41).durability(level))
          .content(), value, "counter");
    }
    Expect.equal(sdk.binary.decrement(count, decrementOptions().delta(2).durability(level))
        .content(), 40L, "counter");
    sdk.binary.append(count, "0".getBytes(), appendOptions().durability(level));
    sdk.binary.prepend(count, "1".getBytes(), prependOptions().durability(level));
    sdk.expectValue(count, 1400);
    sdk.collection.remove(key, removeOptions().durability(level));
    Expect.that(sdk.isGone(key), "removed");
  }

  private static long seqno(MutationResult result) {
    return result.mutationToken().get().sequenceNumber();
  }

  private static void restartKeepsEverything(Sdk sdk) throws Exception {
    List<Sdk.Stored> stored = new ArrayList<>();
    for (int index = 0; index < COUNT; index++) {
      stored.add(sdk.stored(Map.of("n", index)));
    }
    String removed = sdk.stored(1).key();
    sdk.collection.remove(removed);
    String counter = sdk.stored(41).key();
    String expiring = sdk.stored(1, upsertOptions().expiry(Duration.ofSeconds(2))).key();
    sdk.order("NODE restart");
    Expect.within(Sdk.READY, () -> sdk.answers(removed), "the same SDK object works");
    for (int index = 0; index < COUNT; index++) {
      GetResult read = sdk.collection.get(stored.get(index).key());
      Expect.equal(read.contentAs(Object.class), Map.of("n", index), "value");
      Expect.equal(read.cas(), stored.get(index).cas(), "CAS");
    }
    Expect.that(sdk.isGone(removed), "a removed document stays removed");
    Expect.equal(sdk.binary.increment(counter).content(), 42L, "counter");
    Expect.within(LocksAndExpiry.LIFETIME_MAX, () -> sdk.isGone(expiring), "the expiry is kept");
  }

  private static void restartGoesOn(Sdk sdk) throws Exception {
    Sdk.Stored before = sdk.stored(1);
    sdk.order("NODE restart");
    MutationResult after =
        sdk.collection.upsert(before.key(), 2, upsertOptions().timeout(Sdk.READY));
    MutationToken old = before.result().mutationToken().get();
    MutationToken young = after.mutationToken().get();
    Expect.that(after.cas() > before.cas(), "the CAS grows");
    Expect.equal(young.partitionUUID(), old.partitionUUID(), "uuid");
    Expect.that(young.sequenceNumber() > old.sequenceNumber(), "seqnos go on");
  }
}
