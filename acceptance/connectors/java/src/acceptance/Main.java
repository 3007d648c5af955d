package acceptance;

import java.util.List;

/** Spring, and transactions of several clients, against a node; a line a case. */
public final class Main {
  public static void main(String[] chosen) {
    Cases cases = new Cases();
    Documents.declare(cases);
    Caches.declare(cases);
    KilledClients.declare(cases);
    boolean isGood;
    try (Sdk sdk = new Sdk()) {
      isGood = cases.run(sdk, List.of(chosen));
    }
    System.exit(isGood ? 0 : 1);
  }
}
