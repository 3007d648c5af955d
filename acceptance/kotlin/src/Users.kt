package acceptance

import com.couchbase.client.core.error.CouchbaseException
import com.couchbase.client.core.error.DocumentNotFoundException
import com.couchbase.client.core.error.GroupNotFoundException
import com.couchbase.client.core.error.UserNotFoundException
import com.couchbase.client.kotlin.Bucket
import com.couchbase.client.kotlin.manager.user.Group
import com.couchbase.client.kotlin.manager.user.Role
import com.couchbase.client.kotlin.manager.user.User
import com.couchbase.client.kotlin.manager.user.UserManager
import kotlin.time.Duration.Companion.seconds

private const val USERS_PASSWORD = "a-password"
private val PATIENT = timeout(2.seconds)

// With the wildcards that are told of such a role: without them the SDK calls it equal, and yet
// does not find it in a set.
private val READER = Role("data_reader", BUCKET, "*", "*")
private val WRITER = Role("data_writer", BUCKET, "*", "*")

/** Cases: users, groups, and what they may do. */
internal fun Cases.users() {
    add("users-come-and-go") { usersComeAndGo(cluster.users) }
    add("groups-come-and-go") { groupsComeAndGo(cluster.users) }
    add("roles-are-listed") {
        val names = cluster.users.getRoles().map { it.role.name }
        val known = listOf("admin", "bucket_admin", "data_reader", "data_writer")
        expect(names.containsAll(known), "roles: $names")
    }
    add("own-password") { ownPassword() }
    add("reader-does-not-write") { readerDoesNotWrite() }
    add("user-of-one-collection") { userOfOneCollection() }
    add("removed-user") { removedUser() }
}

/** A user with these roles. */
private fun user(name: String, vararg roles: Role) = User(
    name, displayName = name.uppercase(), roles = roles.toSet(), password = USERS_PASSWORD,
)

/** Runs a body with the bucket as a user has it who is there. */
private suspend fun asUser(name: String, password: String, body: suspend (Bucket) -> Unit) {
    val own = Sdk.connect(name, password)
    try {
        body(own.bucket(BUCKET).waitUntilReady(READY))
    } finally {
        own.disconnect()
    }
}

private suspend fun usersComeAndGo(manager: UserManager) {
    expectError<UserNotFoundException> { manager.getUser("alice") }
    manager.upsertUser(user("alice", READER))
    val found = manager.getUser("alice").user
    expectEqual(found.username, "alice", "name")
    expectEqual(found.displayName, "ALICE", "displayed name")
    expectEqual(found.roles, setOf(READER), "roles")
    expect(manager.getAllUsers().any { it.user.username == "alice" }, "it is listed")
    manager.upsertUser(user("alice", READER, WRITER))
    expectEqual(manager.getUser("alice").user.roles, setOf(READER, WRITER), "roles")
    manager.dropUser("alice")
    expectError<UserNotFoundException> { manager.getUser("alice") }
    expectError<UserNotFoundException> { manager.dropUser("alice") }
}

private suspend fun groupsComeAndGo(manager: UserManager) {
    expectError<GroupNotFoundException> { manager.getGroup("readers") }
    manager.upsertGroup(Group("readers", description = "They read", roles = setOf(READER)))
    val found = manager.getGroup("readers")
    expectEqual(found.description, "They read", "description")
    expectEqual(found.roles, setOf(READER), "roles")
    expectEqual(manager.getAllGroups().map { it.name }, listOf("readers"), "all groups")
    manager.upsertUser(User("bob", groups = setOf("readers"), password = USERS_PASSWORD))
    expectEqual(manager.getUser("bob").effectiveRoles, setOf(READER), "effective roles")
    manager.dropGroup("readers")
    expectError<GroupNotFoundException> { manager.dropGroup("readers") }
    manager.dropUser("bob")
}

private suspend fun Sdk.ownPassword() {
    cluster.users.upsertUser(user("carol", Role("admin")))
    asUser("carol", USERS_PASSWORD) { it.cluster.users.changePassword("another-one") }
    expectRefused("carol", USERS_PASSWORD)
    asUser("carol", "another-one") { it.waitUntilReady(READY) }
    cluster.users.dropUser("carol")
}

private suspend fun Sdk.readerDoesNotWrite() {
    val key = stored(1).key
    cluster.users.upsertUser(user("dave", READER))
    asUser("dave", USERS_PASSWORD) {
        val documents = it.defaultCollection()
        expectEqual(documents.get(key).contentAs<Int>(), 1, "it reads")
        expectError<DocumentNotFoundException> { documents.get(key()) }
        expectError<CouchbaseException> { documents.upsert(key, 2, PATIENT) }
        expectError<CouchbaseException> { documents.remove(key, PATIENT) }
        expectValue(key, 1)
        // It learns at once that it may.
        cluster.users.upsertUser(user("dave", READER, WRITER))
        documents.upsert(key, 3)
    }
    expectValue(key, 3)
    cluster.users.dropUser("dave")
}

private suspend fun Sdk.userOfOneCollection() {
    val manager = bucket.collections
    manager.createScope("private")
    manager.createCollection("private", "own")
    manager.createCollection("private", "foreign")
    val roles = listOf("data_reader", "data_writer").map { Role(it, BUCKET, "private", "own") }
    cluster.users.upsertUser(user("erin", *roles.toTypedArray()))
    asUser("erin", USERS_PASSWORD) {
        val own = it.scope("private").collection("own")
        val foreign = it.scope("private").collection("foreign")
        own.upsert("k", 1)
        expectEqual(own.get("k").contentAs<Int>(), 1, "its own")
        expectGone { foreign.get("k", PATIENT) }
        expectGone { foreign.upsert("k", 2, PATIENT) }
    }
    cluster.users.dropUser("erin")
    manager.dropScope("private")
}

private suspend fun Sdk.removedUser() {
    val key = stored(1).key
    cluster.users.upsertUser(user("frank", READER))
    asUser("frank", USERS_PASSWORD) {
        val documents = it.defaultCollection()
        expectEqual(documents.get(key).contentAs<Int>(), 1, "it reads")
        cluster.users.dropUser("frank")
        within(READY, "its open connections are of no use") {
            !succeeds { documents.get(key, PATIENT) }
        }
    }
    expectRefused("frank", USERS_PASSWORD)
}
