"""Cases: tools that speak TLS, at both ports."""

import json
import os

from cases import expect, expect_equal, work_directory
from certificates import authority_of, other_authority
from node import HOST
from typing_in import settee

LOUD = "WARNING: --no-verify"


def tools_speak_tls_at_both_ports(nodes, threads):
    """With the node's authority; every tool that asks a node."""
    node = nodes.of(threads)
    trust = ["--ca", authority_of(node)]
    login = ["--user", node.user, "--password", node.password]
    data = ["--port", node.tls_port, "--tls", *trust, *login]
    settee("set", "behind", "TLS", *data)
    spec = ["--spec", f"couchbases://{HOST}:{node.tls_port}", *trust, *login]
    expect_equal(settee("get", "behind", *spec).out, "TLS", "by a connection string")
    archive = os.path.join(work_directory(), f"encrypted-{threads}.tar.gz")
    for words in (["scan"], ["stats"], ["timings"], ["why-slow"], ["hot-keys", "--for", "1"],
                  ["top", "--once", "--interval", "0.1"], ["touch", "behind", "100"],
                  ["set-param", "mem_high_wat_percent", "0.85"], ["reset-vbucket"],
                  ["user", "list"], ["bucket", "list"], ["collection", "list"], ["set-log-level"],
                  ["collect", "--target", archive],
                  ["backup", "--target", os.path.join(work_directory(), f"tls-{threads}")]):
        said = settee(*words, *data)
        expect(LOUD not in said.err and "left out" not in said.err, f"{words}: {said.err}")
    rest = ["--management", f"https://{HOST}:{node.management_tls_port}", *trust, *login]
    names = [bucket["name"] for bucket in json.loads(settee("bucket", "list", "-o", "json",
                                                            *rest).out)]
    expect_equal(names, ["default"], "over REST alone")
    listed = settee("couchbase-cli", "bucket-list", "-c",
                    f"https://{HOST}:{node.management_tls_port}", "-u", node.user, "-p",
                    node.password, "--cacert", authority_of(node))
    expect("default" in listed.out, "with the words of the original")


def whom_to_believe_is_said_or_refused(nodes, threads):
    """No authority, another one, and nobody's; a password never goes out in plain by mistake."""
    node = nodes.of(threads)
    login = ["--user", node.user, "--password", node.password]
    data = ["--port", node.tls_port, "--tls", *login]
    rest = ["--management", f"https://{HOST}:{node.management_tls_port}", *login]
    for words in (["get", "a", *data], ["bucket", "list", *rest]):
        expect("--ca FILE" in settee(*words, status=1).err, "an authority is asked for")
        said = settee(*words, "--ca", other_authority(), status=1)
        expect("UnknownIssuer" in said.err and "--ca" in said.err, said.err)
    for words in (["stats", *data], ["bucket", "list", *rest]):
        said = settee(*words, "--no-verify")
        expect_equal(said.err.count(LOUD), 1, f"it is said loudly, once: {said.err}")
        expect(LOUD not in said.out, "and not among data")
    said = settee("bucket", "list", "--management", f"http://{HOST}:{node.management_port}",
                  "--tls", "--no-verify", *login, status=1)
    expect("say https://" in said.err, said.err)
    said = settee("get", "a", "--port", node.tls_port, *login, status=1)
    expect("--tls" in said.err, f"a port behind TLS is told apart: {said.err}")
    said = settee("get", "a", "--port", node.port, "--tls", "--no-verify", *login, status=1)
    expect("behind TLS" in said.err, f"and one without: {said.err}")


CASES = (tools_speak_tls_at_both_ports, whom_to_believe_is_said_or_refused)
