"""Cases: what took long, and for what it has waited."""

import json
import os
import subprocess
import time

from cases import expect, expect_equal, wait_until
from cluster_run import PASSWORD, USER, Cluster
from mcbp import Connection, open_bucket, vbucket_of
from node import HOST, Node
from typing_in import Typist

EVICT_KEY = 0x93
PAUSE_SECONDS = 0.5


def slow_of(typed, key):
    """The newest slow operation on a document."""
    lines = typed("why-slow", "-o", "json").out.splitlines()
    return next((one for one in map(json.loads, lines) if one["key"] == key), None)


def a_value_that_is_not_in_memory_is_waited_for_as_a_fetch(_nodes, threads):
    """Of a document in memory nothing is fetched."""
    with Node(f"fetching-{threads}", "--vbuckets", "4", "--threads", threads,
              "--apply-cycle-ms", "100") as node:
        typed = Typist(node)
        expect("nothing was slow" in typed("why-slow").out, "before anything is said to be slow")
        typed("set", "resident", "x" * 1000)
        typed("set", "evicted", "x" * 1000)
        with open_bucket(node) as connection:
            vbucket = vbucket_of(b"evicted", 4)

            def is_evicted():
                return connection.call(EVICT_KEY, key=b"\0evicted", vbucket=vbucket).status == 0 \
                    or connection.call(EVICT_KEY, key=b"evicted", vbucket=vbucket).status == 0
            wait_until(is_evicted, 20, "its value leaves memory once it is persisted")
        typed("why-slow", "--set", "GET=0")
        typed("get", "resident")
        typed("get", "evicted")
        fetched, resident = slow_of(typed, "evicted"), slow_of(typed, "resident")
        expect(0 < fetched["fetch_us"] <= fetched["took_us"], f"a fetch: {fetched}")
        expect_equal(resident["fetch_us"], 0, f"no fetch: {resident}")
        table = typed("why-slow", "--limit", "10").out
        expect("WHERE" in table.splitlines()[0] and "fetch" in table, table)
        said = typed("why-slow", "--set", "NONSENSE=1", status=1)
        expect("NONSENSE" in said.err, said.err)
        node.stop()


def a_durable_write_waits_for_a_replica_that_hangs(_nodes, threads):
    """The whole wait is the span of replication, and the advice says where to look."""
    with Cluster(f"hanging-{threads}", flags=[f"--node-argument=--threads={threads}"]) as cluster:
        environment = {"SETTEE_HOST": HOST, "SETTEE_PORT": str(cluster.port(0)),
                       "SETTEE_USER": USER, "SETTEE_PASSWORD": PASSWORD}
        typed = Typist.of(environment)
        write = ["set", "durable", "1", "--durability", "majority"]
        wait_until(lambda: is_done(environment, write), 30, "the replica has caught up")
        typed("why-slow", "--set", "SET=100")
        owner = owner_of(cluster, b"durable")
        typed_there = Typist.of({**environment, "SETTEE_PORT": str(cluster.port(owner))})
        typed_there("why-slow", "--set", "SET=100")
        cluster.tell("--pause", 1 - owner)
        writing = subprocess.Popen([os.environ["SETTEE_BINARY"], *write, "--spec",
                                    f"couchbase://{HOST}:{cluster.port(owner)}"],
                                   env={**os.environ, **environment})
        wait_until(lambda: "another durable write" in typed_there("set", "durable", "2",
                   status=None).err, 20, "the write is under way")
        time.sleep(PAUSE_SECONDS)
        cluster.tell("--resume", 1 - owner)
        expect_equal(writing.wait(30), 0, "the write is done when the replica goes on")
        lines = typed_there("why-slow", "-o", "json").out.splitlines()
        slow = next(one for one in map(json.loads, lines) if one["command"] == "SET")
        expect(slow["replication_us"] > slow["took_us"] / 2, f"it waited for others: {slow}")
        said = typed_there("why-slow").out
        expect("replication" in said and "settee stats dcp" in said, said)


def owner_of(cluster, name):
    """The node whose active copy has the document."""
    with open_bucket_at(cluster, 0) as connection:
        config = json.loads(connection.call_successfully(0xb5).value)
    servers, chains = (config["vBucketServerMap"][part] for part in ("serverList", "vBucketMap"))
    server = servers[chains[vbucket_of(name, len(chains))][0]]
    return next(node for node in range(cluster.nodes) if server.endswith(f":{cluster.port(node)}"))


def open_bucket_at(cluster, node):
    """A connection to a node of the cluster."""
    connection = Connection(HOST, cluster.port(node))
    connection.open_bucket(USER, PASSWORD, "default")
    return connection


def is_done(environment, words):
    """Whether a command does what it is for."""
    done = subprocess.run([os.environ["SETTEE_BINARY"], *words], env={**os.environ, **environment},
                          capture_output=True, timeout=40, check=False)
    return done.returncode == 0


CASES = (a_value_that_is_not_in_memory_is_waited_for_as_a_fetch,
         a_durable_write_waits_for_a_replica_that_hangs)
