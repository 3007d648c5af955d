package acceptance;

import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import net.spy.memcached.CASResponse;
import net.spy.memcached.CASValue;
import net.spy.memcached.ConnectionFactoryBuilder;
import net.spy.memcached.ConnectionFactoryBuilder.Protocol;
import net.spy.memcached.MemcachedClient;
import net.spy.memcached.auth.AuthDescriptor;
import net.spy.memcached.auth.PlainCallbackHandler;
import net.spy.memcached.transcoders.SerializingTranscoder;

/** Cases: spymemcached, with the text protocol and with the binary one. */
final class Spymemcached {
  private static final int MIB = 1 << 20;
  private static final int TIMEOUT_MS = 20_000;
  private static final int LOGIN_MS = 3000;
  private static final Duration LIFETIME_MAX = Duration.ofSeconds(4);

  interface Body {
    void run(MemcachedClient client) throws Exception;
  }

  static void declare(Cases cases) {
    for (Protocol protocol : Protocol.values()) {
      String name = protocol == Protocol.TEXT ? "text" : "binary";
      add(cases, protocol, name + "-documents", client -> documents(client, name));
      add(cases, protocol, name + "-cas", client -> cas(client, name + "-cas"));
      add(cases, protocol, name + "-counters", client -> counters(client, name + "-count"));
      add(cases, protocol, name + "-expiry", client -> expiry(client, name));
      add(cases, protocol, name + "-touch", client -> touch(client, name));
      add(cases, protocol, name + "-many-at-once", client -> manyAtOnce(client, name));
      add(cases, protocol, name + "-large-values", client -> largeValues(client, name));
      add(cases, protocol, name + "-statistics", Spymemcached::statistics);
      add(cases, protocol, name + "-flush", client -> flush(client, name));
    }
    // The client has no `gat` of the text protocol.
    add(cases, Protocol.BINARY, "binary-get-and-touch", Spymemcached::getAndTouch);
    cases.add("spymemcached-with-plain", sdk -> with(
        binary(System.getenv("SETTEE_PASSWORD")), "SETTEE_PORT",
        client -> documents(client, "plain")));
    cases.add("spymemcached-with-wrong-password", sdk -> with(binary("wrong"), "SETTEE_PORT",
        client -> {
          Future<Boolean> answer = client.set("refused", 0, "x");
          Expect.that(!stores(answer, LOGIN_MS), "nothing is stored");
        }));
  }

  private static void add(Cases cases, Protocol protocol, String name, Body body) {
    cases.add("spymemcached-" + name, sdk -> with(
        options().setProtocol(protocol), "SETTEE_MEMCACHED_PORT", body));
  }

  private static ConnectionFactoryBuilder options() {
    SerializingTranscoder transcoder = new SerializingTranscoder(32 * MIB);
    transcoder.setCompressionThreshold(Integer.MAX_VALUE);
    return new ConnectionFactoryBuilder().setOpTimeout(TIMEOUT_MS).setTranscoder(transcoder);
  }

  /** The binary protocol with SASL PLAIN. */
  private static ConnectionFactoryBuilder binary(String password) {
    PlainCallbackHandler login =
        new PlainCallbackHandler(System.getenv("SETTEE_USER"), password);
    return options().setProtocol(Protocol.BINARY).setOpTimeout(LOGIN_MS)
        .setAuthDescriptor(new AuthDescriptor(new String[] {"PLAIN"}, login))
        .setAuthWaitTime(LOGIN_MS);
  }

  /** Runs a body with a client of the port that a variable names. */
  private static void with(ConnectionFactoryBuilder options, String port, Body body)
      throws Exception {
    InetSocketAddress address =
        new InetSocketAddress("127.0.0.1", Integer.parseInt(System.getenv(port)));
    MemcachedClient client = new MemcachedClient(options.build(), List.of(address));
    try {
      body.run(client);
    } finally {
      client.shutdown();
    }
  }

  private static void expect(Future<Boolean> answer, boolean wanted, String what)
      throws Exception {
    Expect.equal(answer.get(), wanted, what);
  }

  private static void documents(MemcachedClient client, String name) throws Exception {
    String key = name + "-document";
    client.delete(key).get();
    expect(client.add(key, 0, "one"), true, "add of a new key");
    expect(client.add(key, 0, "two"), false, "add of a present key");
    expect(client.replace(key, 0, "two"), true, "replace of a present key");
    expect(client.replace(key + "-none", 0, "x"), false, "replace of a missing key");
    expect(client.append(key, "!"), true, "append");
    expect(client.prepend(key, "?"), true, "prepend");
    Expect.equal(client.get(key), "?two!", "value after append and prepend");
    byte[] bytes = new byte[256];
    for (int value = 0; value < bytes.length; value++) {
      bytes[value] = (byte) value;
    }
    expect(client.set(key, 0, bytes), true, "any bytes are stored");
    Expect.that(Arrays.equals((byte[]) client.get(key), bytes), "any bytes come back");
    expect(client.set(key, 0, new byte[0]), true, "an empty value is stored");
    Expect.equal(((byte[]) client.get(key)).length, 0, "size of an empty value");
    expect(client.delete(key), true, "delete of a present key");
    expect(client.delete(key), false, "delete of a missing key");
    Expect.equal(client.get(key), null, "value after delete");
  }

  private static void cas(MemcachedClient client, String key) throws Exception {
    client.delete(key).get();
    Expect.equal(client.cas(key, 1, "x"), CASResponse.NOT_FOUND, "cas of a missing key");
    client.set(key, 0, "one").get();
    CASValue<Object> read = client.gets(key);
    Expect.equal(read.getValue(), "one", "value of gets");
    Expect.equal(client.cas(key, read.getCas(), "two"), CASResponse.OK, "the right version");
    Expect.equal(client.cas(key, read.getCas(), "three"), CASResponse.EXISTS, "an old version");
    Expect.equal(client.get(key), "two", "value after both");
  }

  private static void counters(MemcachedClient client, String key) throws Exception {
    client.delete(key).get();
    Expect.equal(client.incr(key, 1), -1L, "incr of a missing key");
    Expect.equal(client.incr(key, 1, 10), 10L, "a counter with its initial value");
    Expect.equal(client.incr(key, 5), 15L, "after + 5");
    Expect.equal(client.decr(key, 4), 11L, "after - 4");
    Expect.equal(client.decr(key, 20), 0L, "floor");
  }

  private static boolean isGone(MemcachedClient client, String key) {
    return client.get(key) == null;
  }

  private static void expiry(MemcachedClient client, String name) throws Exception {
    int soon = (int) (System.currentTimeMillis() / 1000) + 100;
    client.set(name + "-brief", 1, "x").get();
    client.set(name + "-long", 100, "x").get();
    client.set(name + "-absolute", soon, "x").get();
    Expect.within(LIFETIME_MAX, () -> isGone(client, name + "-brief"), "the value expires");
    Expect.equal(client.getBulk(name + "-long", name + "-absolute").size(), 2,
        "values that are not over");
  }

  private static void touch(MemcachedClient client, String name) throws Exception {
    String touched = name + "-touched";
    client.set(touched, 100, "x").get();
    expect(client.touch(touched, 1), true, "touch of a present key");
    expect(client.touch(name + "-none", 1), false, "touch of a missing key");
    Expect.within(LIFETIME_MAX, () -> isGone(client, touched), "the touched value expires");
  }

  private static void getAndTouch(MemcachedClient client) throws Exception {
    String got = "binary-got";
    client.set(got, 100, "y").get();
    Expect.equal(client.getAndTouch(got, 1).getValue(), "y", "value of a touch");
    Expect.within(LIFETIME_MAX, () -> isGone(client, got), "what was got and touched expires");
  }

  /** Thousands of requests before the first answer is looked at. */
  private static void manyAtOnce(MemcachedClient client, String name) throws Exception {
    Map<String, Object> wanted = new HashMap<>();
    List<Future<Boolean>> answers = new ArrayList<>();
    for (int number = 0; number < 5000; number++) {
      wanted.put(name + "-many-" + number, "value " + number);
    }
    for (Map.Entry<String, Object> each : wanted.entrySet()) {
      answers.add(client.set(each.getKey(), 0, each.getValue()));
    }
    for (Future<Boolean> answer : answers) {
      expect(answer, true, "a store among many");
    }
    List<String> keys = new ArrayList<>(wanted.keySet());
    keys.add(name + "-none");
    Expect.that(client.getBulk(keys).equals(wanted), "every value comes back");
  }

  private static void largeValues(MemcachedClient client, String name) throws Exception {
    String key = name + "-large";
    for (int size : new int[] {4095, 4096, 64 << 10, MIB, 20 * MIB}) {
      byte[] value = new byte[size];
      Arrays.fill(value, (byte) size);
      value[size - 1] = 7;
      expect(client.set(key, 0, value), true, size + " bytes are stored");
      Expect.that(Arrays.equals((byte[]) client.get(key), value), size + " bytes come back");
    }
    String larger = name + "-larger";
    Future<Boolean> answer = client.set(larger, 0, new byte[20 * MIB + 1]);
    Expect.that(!stores(answer, TIMEOUT_MS), "one byte more is not stored");
    Expect.equal(client.get(larger), null, "what is too large");
  }

  private static boolean stores(Future<Boolean> answer, int patienceMs) {
    try {
      return answer.get(patienceMs, TimeUnit.MILLISECONDS);
    } catch (Exception error) {
      return false;
    }
  }

  private static Map<String, String> of(Map<SocketAddress, Map<String, String>> servers) {
    Expect.equal(servers.size(), 1, "number of servers");
    return servers.values().iterator().next();
  }

  private static void statistics(MemcachedClient client) throws Exception {
    long before = Long.parseLong(of(client.getStats()).get("cmd_set"));
    client.set("counted", 0, "x").get();
    Expect.that(Long.parseLong(of(client.getStats()).get("cmd_set")) > before, "cmd_set rises");
    Expect.that(!of(client.getStats("vbucket-details")).isEmpty(), "a group of the bucket");
    Expect.that(!client.getVersions().values().iterator().next().isEmpty(), "a version");
  }

  private static void flush(MemcachedClient client, String name) throws Exception {
    client.set(name + "-flushed", 0, "x").get();
    expect(client.flush(), true, "flush");
    Expect.equal(client.get(name + "-flushed"), null, "value after flush");
    expect(client.set(name + "-flushed", 0, "y"), true, "a store after flush");
    Expect.equal(client.get(name + "-flushed"), "y", "value of the store after flush");
  }
}
