"""Cases: users, groups, and what they may do."""

from datetime import timedelta

from cases import expect, expect_equal, expect_error, wait_until
from couchbase.exceptions import (AmbiguousTimeoutException, AuthenticationException,
                                  CollectionNotFoundException, CouchbaseException,
                                  DocumentNotFoundException,
                                  GroupNotFoundException, UnAmbiguousTimeoutException,
                                  UserNotFoundException)
from couchbase.management.collections import CreateCollectionSettings
from couchbase.management.users import Group, Role, User

PASSWORD = "a-password"
BRIEF = timedelta(seconds=2)
# The SDK waits for a collection that it may not know to come.
HIDDEN = (CollectionNotFoundException, UnAmbiguousTimeoutException, AmbiguousTimeoutException)


def declare(cases):
    """In the order of running."""
    for function in (users_come_and_go, groups_come_and_go, roles_are_listed, own_password,
                     reader_does_not_write, user_of_one_collection, removed_user):
        cases.case(function)


def put(sdk, name, *roles, groups=(), password=PASSWORD):
    """A user with these roles."""
    sdk.cluster.users().upsert_user(
        User(username=name, display_name=name.title(), password=password, roles=set(roles),
             groups=set(groups)))


def reader(bucket="default", **part):
    """The role that reads documents."""
    return Role(name="data_reader", bucket=bucket, **part)


def names(users):
    """The names of users as the manager lists them."""
    return {found.user.username for found in users}


def users_come_and_go(sdk):
    manager = sdk.cluster.users()
    expect_error(UserNotFoundException, manager.get_user, "alice")
    put(sdk, "alice", reader())
    found = manager.get_user("alice")
    expect_equal((found.user.username, found.user.display_name), ("alice", "Alice"), "the user")
    expect_equal([role.name for role in found.user.roles], ["data_reader"], "its roles")
    expect(names(manager.get_all_users()) >= {"alice"}, "it is listed")
    put(sdk, "alice", reader(), Role(name="data_writer", bucket="default"))
    expect_equal(len(manager.get_user("alice").user.roles), 2, "its roles")
    manager.drop_user("alice")
    expect_error(UserNotFoundException, manager.get_user, "alice")
    # The SDK knows the words of a look-up alone.
    expect_error(CouchbaseException, manager.drop_user, "alice")


def groups_come_and_go(sdk):
    manager = sdk.cluster.users()
    expect_error(GroupNotFoundException, manager.get_group, "readers")
    manager.upsert_group(Group(name="readers", description="They read", roles={reader()}))
    found = manager.get_group("readers")
    expect_equal((found.name, found.description), ("readers", "They read"), "the group")
    expect_equal([group.name for group in manager.get_all_groups()], ["readers"], "all groups")
    put(sdk, "bob", groups=["readers"])
    inherited = manager.get_user("bob").effective_roles
    expect_equal([found.role.name for found in inherited], ["data_reader"], "effective roles")
    manager.drop_group("readers")
    expect_error(CouchbaseException, manager.drop_group, "readers")
    manager.drop_user("bob")


def roles_are_listed(sdk):
    roles = {found.role.name for found in sdk.cluster.users().get_roles()}
    expect(roles >= {"admin", "bucket_admin", "data_reader", "data_writer"}, f"{roles}")


def own_password(sdk):
    put(sdk, "carol", Role(name="admin"))
    carol = sdk.connect("carol", PASSWORD)
    carol.users().change_password("another-one")
    carol.close()
    expect_error(AuthenticationException, sdk.connect, "carol", PASSWORD)
    sdk.connect("carol", "another-one").close()
    sdk.cluster.users().drop_user("carol")


def reader_does_not_write(sdk):
    put(sdk, "dave", reader())
    key, _ = sdk.stored({"n": 1})
    dave = sdk.connect("dave", PASSWORD)
    try:
        collection = dave.bucket("default").default_collection()
        expect_equal(collection.get(key).content_as[dict], {"n": 1}, "it reads")
        expect_error(DocumentNotFoundException, collection.get, sdk.key())
        expect_error(CouchbaseException, collection.upsert, key, {"n": 2}, timeout=BRIEF)
        expect_error(CouchbaseException, collection.remove, key, timeout=BRIEF)
        expect_equal(sdk.get_json(key), {"n": 1}, "the document")
        # It learns at once that it may.
        put(sdk, "dave", reader(), Role(name="data_writer", bucket="default"))
        collection.upsert(key, {"n": 3})
    finally:
        dave.close()
    expect_equal(sdk.get_json(key), {"n": 3}, "the document")
    sdk.cluster.users().drop_user("dave")


def user_of_one_collection(sdk):
    manager = sdk.bucket.collections()
    manager.create_scope("private")
    for name in ("own", "foreign"):
        manager.create_collection("private", name, CreateCollectionSettings())
    place = {"scope": "private", "collection": "own"}
    put(sdk, "erin", reader(**place), Role(name="data_writer", bucket="default", **place))
    erin = sdk.connect("erin", PASSWORD)
    try:
        scope = erin.bucket("default").scope("private")
        key = sdk.key()
        scope.collection("own").upsert(key, {"n": 1})
        expect_equal(scope.collection("own").get(key).content_as[dict], {"n": 1}, "its own")
        foreign = scope.collection("foreign")
        expect_error(HIDDEN, foreign.get, key, timeout=BRIEF)
        expect_error(HIDDEN, foreign.upsert, key, {}, timeout=BRIEF)
    finally:
        erin.close()
    sdk.cluster.users().drop_user("erin")
    manager.drop_scope("private")


def removed_user(sdk):
    put(sdk, "frank", reader())
    key, _ = sdk.stored({"n": 1})
    frank = sdk.connect("frank", PASSWORD)
    collection = frank.bucket("default").default_collection()
    expect_equal(collection.get(key).content_as[dict], {"n": 1}, "it reads")
    sdk.cluster.users().drop_user("frank")

    def is_refused():
        try:
            collection.get(key, timeout=BRIEF)
            return False
        except CouchbaseException:
            return True

    wait_until(is_refused, 10, "its open connections are of no use")
    frank.close()
    expect_error(AuthenticationException, sdk.connect, "frank", PASSWORD)
