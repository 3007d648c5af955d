package acceptance;

import java.util.List;

/**
 * Drives a node, or a cluster, with the Java SDK, and a node with spymemcached, both unmodified;
 * prints a line a case.
 */
public final class Main {
  public static void main(String[] arguments) {
    List<String> chosen = List.of(arguments).subList(1, arguments.length);
    Cases cases = new Cases();
    if (arguments[0].equals("cluster")) {
      TwoNodes.declare(cases);
    } else {
      Connecting.declare(cases);
      Documents.declare(cases);
      LocksAndExpiry.declare(cases);
      NumbersAndBytes.declare(cases);
      Values.declare(cases);
      Bulk.declare(cases);
      Collections.declare(cases);
      SubDocuments.declare(cases);
      Transactions.declare(cases);
      Structures.declare(cases);
      Scans.declare(cases);
      Buckets.declare(cases);
      Users.declare(cases);
      Encryption.declare(cases);
      Durability.declare(cases);
      // It empties the bucket: nothing may come behind it that stops the node.
      Spymemcached.declare(cases);
    }
    boolean isGood;
    try (Sdk sdk = new Sdk()) {
      isGood = cases.run(sdk, chosen);
    }
    System.exit(isGood ? 0 : 1);
  }
}
