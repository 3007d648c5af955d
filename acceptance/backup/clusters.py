"""Backups of a bucket whose vBuckets are active on several nodes."""

import base64
import glob
import json
import os
import struct
import urllib.request
from types import SimpleNamespace

import mcbp
import tool
from cluster_run import BUCKET, PASSWORD, USER, Cluster
from node import HOST, Node

NODES = 3
VBUCKETS = 16
# Documents of each vBucket.
COUNT = 5
SCOPE = "shop"
# That the scope was made is in the history, and in the file, of each vBucket.


def declare(cases):
    """With one front-end thread a node and with four."""
    for threads, suffix in ((1, ""), (4, "-with-four-threads")):
        name = f"a-backup-through-one-node-has-what-is-on-all{suffix}"
        cases.add(name, lambda name=name, threads=threads: back_up_cluster(name, threads))


def back_up_cluster(name, threads):
    """Through each node, without one that does not answer, and with one node less."""
    flags = [f"--node-argument=--threads={threads}", "--node-argument=--journal-size=64MiB"]
    with Cluster(name, nodes=NODES, replicas=1, vbuckets=VBUCKETS, flags=flags) as cluster:
        ask(cluster, 0, "POST", f"/pools/default/buckets/{BUCKET}/scopes", f"name={SCOPE}")
        values = write(cluster, "first")
        for node in range(NODES):
            check_catalogue(cluster, node)
            restore_and_check(cluster, f"{name}-{node}", node, NODES, values)
        with_tls(cluster, f"{name}-tls", values)
        cluster.tell("--pause", 2)
        fail(cluster, f"{name}-paused", 0)
        cluster.tell("--resume", 2)
        values.update(write(cluster, "second"))
        restore_and_check(cluster, f"{name}-resumed", 1, NODES, values)
        cluster.wait_until_replicated()
        cluster.tell("--kill", 2)
        fail(cluster, f"{name}-killed", 0)
        cluster.tell("--failover", 2)
        values.update(write(cluster, "third"))
        restore_and_check(cluster, f"{name}-without", 1, NODES - 1, values)
        lines = cluster.unexpected_log_lines()
        assert not lines, lines
    restore_cluster(f"{name}-again", tool.work(f"{name}-without-target"), flags, values)


def place(cluster, node):
    """A node of the cluster as the tool's helpers know nodes."""
    return SimpleNamespace(port=cluster.port(node), user=USER, password=PASSWORD)


def ask(cluster, node, method, path, form=None):
    """A request to a node's REST port, which must succeed; the answer stays open."""
    login = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
    request = urllib.request.Request(
        f"http://{HOST}:{cluster.management_port(node)}{path}", method=method,
        data=form.encode() if form else None, headers={"Authorization": f"Basic {login}"})
    return urllib.request.urlopen(request, timeout=30)


def names_of(vbucket, prefix):
    """Names of documents of a vBucket."""
    names, number = [], 0
    while len(names) < COUNT:
        name = f"{prefix}-{number}".encode()
        if mcbp.vbucket_of(name, VBUCKETS) == vbucket:
            names.append(name)
        number += 1
    return names


def write(cluster, prefix):
    """Documents of all vBuckets, each written where it is active; what was acknowledged."""
    values = {}
    active = [chain[0] for chain in cluster.chains()]
    for port in sorted(set(active)):
        with mcbp.Connection(HOST, port) as connection:
            connection.open_bucket(USER, PASSWORD, BUCKET)
            for vbucket in (vbucket for vbucket in range(VBUCKETS) if active[vbucket] == port):
                for name in names_of(vbucket, prefix):
                    values[name] = name + b" of " + str(port).encode()
                    connection.call_successfully(
                        mcbp.SET, key=name, extras=bytes(8), value=values[name], vbucket=vbucket)
    assert len(values) == COUNT * VBUCKETS
    return values


def check_catalogue(cluster, node):
    """What a node gives alone says what it is without."""
    with ask(cluster, node, "GET", f"/pools/default/buckets/{BUCKET}/backup") as answer:
        catalogue = json.loads(answer.readline())
    elsewhere = [vbucket for vbucket, chain in enumerate(cluster.chains())
                 if chain[0] != cluster.port(node)]
    assert elsewhere and catalogue["elsewhere"] == elsewhere, catalogue
    here = {entry["vbid"] for entry in catalogue["vbuckets"]} | set(catalogue["empty"])
    assert here == set(range(VBUCKETS)) - set(elsewhere), catalogue


def restore_and_check(cluster, name, node, nodes, values, *flags):
    """A backup through one node, and a node alone that has all of it."""
    target, restored = tool.work(f"{name}-target"), f"{name}-restored"
    made = tool.succeed(tool.backup_arguments(place(cluster, node), target, *flags))
    assert (made["nodes"], made["documents"]) == (nodes, len(values)), made
    told = tool.succeed(["backup", "--target", target, "--info", "--json"])
    assert told["state"] == "whole", told
    tool.succeed(["restore", "--target", target, "--data-dir", tool.work(f"{restored}-data"),
                  "--json"])
    with Node(restored) as alone:
        with mcbp.open_bucket(alone) as connection:
            for key, value in values.items():
                found = connection.call_successfully(
                    mcbp.GET, key=key, vbucket=mcbp.vbucket_of(key, VBUCKETS)).value
                assert found == value, f"{key} is {found}"
            # It is active, and goes on from there.
            answer = connection.call_successfully(
                mcbp.SET, key=key, extras=bytes(8), vbucket=mcbp.vbucket_of(key, VBUCKETS))
            _, seqno = answer.mutation_token()
            connection.call_successfully(
                mcbp.SEQNO_PERSISTENCE, extras=struct.pack(">Q", seqno),
                vbucket=mcbp.vbucket_of(key, VBUCKETS))
        scopes = f"http://{HOST}:{alone.management_port}/pools/default/buckets/{BUCKET}/scopes"
        login = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        request = urllib.request.Request(scopes, headers={"Authorization": f"Basic {login}"})
        with urllib.request.urlopen(request, timeout=30) as answer:
            assert SCOPE in {scope["name"] for scope in json.load(answer)["scopes"]}
        assert not alone.unexpected_log_lines(), alone.unexpected_log_lines()


def restore_cluster(name, target, flags, values):
    """The same backup in the directory of each node of a new cluster is the bucket there."""
    again = Cluster(name, nodes=NODES, replicas=1, vbuckets=VBUCKETS, flags=flags)
    for node in range(NODES):
        tool.succeed(["restore", "--target", target, "--json",
                      "--data-dir", os.path.join(again.directory, f"n_{node}")])
    with again:
        check_documents(again, values)
        again.wait_until_replicated()
        again.tell("--kill", 1)
        again.tell("--failover", 1)
        check_documents(again, values)


def check_documents(cluster, values):
    """Fails unless all documents are where they are active."""
    active = [chain[0] for chain in cluster.chains()]
    for port in sorted(set(active)):
        with mcbp.Connection(HOST, port) as connection:
            connection.open_bucket(USER, PASSWORD, BUCKET)
            for key, value in values.items():
                vbucket = mcbp.vbucket_of(key, VBUCKETS)
                if active[vbucket] == port:
                    found = connection.call_successfully(mcbp.GET, key=key, vbucket=vbucket).value
                    assert found == value, f"{key} is {found}"


def with_tls(cluster, name, values):
    """The other nodes are reached behind TLS as the first one is."""
    port = cluster.port(0) + 1
    flags = ("--spec", f"couchbases://{HOST}:{port}",
             "--ca", os.path.join(cluster.directory, "certificates", "ca.pem"))
    target = tool.work(f"{name}-target")
    made = tool.succeed(["backup", "--target", target, "--username", USER, "--password", PASSWORD,
                         "--json", *flags])
    assert (made["nodes"], made["documents"]) == (NODES, len(values)), made


def fail(cluster, name, node):
    """No backup without a node that has vBuckets active, and nothing of one."""
    target = tool.work(f"{name}-target")
    arguments = tool.backup_arguments(place(cluster, node), target, "--timeout", "3")
    tool.fail(arguments, f":{cluster.management_port(2)}", "nothing is stored")
    assert not glob.glob(os.path.join(target, "*", "*")), "something was stored"
