package acceptance;

import java.util.List;

/** Streams from a node, or a cluster, with the Java DCP client, unmodified; a line a case. */
public final class Main {
  public static void main(String[] arguments) {
    List<String> chosen = List.of(arguments).subList(1, arguments.length);
    Cases cases = new Cases();
    if (arguments[0].equals("cluster")) {
      TwoNodes.declare(cases);
    } else {
      Connecting.declare(cases);
      Contents.declare(cases);
      Following.declare(cases);
      Manifests.declare(cases);
      Histories.declare(cases);
    }
    boolean isGood;
    try (Sdk sdk = new Sdk()) {
      isGood = cases.run(sdk, chosen);
    }
    System.exit(isGood ? 0 : 1);
  }
}
