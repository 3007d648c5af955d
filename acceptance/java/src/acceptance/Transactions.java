package acceptance;

import static com.couchbase.client.java.transactions.config.TransactionOptions.transactionOptions;

import com.couchbase.client.java.kv.LookupInSpec;
import com.couchbase.client.java.transactions.TransactionAttemptContext;
import com.couchbase.client.java.transactions.TransactionGetResult;
import com.couchbase.client.java.transactions.error.TransactionExpiredException;
import com.couchbase.client.java.transactions.error.TransactionFailedException;
import java.time.Duration;
import java.util.List;
import java.util.Map;

/** Cases: transactions, which the SDK makes of attributes. */
final class Transactions {
  private static final Duration LIMIT = Duration.ofSeconds(15);

  static void declare(Cases cases) {
    cases.add("transactions-commit-and-roll-back", Transactions::commitAndRollBack);
    cases.add("transactions-expire", Transactions::expire);
    cases.add("transactions-meet", Transactions::meet);
    cases.add("transactions-insert-what-was-rolled-back", Transactions::insertAgain);
  }

  /** Keys that a transaction changes: one is replaced, one removed, one inserted. */
  record Changed(String first, String gone, String added) {
    static Changed prepared(Sdk sdk) {
      return new Changed(sdk.stored(Map.of("n", 1)).key(), sdk.stored(Map.of("n", 2)).key(),
          sdk.key());
    }

    void change(Sdk sdk, TransactionAttemptContext context) {
      context.replace(context.get(sdk.collection, first), Map.of("n", 10));
      context.insert(sdk.collection, added, Map.of("n", 3));
      context.remove(context.get(sdk.collection, gone));
    }

    void expectCommitted(Sdk sdk) {
      sdk.expectValue(first, Map.of("n", 10));
      sdk.expectValue(added, Map.of("n", 3));
      Expect.that(sdk.isGone(gone), "removed");
      expectNothingIsLeft(sdk, List.of(first, added));
    }

    void expectUnchanged(Sdk sdk) {
      sdk.expectValue(first, Map.of("n", 1));
      sdk.expectValue(gone, Map.of("n", 2));
      Expect.that(sdk.isGone(added), "not inserted");
    }
  }

  private static void expectNothingIsLeft(Sdk sdk, List<String> keys) {
    for (String key : keys) {
      Expect.that(!sdk.collection.lookupIn(key, List.of(LookupInSpec.exists("txn").xattr()))
          .exists(0), "nothing is left of a transaction");
    }
  }

  private static void commitAndRollBack(Sdk sdk) {
    Changed changed = Changed.prepared(sdk);
    sdk.cluster.transactions().run(context -> changed.change(sdk, context));
    changed.expectCommitted(sdk);
    Changed kept = Changed.prepared(sdk);
    Expect.error(() -> sdk.cluster.transactions().run(context -> {
      kept.change(sdk, context);
      throw new IllegalStateException("the application has changed its mind");
    }), TransactionFailedException.class);
    kept.expectUnchanged(sdk);
    expectNothingIsLeft(sdk, List.of(kept.first, kept.gone));
  }

  private static void expire(Sdk sdk) {
    Changed kept = Changed.prepared(sdk);
    Expect.error(() -> sdk.cluster.transactions().run(context -> {
      kept.change(sdk, context);
      sleep(1500);
      context.get(sdk.collection, kept.first);
    }, transactionOptions().timeout(Duration.ofSeconds(1))), TransactionExpiredException.class);
    kept.expectUnchanged(sdk);
  }

  private static void meet(Sdk sdk) throws Exception {
    String key = sdk.stored(Map.of("n", 0)).key();
    Bulk.inParallel(5, index -> sdk.cluster.transactions().run(context -> {
      TransactionGetResult document = context.get(sdk.collection, key);
      int number = document.contentAsObject().getInt("n");
      context.replace(document, Map.of("n", number + 1));
    }, transactionOptions().timeout(LIMIT)));
    sdk.expectValue(key, Map.of("n", 5));
  }

  private static void insertAgain(Sdk sdk) {
    String key = sdk.key();
    Expect.error(() -> sdk.cluster.transactions().run(context -> {
      context.insert(sdk.collection, key, Map.of("n", 1));
      throw new IllegalStateException("the application has changed its mind");
    }), TransactionFailedException.class);
    Expect.that(sdk.isGone(key), "not inserted");
    sdk.cluster.transactions().run(
        context -> context.insert(sdk.collection, key, Map.of("n", 1)));
    sdk.expectValue(key, Map.of("n", 1));
  }

  private static void sleep(long milliseconds) {
    try {
      Thread.sleep(milliseconds);
    } catch (InterruptedException error) {
      throw new IllegalStateException(error);
    }
  }
}
