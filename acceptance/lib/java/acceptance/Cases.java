package acceptance;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Cases in the order of running, by names that are the same in every language. */
final class Cases {
  interface Case {
    void run(Sdk sdk) throws Exception;
  }

  private final Map<String, Case> cases = new LinkedHashMap<>();

  void add(String name, Case body) {
    cases.put(name, body);
  }

  /** Runs the chosen ones, or all; whether none failed. */
  boolean run(Sdk sdk, List<String> chosen) {
    boolean isGood = true;
    for (Map.Entry<String, Case> each : cases.entrySet()) {
      if (chosen.isEmpty() || chosen.contains(each.getKey())) {
        isGood &= runOne(sdk, each.getKey(), each.getValue());
      }
    }
    return isGood;
  }

  private static boolean runOne(Sdk sdk, String name, Case body) {
    long started = System.nanoTime();
    try {
      body.run(sdk);
    } catch (Throwable error) {
      System.out.println("CASE " + name + " FAIL " + oneLine(error));
      return false;
    }
    double seconds = (System.nanoTime() - started) / 1e9;
    System.out.println("CASE " + name + " ok"
        + (seconds >= 1 ? String.format(" (%.1f s)", seconds) : ""));
    return true;
  }

  /** A message without line ends, cut to a readable length. */
  static String oneLine(Throwable error) {
    String line = error.toString().replaceAll("\\s+", " ");
    return line.substring(0, Math.min(line.length(), 400));
  }
}
