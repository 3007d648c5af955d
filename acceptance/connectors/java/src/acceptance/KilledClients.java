package acceptance;

import com.couchbase.client.core.msg.kv.DurabilityLevel;
import com.couchbase.client.java.Cluster;
import com.couchbase.client.java.ClusterOptions;
import com.couchbase.client.java.Collection;
import com.couchbase.client.java.json.JsonObject;
import com.couchbase.client.java.kv.LookupInResult;
import com.couchbase.client.java.kv.LookupInSpec;
import com.couchbase.client.java.transactions.TransactionGetResult;
import com.couchbase.client.java.transactions.TransactionKeyspace;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ThreadLocalRandom;

/** Cases: what clients leave behind that are killed in the middle of transactions. */
public final class KilledClients {
  private static final int ACCOUNTS = 8;
  private static final int BALANCE = 100;
  private static final int CLIENTS = 2;
  private static final int THREADS = 4;
  private static final int ROUNDS_MAX = 5;
  /**
   * Whoever meets a transaction that has taken longer may write what it has staged, although it may
   * be committed: an SDK is not safe from itself where this is shorter than a client may pause.
   */
  private static final Duration TRANSACTION = Duration.ofSeconds(10);
  /** In which all 1024 records of attempts are looked at once. */
  private static final Duration CLEANUP_WINDOW = Duration.ofSeconds(10);
  private static final Duration CLEANED_UP = Duration.ofSeconds(90);

  static void declare(Cases cases) {
    cases.add("transactions-of-killed-clients", KilledClients::killed);
  }

  /** A client that moves money between accounts until it is killed. */
  public static void main(String[] arguments) throws Exception {
    Collection accounts = connect(false).bucket(Sdk.BUCKET).defaultCollection();
    for (int thread = 0; thread < THREADS; thread++) {
      new Thread(() -> {
        while (true) {
          Expect.succeeds(() -> transfer(accounts, ThreadLocalRandom.current().nextInt(ACCOUNTS)));
          System.out.println("transferred");
        }
      }).start();
    }
  }

  private static Cluster cluster;

  private static Cluster connect(boolean cleansUp) {
    cluster = Cluster.connect(System.getenv("SETTEE_CONNECT"), ClusterOptions
        .clusterOptions(System.getenv("SETTEE_USER"), System.getenv("SETTEE_PASSWORD"))
        .environment(environment -> environment.transactionsConfig(config -> config
            .durabilityLevel(DurabilityLevel.NONE)
            .timeout(TRANSACTION)
            .cleanupConfig(cleanup -> cleanup.cleanupLostAttempts(cleansUp)
                .cleanupWindow(CLEANUP_WINDOW)
                .addCollection(TransactionKeyspace.create(Sdk.BUCKET, "_default", "_default"))))));
    cluster.bucket(Sdk.BUCKET).waitUntilReady(Sdk.READY);
    return cluster;
  }

  private static String key(int account) {
    return "account-" + account % ACCOUNTS;
  }

  private static void transfer(Collection accounts, int account) {
    cluster.transactions().run(context -> {
      TransactionGetResult source = context.get(accounts, key(account));
      TransactionGetResult target = context.get(accounts, key(account + 1));
      context.replace(source, changed(source, -1));
      context.replace(target, changed(target, 1));
    });
  }

  private static JsonObject changed(TransactionGetResult document, int amount) {
    JsonObject content = document.contentAsObject();
    return content.put("balance", content.getInt("balance") + amount);
  }

  private static void killed(Sdk sdk) throws Exception {
    Collection accounts = sdk.template.getCouchbaseClientFactory().getDefaultCollection();
    for (int account = 0; account < ACCOUNTS; account++) {
      accounts.upsert(key(account), Map.of("balance", BALANCE));
    }
    for (int round = 0; staged(accounts).isEmpty(); round++) {
      Expect.that(round < ROUNDS_MAX, "clients that are killed leave something behind");
      transferUntilKilled();
    }
    try (Cluster cleaning = connect(true)) {
      Expect.within(CLEANED_UP, () -> staged(accounts).stream()
          .noneMatch(staged -> isAttempted(accounts, staged)), "attempts are cleaned up");
      expectNothingIsLost(accounts);
      for (int account = 0; account < ACCOUNTS; account++) {
        transfer(accounts, account);
      }
    }
    Expect.equal(staged(accounts), List.of(), "what is left of transactions");
    expectNothingIsLost(accounts);
  }

  private static void transferUntilKilled() throws Exception {
    List<Process> clients = new ArrayList<>();
    for (int client = 0; client < CLIENTS; client++) {
      clients.add(new ProcessBuilder(ProcessHandle.current().info().command().orElseThrow(),
          "-Xmx256m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off", "-cp",
          System.getProperty("java.class.path"), KilledClients.class.getName()).start());
    }
    for (Process client : clients) {
      for (int transfer = 0; transfer < 2 * THREADS; transfer++) {
        client.inputReader().readLine();
      }
    }
    for (Process client : clients) {
      client.destroyForcibly().waitFor();
    }
  }

  /** What documents have of transactions that have not ended. */
  private static List<JsonObject> staged(Collection accounts) {
    List<JsonObject> staged = new ArrayList<>();
    for (int account = 0; account < ACCOUNTS; account++) {
      LookupInResult found = accounts.lookupIn(key(account),
          List.of(LookupInSpec.get("txn").xattr()));
      if (found.exists(0)) {
        staged.add(found.contentAsObject(0));
      }
    }
    return staged;
  }

  /** Whether the record of a transaction's attempts still has this one. */
  private static boolean isAttempted(Collection accounts, JsonObject staged) {
    return accounts.lookupIn(staged.getObject("atr").getString("id"), List.of(LookupInSpec
        .exists("attempts." + staged.getObject("id").getString("atmpt")).xattr())).exists(0);
  }

  private static void expectNothingIsLost(Collection accounts) {
    int sum = 0;
    for (int account = 0; account < ACCOUNTS; account++) {
      sum += accounts.get(key(account)).contentAsObject().getInt("balance");
    }
    Expect.equal(sum, ACCOUNTS * BALANCE, "the sum of all accounts");
  }
}
