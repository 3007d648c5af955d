package acceptance;

import java.util.List;

/**
 * Drives a node, or a cluster, with the second generation of the Java SDK, unmodified; prints a
 * line a case.
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
      Locks.declare(cases);
      Expiry.declare(cases);
      NumbersAndBytes.declare(cases);
      Values.declare(cases);
      Bulk.declare(cases);
      SubDocuments.declare(cases);
      Attributes.declare(cases);
      Structures.declare(cases);
      Encryption.declare(cases);
      Durability.declare(cases);
    }
    boolean isGood;
    try (Sdk sdk = new Sdk()) {
      isGood = cases.run(sdk, chosen);
    }
    System.exit(isGood ? 0 : 1);
  }
}
