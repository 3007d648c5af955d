package acceptance;

import static com.couchbase.client.java.kv.GetOptions.getOptions;
import static com.couchbase.client.java.kv.IncrementOptions.incrementOptions;
import static com.couchbase.client.java.kv.MutateInOptions.mutateInOptions;
import static com.couchbase.client.java.kv.UpsertOptions.upsertOptions;
import static com.couchbase.client.java.manager.collection.CreateCollectionSettings.*;
import static com.couchbase.client.java.manager.collection.UpdateCollectionSettings.*;

import com.couchbase.client.core.error.CollectionExistsException;
import com.couchbase.client.core.error.CollectionNotFoundException;
import com.couchbase.client.core.error.CouchbaseException;
import com.couchbase.client.core.error.DocumentNotFoundException;
import com.couchbase.client.core.error.ScopeExistsException;
import com.couchbase.client.core.error.ScopeNotFoundException;
import com.couchbase.client.core.error.TimeoutException;
import com.couchbase.client.java.Collection;
import com.couchbase.client.java.kv.MutateInSpec;
import com.couchbase.client.java.kv.MutationResult;
import com.couchbase.client.java.kv.StoreSemantics;
import com.couchbase.client.java.manager.collection.CollectionManager;
import com.couchbase.client.java.manager.collection.CollectionSpec;
import com.couchbase.client.java.manager.collection.CreateCollectionSettings;
import com.couchbase.client.java.manager.collection.ScopeSpec;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;

/** Cases: scopes and collections, and documents in them. */
final class Collections {
  private static final Duration BRIEF = Duration.ofSeconds(1);
  private static final Duration LIMIT = Duration.ofSeconds(10);

  static void declare(Cases cases) {
    cases.add("collections-come-and-go", Collections::comeAndGo);
    cases.add("documents-in-collections", Collections::documents);
    cases.add("dropped-collection", sdk -> {
      Collection collection = created(sdk, "short", createCollectionSettings());
      collection.upsert("k", 1);
      sdk.bucket.collections().dropCollection("shop", "short");
      expectGone(() -> collection.get("k", getOptions().timeout(BRIEF)));
      expectGone(() -> collection.upsert("k", 2, upsertOptions().timeout(BRIEF)));
      Collection again = created(sdk, "short", createCollectionSettings());
      Expect.error(() -> again.get("k"), DocumentNotFoundException.class);
      again.upsert("k", 3);
      Expect.equal(again.get("k").contentAs(Integer.class), 3, "value");
    });
    cases.add("collection-expiry", sdk -> {
      CreateCollectionSettings brief = createCollectionSettings().maxExpiry(Duration.ofSeconds(2));
      Collection collection = created(sdk, "fresh", brief);
      long began = System.nanoTime();
      collection.upsert("k", 1);
      Expect.within(LIMIT, () -> !collection.exists("k").exists(), "it is over by itself");
      Expect.that(System.nanoTime() - began > 900_000_000, "not at once");
    });
    cases.add("collection-expiry-changes", sdk -> {
      Collection collection = created(sdk, "changing", createCollectionSettings());
      CollectionManager manager = sdk.bucket.collections();
      manager.updateCollection("shop", "changing",
          updateCollectionSettings().maxExpiry(Duration.ofSeconds(1)));
      collection.upsert("k", 1);
      Expect.within(LIMIT, () -> !collection.exists("k").exists(), "it is over");
      Expect.error(() -> manager.updateCollection("shop", "none",
          updateCollectionSettings().maxExpiry(BRIEF)), CollectionNotFoundException.class);
    });
    cases.add("unknown-collection", sdk -> {
      expectGone(() -> sdk.bucket.scope("_default").collection("unknown")
          .get("k", getOptions().timeout(BRIEF)));
      expectGone(() -> sdk.bucket.scope("unknown").collection("c")
          .get("k", getOptions().timeout(BRIEF)));
    });
  }

  static void expectGone(Expect.Attempt attempt) {
    Expect.error(attempt, CollectionNotFoundException.class, ScopeNotFoundException.class,
        TimeoutException.class);
  }

  /** The names of all collections by scope. */
  private static Map<String, Set<String>> listed(CollectionManager manager) {
    Map<String, Set<String>> names = new TreeMap<>();
    for (ScopeSpec scope : manager.getAllScopes()) {
      Set<String> collections = new TreeSet<>();
      for (CollectionSpec collection : scope.collections()) {
        collections.add(collection.name());
      }
      names.put(scope.name(), collections);
    }
    return names;
  }

  /** A new collection, which can be used. */
  private static Collection created(Sdk sdk, String name, CreateCollectionSettings settings) {
    CollectionManager manager = sdk.bucket.collections();
    if (!listed(manager).containsKey("shop")) {
      manager.createScope("shop");
    }
    manager.createCollection("shop", name, settings);
    return sdk.bucket.scope("shop").collection(name);
  }

  private static void comeAndGo(Sdk sdk) {
    CollectionManager manager = sdk.bucket.collections();
    manager.createScope("market");
    Expect.error(() -> manager.createScope("market"), ScopeExistsException.class);
    manager.createCollection("market", "fruit");
    Expect.error(() -> manager.createCollection("market", "fruit"),
        CollectionExistsException.class);
    Expect.error(() -> manager.createCollection("nowhere", "fruit"), ScopeNotFoundException.class);
    Expect.error(() -> manager.createScope("_mine"), CouchbaseException.class);
    Expect.equal(listed(manager).get("market"), Set.of("fruit"), "collections");
    manager.dropCollection("market", "fruit");
    Expect.error(() -> manager.dropCollection("market", "fruit"),
        CollectionNotFoundException.class);
    manager.dropScope("market");
    Expect.error(() -> manager.dropScope("market"), ScopeNotFoundException.class);
    Expect.that(!listed(manager).containsKey("market"), "the scope is gone");
  }

  private static void documents(Sdk sdk) {
    Collection fruit = created(sdk, "fruit", createCollectionSettings());
    Collection nuts = created(sdk, "nuts", createCollectionSettings());
    String key = sdk.key();
    fruit.upsert(key, "fruit");
    MutationResult stored = nuts.upsert(key, "nuts");
    Expect.error(() -> sdk.collection.get(key), DocumentNotFoundException.class);
    Expect.equal(fruit.get(key).contentAs(String.class), "fruit", "value");
    fruit.remove(key);
    Expect.error(() -> fruit.get(key), DocumentNotFoundException.class);
    Expect.equal(nuts.get(key).contentAs(String.class), "nuts", "value");
    MutationResult part = nuts.mutateIn("parts", List.of(MutateInSpec.upsert("a", 1)),
        mutateInOptions().storeSemantics(StoreSemantics.UPSERT));
    MutationResult counted = nuts.binary().increment("count", incrementOptions().initial(7));
    Expect.equal(Scans.keys(nuts, Scans.everything(), Scans.sees(List.of(stored, part, counted))),
        List.of("count", key, "parts"), "keys that a scan finds");
  }
}
