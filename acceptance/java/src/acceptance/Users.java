package acceptance;

import static com.couchbase.client.java.kv.GetOptions.getOptions;
import static com.couchbase.client.java.kv.RemoveOptions.removeOptions;
import static com.couchbase.client.java.kv.UpsertOptions.upsertOptions;

import com.couchbase.client.core.error.CouchbaseException;
import com.couchbase.client.core.error.DocumentNotFoundException;
import com.couchbase.client.core.error.GroupNotFoundException;
import com.couchbase.client.core.error.UserNotFoundException;
import com.couchbase.client.java.Bucket;
import com.couchbase.client.java.Cluster;
import com.couchbase.client.java.Collection;
import com.couchbase.client.java.manager.collection.CollectionManager;
import com.couchbase.client.java.manager.user.AuthDomain;
import com.couchbase.client.java.manager.user.Group;
import com.couchbase.client.java.manager.user.Role;
import com.couchbase.client.java.manager.user.User;
import com.couchbase.client.java.manager.user.UserManager;
import java.time.Duration;
import java.util.List;
import java.util.Set;

/** Cases: users, groups, and what they may do. */
final class Users {
  private static final String PASSWORD = "a-password";
  private static final Duration BRIEF = Duration.ofSeconds(2);
  private static final Duration LIMIT = Duration.ofSeconds(10);
  private static final Role READER = new Role("data_reader", Sdk.BUCKET);
  private static final Role WRITER = new Role("data_writer", Sdk.BUCKET);

  interface Body {
    void run(Bucket bucket) throws Exception;
  }

  static void declare(Cases cases) {
    cases.add("users-come-and-go", Users::comeAndGo);
    cases.add("groups-come-and-go", Users::groups);
    cases.add("roles-are-listed", sdk -> {
      List<String> names = sdk.cluster.users().getRoles().stream()
          .map(found -> found.role().name()).toList();
      List<String> known = List.of("admin", "bucket_admin", "data_reader", "data_writer");
      Expect.that(names.containsAll(known), "roles: " + names);
    });
    cases.add("own-password", Users::ownPassword);
    cases.add("reader-does-not-write", Users::reader);
    cases.add("user-of-one-collection", Users::ofOneCollection);
    cases.add("removed-user", Users::removed);
  }

  /** A user with these roles. */
  private static User user(String name, Role... roles) {
    String displayName = name.substring(0, 1).toUpperCase() + name.substring(1);
    return new User(name).displayName(displayName).password(PASSWORD).roles(roles);
  }

  /** Runs a body with the bucket as a new user has it, who is dropped in the end. */
  private static void with(Sdk sdk, User user, Body body) throws Exception {
    sdk.cluster.users().upsertUser(user);
    Cluster cluster = Sdk.connect(user.username(), PASSWORD);
    try {
      body.run(Sdk.ready(cluster));
    } finally {
      cluster.disconnect();
      sdk.cluster.users().dropUser(user.username());
    }
  }

  private static Set<Role> rolesOf(UserManager manager, String name) {
    return manager.getUser(AuthDomain.LOCAL, name).user().roles();
  }

  private static void comeAndGo(Sdk sdk) {
    UserManager manager = sdk.cluster.users();
    Expect.error(() -> manager.getUser(AuthDomain.LOCAL, "alice"), UserNotFoundException.class);
    manager.upsertUser(user("alice", READER));
    User found = manager.getUser(AuthDomain.LOCAL, "alice").user();
    Expect.equal(found.username(), "alice", "name");
    Expect.equal(found.displayName(), "Alice", "displayed name");
    Expect.equal(found.roles(), Set.of(READER), "roles");
    Expect.that(manager.getAllUsers().stream().anyMatch(
        each -> each.user().username().equals("alice")), "it is listed");
    manager.upsertUser(user("alice", READER, WRITER));
    Expect.equal(rolesOf(manager, "alice"), Set.of(READER, WRITER), "roles");
    manager.dropUser("alice");
    Expect.error(() -> manager.getUser(AuthDomain.LOCAL, "alice"), UserNotFoundException.class);
    Expect.error(() -> manager.dropUser("alice"), CouchbaseException.class);
  }

  private static void groups(Sdk sdk) {
    UserManager manager = sdk.cluster.users();
    Expect.error(() -> manager.getGroup("readers"), GroupNotFoundException.class);
    manager.upsertGroup(new Group("readers").description("They read").roles(READER));
    Group found = manager.getGroup("readers");
    Expect.equal(found.description(), "They read", "description");
    Expect.equal(found.roles(), Set.of(READER), "roles");
    List<String> all = manager.getAllGroups().stream().map(Group::name).toList();
    Expect.equal(all, List.of("readers"), "all groups");
    manager.upsertUser(user("bob").groups("readers"));
    Expect.equal(manager.getUser(AuthDomain.LOCAL, "bob").effectiveRoles(), Set.of(READER),
        "effective roles");
    manager.dropGroup("readers");
    Expect.error(() -> manager.dropGroup("readers"), CouchbaseException.class);
    manager.dropUser("bob");
  }

  private static void ownPassword(Sdk sdk) {
    sdk.cluster.users().upsertUser(user("carol", new Role("admin")));
    Cluster carol = Sdk.connect("carol", PASSWORD);
    Sdk.ready(carol);
    carol.users().changePassword("another-one");
    carol.disconnect();
    Connecting.expectRefused("carol", PASSWORD);
    Cluster again = Sdk.connect("carol", "another-one");
    Sdk.ready(again);
    again.disconnect();
    sdk.cluster.users().dropUser("carol");
  }

  private static void reader(Sdk sdk) throws Exception {
    String key = sdk.stored(1).key();
    with(sdk, user("dave", READER), bucket -> {
      Collection collection = bucket.defaultCollection();
      Expect.equal(collection.get(key).contentAs(Integer.class), 1, "it reads");
      Expect.error(() -> collection.get(sdk.key()), DocumentNotFoundException.class);
      Expect.error(() -> collection.upsert(key, 2, upsertOptions().timeout(BRIEF)),
          CouchbaseException.class);
      Expect.error(() -> collection.remove(key, removeOptions().timeout(BRIEF)),
          CouchbaseException.class);
      sdk.expectValue(key, 1);
      // It learns at once that it may.
      sdk.cluster.users().upsertUser(user("dave", READER, WRITER));
      collection.upsert(key, 3);
    });
    sdk.expectValue(key, 3);
  }

  private static void ofOneCollection(Sdk sdk) throws Exception {
    CollectionManager manager = sdk.bucket.collections();
    manager.createScope("private");
    manager.createCollection("private", "own");
    manager.createCollection("private", "foreign");
    Role[] roles = {new Role("data_reader", Sdk.BUCKET, "private", "own"),
        new Role("data_writer", Sdk.BUCKET, "private", "own")};
    with(sdk, user("erin", roles), bucket -> {
      Collection own = bucket.scope("private").collection("own");
      Collection foreign = bucket.scope("private").collection("foreign");
      own.upsert("k", 1);
      Expect.equal(own.get("k").contentAs(Integer.class), 1, "its own");
      Collections.expectGone(() -> foreign.get("k", getOptions().timeout(BRIEF)));
      Collections.expectGone(() -> foreign.upsert("k", 2, upsertOptions().timeout(BRIEF)));
    });
    manager.dropScope("private");
  }

  private static void removed(Sdk sdk) throws Exception {
    sdk.cluster.users().upsertUser(user("frank", READER));
    String key = sdk.stored(1).key();
    Cluster frank = Sdk.connect("frank", PASSWORD);
    Collection collection = Sdk.ready(frank).defaultCollection();
    Expect.equal(collection.get(key).contentAs(Integer.class), 1, "it reads");
    sdk.cluster.users().dropUser("frank");
    Expect.within(LIMIT, () -> !Expect.succeeds(
        () -> collection.get(key, getOptions().timeout(BRIEF))),
        "its open connections are of no use");
    frank.disconnect();
    Connecting.expectRefused("frank", PASSWORD);
  }
}
