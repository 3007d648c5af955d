"""Cases: tools that speak TLS, at both ports."""

import json
import os
import ssl

from cases import expect, expect_equal, work_directory
from certificates import (STRANGER, ask_for_certificates, authority_of, client_certificate,
                          other_authority)
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


def a_certificate_says_who_asks(nodes, threads):
    """A client's certificate takes the place of a login, at both ports; a stranger's is none."""
    node = nodes.of(threads)
    ask_for_certificates(node)
    trust, data = ["--ca", authority_of(node)], ["--port", node.tls_port, "--tls"]
    own, stranger = (["--client-cert", certificate, "--client-key", key] for certificate, key in
                     (client_certificate(node, name) for name in (node.user, STRANGER)))
    for words in (["set", "certified", "1"], ["get", "certified"], ["scan"], ["stats"],
                  ["timings"], ["why-slow"], ["top", "--once", "--interval", "0.1"],
                  ["set-param", "mem_high_wat_percent", "0.85"], ["bucket", "list"],
                  ["user", "list"]):
        settee(*words, *data, *trust, *own)
        said = settee(*words, *data, *trust, *stranger, status=1)
        expect_equal(said.out, "", f"{words}: nobody learns anything")
    rest = ["--management", f"https://{HOST}:{node.management_tls_port}"]
    expect("default" in settee("bucket", "list", *rest, "--no-verify", *own).out, "over REST alone")
    said = settee("get", "certified", "--port", node.port, *own, status=1)
    expect("say --tls" in said.err, f"it is shown behind TLS alone: {said.err}")
    expect("--client-key" in settee("get", "a", *data, *own[:2], status=2).err, "its key belongs")
    said = settee("get", "a", *data, *trust, *own[:2], "--client-key", authority_of(node), status=1)
    expect("--client-key" in said.err, said.err)


def health_is_asked_behind_tls(nodes, threads):
    """With the node's authority, without one, and with a certificate where one is demanded."""
    node = nodes.of(threads)
    trust = ["--ca", authority_of(node)]
    place = ["--host", HOST, "--management-tls-port", node.management_tls_port, "--tls"]
    url = ["--management", f"https://{HOST}:{node.management_tls_port}"]
    for words in ([*place, *trust], [*url, *trust], [*url, "--tls", *trust]):
        expect("documents are loaded" in settee("health", *words).out, f"{words}")
    said = settee("health", *place, "--no-verify")
    expect_equal(said.err.count(LOUD), 1, f"it is said loudly, once: {said.err}")
    expect("--ca FILE" in settee("health", *place, status=1).err, "an authority is asked for")
    said = settee("health", *place, "--ca", other_authority(), status=1)
    expect("UnknownIssuer" in said.err and "--ca" in said.err, said.err)
    said = settee("health", "--management", f"http://{HOST}:{node.management_port}", "--tls",
                  status=1)
    expect("https://" in said.err, said.err)
    certificate, key = client_certificate(node, node.user)
    ask_for_certificates(node, "mandatory")
    try:
        said = settee("health", *place, *trust, status=1)
        expect("no node answers" in said.err, said.err)
        settee("health", *place, *trust, "--client-cert", certificate, "--client-key", key)
    finally:
        ask_for_certificates_as(node, certificate, key)


def ask_for_certificates_as(node, certificate, key):
    """Takes the demand back, by a request that fulfils it."""
    context = ssl.create_default_context(cafile=authority_of(node))
    context.load_cert_chain(certificate, key)
    ask_for_certificates(node, context=context)


CASES = (tools_speak_tls_at_both_ports, whom_to_believe_is_said_or_refused,
         a_certificate_says_who_asks, health_is_asked_behind_tls)
