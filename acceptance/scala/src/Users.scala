package acceptance

import scala.concurrent.duration._

import com.couchbase.client.core.error._
import com.couchbase.client.scala.manager.collection.CreateCollectionSettings
import com.couchbase.client.scala.manager.user._

/** Cases: users, groups, and what they may do. */
object Users {
  private val Password = "a-password"
  private val Brief = 2.seconds
  private val Reader = new Role("data_reader", Some(Sdk.Name))
  private val Writer = new Role("data_writer", Some(Sdk.Name))

  def declare(cases: Cases): Unit = {
    cases.add("users-come-and-go")(sdk => comeAndGo(sdk.cluster.users))
    cases.add("groups-come-and-go")(sdk => groups(sdk.cluster.users))
    cases.add("roles-are-listed") { sdk =>
      val names = sdk.cluster.users.availableRoles().get.map(_.role.name).toSet
      val known = Set("admin", "bucket_admin", "data_reader", "data_writer")
      Expect.that(known.subsetOf(names), s"roles: $names")
    }
    cases.add("own-password")(ownPassword)
    cases.add("reader-does-not-write")(reader)
    cases.add("user-of-one-collection")(ofOneCollection)
    cases.add("removed-user")(removed)
  }

  /** A user with these roles. */
  private def user(name: String, roles: Role*): User =
    User(name).displayName(name.toUpperCase).password(Password).roles(roles: _*)

  /** Runs a body with a connection of a user who is there. */
  private def as(name: String, password: String = Password)(body: Connection => Unit): Unit = {
    val connection = Sdk.connect(Sdk.byPassword(name, password))
    try body(connection)
    finally connection.close()
  }

  private def rolesOf(manager: UserManager, name: String): Set[Role] =
    manager.getUser(name).get.user.roles.toSet

  private def comeAndGo(manager: UserManager): Unit = {
    Expect.error[UserNotFoundException](manager.getUser("alice"))
    manager.upsertUser(user("alice", Reader)).get
    val found = manager.getUser("alice").get.user
    Expect.equal(found.username, "alice", "name")
    Expect.equal(found.displayName, "ALICE", "displayed name")
    Expect.equal(found.roles, Seq(Reader), "roles")
    Expect.that(manager.getAllUsers().get.exists(_.user.username == "alice"), "it is listed")
    manager.upsertUser(user("alice", Reader, Writer)).get
    Expect.equal(rolesOf(manager, "alice"), Set(Reader, Writer), "roles")
    manager.dropUser("alice").get
    Expect.error[UserNotFoundException](manager.getUser("alice"))
    Expect.error[CouchbaseException](manager.dropUser("alice"))
  }

  private def groups(manager: UserManager): Unit = {
    Expect.error[GroupNotFoundException](manager.getGroup("readers"))
    manager.upsertGroup(Group("readers").description("They read").roles(Reader)).get
    val found = manager.getGroup("readers").get
    Expect.equal(found.description, "They read", "description")
    Expect.equal(found.roles, Seq(Reader), "roles")
    Expect.equal(manager.getAllGroups().get.map(_.name), Seq("readers"), "all groups")
    manager.upsertUser(user("bob").groups("readers")).get
    val effective = manager.getUser("bob").get.effectiveRoles.map(_.role)
    Expect.equal(effective, Seq(Reader), "effective roles")
    manager.dropGroup("readers").get
    Expect.error[CouchbaseException](manager.dropGroup("readers"))
    manager.dropUser("bob").get
  }

  private def ownPassword(sdk: Sdk): Unit = {
    sdk.cluster.users.upsertUser(user("carol", new Role("admin"))).get
    as("carol") { carol =>
      carol.ready
      carol.cluster.users.changePassword("another-one").get
    }
    Connecting.expectRefused("carol", Password)
    as("carol", "another-one")(_.ready)
    sdk.cluster.users.dropUser("carol").get
  }

  private def reader(sdk: Sdk): Unit = {
    val key = sdk.stored(1).key
    sdk.cluster.users.upsertUser(user("dave", Reader)).get
    as("dave") { dave =>
      val documents = dave.ready.defaultCollection
      Expect.equal(Sdk.value(documents, key), ujson.Num(1), "it reads")
      Expect.error[DocumentNotFoundException](documents.get(sdk.key()))
      Expect.error[CouchbaseException](documents.upsert(key, 2, timeout = Brief))
      Expect.error[CouchbaseException](documents.remove(key, timeout = Brief))
      sdk.expectValue(key, 1)
      // It learns at once that it may.
      sdk.cluster.users.upsertUser(user("dave", Reader, Writer)).get
      documents.upsert(key, 3).get
    }
    sdk.expectValue(key, 3)
    sdk.cluster.users.dropUser("dave").get
  }

  private def ofOneCollection(sdk: Sdk): Unit = {
    val manager = sdk.bucket.collections
    manager.createScope("private").get
    for (name <- Seq("own", "foreign")) {
      manager.createCollection("private", name, CreateCollectionSettings()).get
    }
    val roles = Seq("data_reader", "data_writer").map { name =>
      new Role(name, Some(Sdk.Name), Some("private"), Some("own"))
    }
    sdk.cluster.users.upsertUser(user("erin", roles: _*)).get
    as("erin") { erin =>
      val scope = erin.ready.scope("private")
      scope.collection("own").upsert("k", 1).get
      Expect.equal(Sdk.value(scope.collection("own"), "k"), ujson.Num(1), "its own")
      Collections.expectGone(scope.collection("foreign").get("k", Brief))
      Collections.expectGone(scope.collection("foreign").upsert("k", 2, timeout = Brief))
    }
    sdk.cluster.users.dropUser("erin").get
    manager.dropScope("private").get
  }

  private def removed(sdk: Sdk): Unit = {
    val key = sdk.stored(1).key
    sdk.cluster.users.upsertUser(user("frank", Reader)).get
    as("frank") { frank =>
      val documents = frank.ready.defaultCollection
      Expect.equal(Sdk.value(documents, key), ujson.Num(1), "it reads")
      sdk.cluster.users.dropUser("frank").get
      Expect.within(Sdk.Ready, "its open connections are of no use") {
        documents.get(key, Brief).isFailure
      }
    }
    Connecting.expectRefused("frank", Password)
  }
}
