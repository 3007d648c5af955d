"""Scopes and collections come back with their documents."""

import base64
import json
import struct
import urllib.parse
import urllib.request

import mcbp
import tool
from node import HOST, Node

BUCKET = "/pools/default/buckets/default"
SCOPES = f"{BUCKET}/scopes"
COUNT = 60
FEATURES = (mcbp.FEATURE_MUTATION_SEQNO, mcbp.FEATURE_COLLECTIONS)


def declare(cases):
    """Declares the cases."""

    @cases.case
    def a_backup_has_scopes_and_collections_and_what_is_in_them():
        back_up_collections("collections", "--conflict-resolution", "lww")

    @cases.case
    def a_backup_under_full_eviction_has_scopes_and_collections():
        back_up_collections("collections-full", "--eviction-policy", "full")


def rest(node, method, path, **form):
    """A request of the administrator, which must succeed; the JSON of its answer, if it has any."""
    login = base64.b64encode(f"{node.user}:{node.password}".encode()).decode()
    request = urllib.request.Request(
        f"http://{HOST}:{node.management_port}{path}", method=method,
        data=urllib.parse.urlencode(form).encode() if form else None,
        headers={"Authorization": f"Basic {login}"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        text = answer.read()
        return json.loads(text) if text else None


def ids_of(node):
    """The ids of all collections, by scope and name."""
    manifest = rest(node, "GET", SCOPES)
    return {(scope["name"], collection["name"]): int(collection["uid"], 16)
            for scope in manifest["scopes"] for collection in scope["collections"]}


def told_uid(node):
    """The manifest's uid as clients of the data port are told it."""
    with mcbp.open_bucket(node) as connection:
        return json.loads(connection.call_successfully(mcbp.GET_CLUSTER_CONFIG).value)[
            "collectionsManifestUid"]


def documents(collection):
    """Names and values of a collection: the names are the same in each."""
    return {f"key-{number}".encode(): f"{collection}-{number}".encode() for number in range(COUNT)}


def call(connection, opcode, collection, name, **parts):
    """A request about a document of a collection with a small id."""
    assert collection < 0x80, "one byte of LEB128"
    return connection.call_successfully(
        opcode, key=bytes([collection]) + name, vbucket=mcbp.vbucket_of(name, tool.VBUCKETS),
        **parts)


def store(node, collection, values):
    """Stores documents and returns when they are durable."""
    with mcbp.open_bucket(node, features=FEATURES) as connection:
        seqnos = {}
        for name, value in values.items():
            answer = call(connection, mcbp.SET, collection, name, extras=bytes(8), value=value)
            _, seqnos[mcbp.vbucket_of(name, tool.VBUCKETS)] = answer.mutation_token()
        for vbucket, seqno in seqnos.items():
            connection.call_successfully(
                mcbp.SEQNO_PERSISTENCE, extras=struct.pack(">Q", seqno), vbucket=vbucket)


def check(node, collection, values):
    """Fails unless all these documents are there."""
    with mcbp.open_bucket(node, features=FEATURES) as connection:
        for name, value in values.items():
            found = call(connection, mcbp.GET, collection, name).value
            assert found == value, f"{name} of {collection} is {found}, not {value}"


def back_up_collections(name, *flags):
    """Backs a bucket with scopes and collections up, and restores it into a fresh node."""
    target = tool.work(f"{name}-target")
    with Node(name, "--vbuckets", str(tool.VBUCKETS), *flags) as node:
        for scope in ("shop", "empty"):
            rest(node, "POST", SCOPES, name=scope)
        for collection in ("fruit", "bread", "dropped"):
            rest(node, "POST", f"{SCOPES}/shop/collections", name=collection, maxTTL=86400)
        for (_, collection), number in ids_of(node).items():
            store(node, number, documents(collection))
        rest(node, "DELETE", f"{SCOPES}/shop/collections/dropped")
        known, rule = rest(node, "GET", SCOPES), rest(node, "GET", BUCKET)["conflictResolutionType"]
        assert told_uid(node) == known["uid"], known
        tool.succeed(tool.backup_arguments(node, target))
    restored = f"{name}-restored"
    tool.succeed(["restore", "--target", target, "--data-dir", tool.work(f"{restored}-data"),
                  "--json"])
    with Node(restored, *flags) as node:
        for _ in range(2):
            assert rest(node, "GET", SCOPES) == known
            assert told_uid(node) == known["uid"], known
            assert rest(node, "GET", BUCKET)["conflictResolutionType"] == rule
            ids = ids_of(node)
            assert set(ids) == {("_default", "_default"), ("shop", "fruit"), ("shop", "bread")}
            for (_, collection), number in ids.items():
                check(node, number, documents(collection))
            node.restart()
        made = rest(node, "POST", f"{SCOPES}/shop/collections", name="new")
        assert int(made["uid"], 16) == int(known["uid"], 16) + 1, (made, known)
        store(node, ids_of(node)["shop", "new"], documents("new"))
        check(node, ids_of(node)["shop", "new"], documents("new"))
        assert not node.unexpected_log_lines(), node.unexpected_log_lines()
