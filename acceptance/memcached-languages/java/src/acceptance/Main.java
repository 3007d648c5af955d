package acceptance;

import com.google.code.yanf4j.core.impl.StandardSocketOption;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import net.rubyeye.xmemcached.CommandFactory;
import net.rubyeye.xmemcached.GetsResponse;
import net.rubyeye.xmemcached.MemcachedClient;
import net.rubyeye.xmemcached.MemcachedClientBuilder;
import net.rubyeye.xmemcached.XMemcachedClientBuilder;
import net.rubyeye.xmemcached.command.BinaryCommandFactory;
import net.rubyeye.xmemcached.command.TextCommandFactory;
import net.rubyeye.xmemcached.transcoders.SerializingTranscoder;

/** Drives the memcached port with xmemcached, in lines and in frames; prints a line a case. */
final class Main {
  private static final int MIB = 1 << 20;
  private static final int KEY_SIZE_MAX = 250;
  private static final int CONNECTION_COUNT = 50;
  private static final int TIMEOUT_MS = 20_000;
  private static final int LIFETIME_MAX_MS = 4000;
  private static final InetSocketAddress SERVER = new InetSocketAddress(
      "127.0.0.1", Integer.parseInt(System.getenv("SETTEE_MEMCACHED_PORT")));
  private static final BufferedReader INPUT =
      new BufferedReader(new InputStreamReader(System.in));

  interface Body {
    void run(MemcachedClient client, String name) throws Exception;
  }

  public static void main(String[] arguments) {
    Map<String, Body> bodies = new LinkedHashMap<>();
    bodies.put("documents", Main::documents);
    bodies.put("cas", Main::cas);
    bodies.put("counters", Main::counters);
    bodies.put("expiry", Main::expiry);
    bodies.put("without-replies", Main::withoutReplies);
    bodies.put("many-keys", Main::manyKeys);
    bodies.put("sizes", Main::sizes);
    bodies.put("statistics", Main::statistics);
    bodies.put("flush", Main::flush);
    bodies.put("restart", Main::restart);
    List<String> chosen = List.of(arguments);
    boolean isGood = true;
    for (String protocol : List.of("text", "binary")) {
      for (Map.Entry<String, Body> each : bodies.entrySet()) {
        String name = "xmemcached-" + protocol + "-" + each.getKey();
        if (chosen.isEmpty() || chosen.contains(name)) {
          isGood &= run(name, protocol, each.getValue());
        }
      }
    }
    System.exit(isGood ? 0 : 1);
  }

  private static boolean run(String name, String protocol, Body body) {
    boolean isBinary = protocol.equals("binary");
    String outcome = "ok";
    try {
      MemcachedClient client = connected(isBinary, name);
      try {
        body.run(client, "xm-" + protocol);
      } finally {
        client.shutdown();
      }
    } catch (Exception | AssertionError error) {
      outcome = "FAIL " + error.toString().replaceAll("\\s+", " ");
    }
    System.out.println("CASE " + name + " " + outcome);
    return outcome.equals("ok");
  }

  private static MemcachedClient connected(boolean isBinary, String name) throws Exception {
    CommandFactory commands = isBinary ? new BinaryCommandFactory() : new TextCommandFactory();
    MemcachedClientBuilder builder = new XMemcachedClientBuilder(List.of(SERVER));
    SerializingTranscoder transcoder = new SerializingTranscoder(2 * MIB);
    transcoder.setCompressionThreshold(Integer.MAX_VALUE);
    builder.setCommandFactory(commands);
    builder.setTranscoder(transcoder);
    builder.setOpTimeout(TIMEOUT_MS);
    builder.setConnectionPoolSize(name.endsWith("many-keys") ? CONNECTION_COUNT : 1);
    builder.setSocketOption(StandardSocketOption.TCP_NODELAY, true);
    return builder.build();
  }

  private static void that(boolean holds, String sentence) {
    if (!holds) {
      throw new AssertionError(sentence);
    }
  }

  private static void equal(Object got, Object wanted, String what) {
    that(Objects.equals(got, wanted), what + ": expected " + wanted + ", got " + got);
  }

  interface Attempt {
    Object run() throws Exception;
  }

  private static void fails(Attempt attempt, String what) {
    Object got;
    try {
      got = attempt.run();
    } catch (Exception error) {
      return;
    }
    throw new AssertionError(what + ": expected an error, got " + got);
  }

  private static void documents(MemcachedClient client, String name) throws Exception {
    client.delete(name);
    that(!client.replace(name, 0, "x"), "replace of a missing key");
    that(!client.append(name, "x"), "append to a missing key");
    that(client.add(name, 0, "one"), "add of a new key");
    that(!client.add(name, 0, "x"), "add of a present key");
    that(client.replace(name, 0, "two"), "replace of a present key");
    that(client.append(name, "!"), "append");
    that(client.prepend(name, "?"), "prepend");
    equal(client.get(name), "?two!", "value after append and prepend");
    for (Object value : List.of(17, 18L, true, "", "text", List.of("a", "b"))) {
      that(client.set(name, 0, value), "any kind of value is stored");
      equal(client.get(name), value, "flags tell the kind");
    }
    that(client.delete(name), "delete of a present key");
    that(!client.delete(name), "delete of a missing key");
    equal(client.get(name), null, "value after delete");
  }

  private static void cas(MemcachedClient client, String name) throws Exception {
    String key = name + "-cas";
    client.set(key, 0, "one");
    GetsResponse<String> read = client.gets(key);
    equal(read.getValue(), "one", "value of gets");
    that(client.cas(key, 0, "two", read.getCas()), "the right version");
    that(!client.cas(key, 0, "three", read.getCas()), "an old version");
    equal(client.get(key), "two", "value after both");
  }

  private static void counters(MemcachedClient client, String name) throws Exception {
    String key = name + "-count";
    client.delete(key);
    equal(client.incr(key, 5, 10), 10L, "a counter with its initial value");
    equal(client.incr(key, 5), 15L, "after + 5");
    equal(client.decr(key, 4), 11L, "after - 4");
    equal(client.decr(key, 20), 0L, "floor");
    client.set(name + "-word", 0, "two");
    fails(() -> client.incr(name + "-word", 1), "incr of a word");
    equal(client.get(name + "-word"), "two", "the connection goes on");
  }

  private static void expiry(MemcachedClient client, String name) throws Exception {
    String brief = name + "-brief";
    String touched = name + "-touched";
    String absolute = name + "-absolute";
    client.set(brief, 1, "x");
    client.set(touched, 1, "x");
    client.set(absolute, (int) (System.currentTimeMillis() / 1000) + 100, "x");
    that(client.touch(touched, 100), "touch of a present key");
    that(!client.touch(name + "-none", 100), "touch of a missing key");
    long end = System.currentTimeMillis() + LIFETIME_MAX_MS;
    while (client.get(brief) != null) {
      that(System.currentTimeMillis() < end, "the value expires");
      Thread.sleep(20);
    }
    equal(client.get(List.of(brief, touched, absolute)), Map.of(touched, "x", absolute, "x"),
        "values that are not over");
  }

  private static void withoutReplies(MemcachedClient client, String name) throws Exception {
    String key = name + "-quiet";
    for (int number = 0; number < 5000; number++) {
      client.setWithNoReply(key + number, 0, "0");
      client.incrWithNoReply(key + number, number);
    }
    for (int number = 0; number < 5000; number += 100) {
      equal(client.get(key + number), String.valueOf(number), "a value without a reply");
      client.deleteWithNoReply(key + number);
      equal(client.get(key + number), null, "value after delete");
    }
  }

  private static void manyKeys(MemcachedClient client, String name) throws Exception {
    Map<String, Object> wanted = new LinkedHashMap<>();
    for (int number = 0; number < 5000; number++) {
      wanted.put(name + "-many-" + number, "value " + number);
    }
    for (Map.Entry<String, Object> each : wanted.entrySet()) {
      that(client.set(each.getKey(), 0, each.getValue()), "a store among many");
    }
    List<String> keys = new ArrayList<>(wanted.keySet());
    keys.add(name + "-none");
    that(client.get(keys).equals(wanted), "every value comes back");
  }

  private static void sizes(MemcachedClient client, String name) throws Exception {
    for (int size : new int[] {4095, 64 << 10, MIB}) {
      byte[] value = new byte[size];
      Arrays.fill(value, (byte) size);
      that(client.set(name + "-large", 0, value), size + " bytes are stored");
      that(Arrays.equals(client.get(name + "-large"), value), size + " bytes come back");
    }
    String longest = name + "k".repeat(KEY_SIZE_MAX - name.length());
    that(client.set(longest, 0, "long"), "the longest key");
    equal(client.get(longest), "long", "value of the longest key");
  }

  private static void statistics(MemcachedClient client, String name) throws Exception {
    Map<String, String> stats = client.getStats().get(SERVER);
    that(Long.parseLong(stats.get("cmd_set")) > 0, "cmd_set");
    for (String group : List.of("settings", "items", "slabs")) {
      that(client.getStatsByItem(group).containsKey(SERVER), "the group " + group);
    }
    that(!client.getVersions().get(SERVER).isEmpty(), "a version");
  }

  private static void flush(MemcachedClient client, String name) throws Exception {
    client.set(name + "-flushed", 0, "x");
    client.flushAll();
    equal(client.get(name + "-flushed"), null, "value after flush");
  }

  private static void restart(MemcachedClient client, String name) throws Exception {
    client.set(name + "-kept", 0, "x");
    System.out.println("NODE restart");
    INPUT.readLine();
    // It connects again by itself, after a while.
    long end = System.currentTimeMillis() + TIMEOUT_MS;
    Object value = null;
    while (value == null && System.currentTimeMillis() < end) {
      try {
        value = client.get(name + "-kept");
      } catch (Exception error) {
        Thread.sleep(50);
      }
    }
    equal(value, "x", "value after the restart");
  }
}
