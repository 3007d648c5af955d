package acceptance;

import com.couchbase.client.dcp.StreamFrom;
import com.couchbase.client.dcp.StreamTo;
import com.couchbase.client.dcp.highlevel.CollectionCreated;
import com.couchbase.client.dcp.highlevel.CollectionDropped;
import com.couchbase.client.dcp.highlevel.DocumentChange;
import com.couchbase.client.dcp.highlevel.ScopeCreated;
import com.couchbase.client.dcp.highlevel.ScopeDropped;
import com.couchbase.client.dcp.highlevel.internal.DatabaseChangeEvent;
import com.couchbase.client.java.Collection;
import com.couchbase.client.java.manager.collection.CollectionManager;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;

/** Cases: scopes and collections. */
final class Manifests {
  static void declare(Cases cases) {
    cases.add("manifest-events-come-in-their-place", Manifests::events);
    cases.add("a-filter-lets-one-collection-through", Manifests::oneCollection);
    cases.add("a-filter-lets-one-scope-through", Manifests::oneScope);
    cases.add("a-client-without-collections-gets-the-default-one", Manifests::unaware);
    cases.add("a-dropped-collection-ends-its-streams", Manifests::dropped);
  }

  /** What of an event does not depend on numbers that the node gives. */
  private static String told(DatabaseChangeEvent event) {
    if (event instanceof ScopeCreated created) {
      return "+scope " + created.getScopeName();
    }
    if (event instanceof CollectionCreated created) {
      return "+collection " + created.getCollectionName();
    }
    if (event instanceof DocumentChange change) {
      return change.getCollection().name();
    }
    return event instanceof ScopeDropped ? "-scope" : "-collection";
  }

  private static void events(Sdk sdk) throws Exception {
    CollectionManager manager = sdk.writer.bucket.collections();
    try (Consumer consumer = Consumer.following(builder -> { })) {
      manager.createScope("market");
      manager.createCollection("market", "fruit");
      manager.createCollection("market", "nuts");
      Collection fruit = sdk.writer.bucket.scope("market").collection("fruit");
      Collection nuts = sdk.writer.bucket.scope("market").collection("nuts");
      sdk.writer.storeMany(fruit, Writer.keys("event", 100), 10);
      consumer.catchUp();
      consumer.expectDocuments(sdk.writer.documents, key -> key.startsWith("market."));
      manager.dropCollection("market", "fruit");
      sdk.writer.documents.keySet().removeIf(key -> key.startsWith("market.fruit."));
      sdk.writer.storeMany(nuts, Writer.keys("event", 100), 10);
      consumer.catchUp();
      consumer.expectDocuments(sdk.writer.documents, key -> key.startsWith("market."));
      manager.dropScope("market");
      sdk.writer.documents.keySet().removeIf(key -> key.startsWith("market."));
      Expect.within(Consumer.LIMIT, () -> consumer.of(ScopeDropped.class).size()
          == consumer.client.numPartitions(), "every vBucket tells that the scope is gone");
      consumer.expectDocuments(sdk.writer.documents, key -> key.startsWith("market."));
      for (int vbucket = 0; vbucket < consumer.client.numPartitions(); vbucket++) {
        List<String> told = new ArrayList<>(
            consumer.ofVbucket(vbucket).stream().map(Manifests::told).toList());
        // Documents lie between the events of their collections.
        Expect.that(told.lastIndexOf("fruit") < told.indexOf("-collection"), "order: " + told);
        Expect.that(told.lastIndexOf("nuts") < told.lastIndexOf("-collection"), "order: " + told);
        told.removeIf(each -> Set.of("fruit", "nuts").contains(each));
        Expect.equal(told, List.of("+scope market", "+collection fruit", "+collection nuts",
            "-collection", "-collection", "-scope"), "events of vBucket " + vbucket);
      }
    }
  }

  /** A collection with documents, beside another one of its scope. */
  private static Collection collection(Sdk sdk, String scope) {
    CollectionManager manager = sdk.writer.bucket.collections();
    manager.createScope(scope);
    for (String name : List.of("one", "other")) {
      manager.createCollection(scope, name);
      Collection made = sdk.writer.bucket.scope(scope).collection(name);
      sdk.writer.storeMany(made, Writer.keys("filtered", 200), 100);
    }
    return sdk.writer.bucket.scope(scope).collection("one");
  }

  private static void oneCollection(Sdk sdk) throws Exception {
    Collection one = collection(sdk, "filtered");
    Consumer got = Consumer.toNow(builder -> builder.collectionNames("filtered.one"));
    got.expectDocuments(sdk.writer.documents, key -> key.startsWith("filtered.one."));
    Expect.equal(got.of(ScopeCreated.class).size(), 0, "events of the scope");
    long id = got.of(CollectionCreated.class).get(0).getCollectionId();
    try (Consumer follower = Consumer.following(builder -> builder.collectionIds(0L, id))) {
      sdk.writer.storeMany(one, Writer.keys("both", 100), 10);
      sdk.writer.storeMany("both", 100, 10);
      follower.catchUp();
      follower.expectDocuments(sdk.writer.documents, key -> key.contains(".both-"));
    }
  }

  private static void oneScope(Sdk sdk) throws Exception {
    collection(sdk, "scoped");
    Consumer got = Consumer.toNow(builder -> builder.scopeName("scoped"));
    got.expectDocuments(sdk.writer.documents, key -> key.startsWith("scoped."));
    Expect.that(got.of(ScopeCreated.class).stream().allMatch(
        created -> created.getScopeName().equals("scoped")), "events of this scope alone");
  }

  private static void unaware(Sdk sdk) throws Exception {
    Consumer got = Consumer.toNow(builder -> builder.collectionsAware(false));
    got.expectDocuments(sdk.writer.documents, key -> key.startsWith("_default._default."));
    Expect.equal(got.of(CollectionCreated.class).size(), 0, "events");
  }

  private static void dropped(Sdk sdk) throws Exception {
    CollectionManager manager = sdk.writer.bucket.collections();
    collection(sdk, "short");
    try (Consumer consumer = Consumer.connect(builder -> builder.collectionNames("short.one"))) {
      consumer.begin(StreamFrom.BEGINNING, StreamTo.INFINITY);
      consumer.catchUp();
      manager.dropCollection("short", "one");
      Expect.within(Consumer.LIMIT, () -> consumer.endCount() == consumer.client.numPartitions(),
          "every stream ends");
      Expect.equal(consumer.endReasons(), Set.of("FILTER_EMPTY"), "why streams have ended");
      Expect.equal(consumer.of(CollectionDropped.class).size(), consumer.client.numPartitions(),
          "events that say it");
      Expect.equal(consumer.documents().keySet(), Set.of(), "keys");
      sdk.writer.documents.keySet().removeIf(key -> key.startsWith("short.one."));
    }
  }
}
