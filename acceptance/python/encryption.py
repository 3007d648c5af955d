"""Cases: TLS, with nodes of their own."""

import hashlib
import json
import os
import signal
import socket
import ssl
import threading
import time
from datetime import timedelta

from cases import expect, expect_equal, expect_error, wait_until, work_directory
from certificates import (ask_for_certificates, authority_of, authority_of_cluster,
                          client_certificate, rest)
from cluster_run import Cluster as Nodes
from couchbase.auth import CertificateAuthenticator, PasswordAuthenticator
from couchbase.cluster import Cluster
from couchbase.exceptions import CouchbaseException
from couchbase.options import ClusterOptions, ClusterTimeoutOptions
from node import HOST, Node
from sdk import BUCKET

READY = timedelta(seconds=10)
BRIEF = timedelta(seconds=3)
RENEWALS = 5


def declare(cases):
    """In the order of running."""
    for function in (tls_exchanges_documents, tls_of_another_authority_is_refused,
                     tls_versions, tls_client_certificate, tls_certificate_of_nobody,
                     tls_rest, tls_renewed_under_load, tls_bad_file_is_refused, tls_two_nodes):
        cases.case(function)


def with_node(name, *flags):
    """A small node that speaks TLS."""
    return Node(name, "--vbuckets", "64", "--memory-quota", "128MiB", *flags)


def connect(address, authenticator, patience=READY):
    """A cluster object behind TLS."""
    timeouts = ClusterTimeoutOptions(
        kv_timeout=patience, connect_timeout=patience, bootstrap_timeout=patience)
    return Cluster.connect(
        f"couchbases://{address}", ClusterOptions(authenticator, timeout_options=timeouts))


def address_of(node):
    """Host and port of TLS."""
    return f"{HOST}:{node.tls_port}"


def by_password(node, trusted):
    """The node's administrator, who trusts this file."""
    return PasswordAuthenticator(node.user, node.password, cert_path=trusted)


def exchange(cluster, key="key", size=100):
    """Stores and reads."""
    collection = cluster.bucket(BUCKET).default_collection()
    value = {"text": "x" * size}
    collection.upsert(key, value)
    expect_equal(collection.get(key).content_as[dict], value, "what was stored")


def tls_exchanges_documents(_):
    for threads in (1, 4):
        with with_node(f"tls-{threads}", "--threads", str(threads)) as node:
            cluster = connect(address_of(node), by_password(node, authority_of(node)))
            try:
                for size in (1, 5000, 20_000, 1 << 20, 15 << 20):
                    exchange(cluster, f"key-{size}", size)
            finally:
                cluster.close()
            expect_equal(node.unexpected_log_lines(), [], "lines in the node's log")


def tls_of_another_authority_is_refused(_):
    with with_node("tls-one") as one, with_node("tls-other") as other:
        expect_error(CouchbaseException, connect, address_of(one),
                     by_password(one, authority_of(other)), BRIEF)


def tls_versions(_):
    with with_node("tls-versions") as node:
        for version, is_spoken in ((ssl.TLSVersion.TLSv1, False), (ssl.TLSVersion.TLSv1_1, False),
                                   (ssl.TLSVersion.TLSv1_2, True), (ssl.TLSVersion.TLSv1_3, True)):
            for port in (node.tls_port, node.management_tls_port):
                spoken = version_spoken(node, port, version)
                expect_equal(spoken is not None, is_spoken, f"{version.name} at {port}")


def version_spoken(node, port, version):
    """What a client that speaks this version alone has agreed on."""
    context = ssl.create_default_context(cafile=authority_of(node))
    context.set_ciphers("DEFAULT:@SECLEVEL=0")
    context.minimum_version = context.maximum_version = version
    try:
        with socket.create_connection((HOST, port), timeout=5) as plain, \
                context.wrap_socket(plain, server_hostname=HOST) as session:
            return session.version()
    except (ssl.SSLError, ConnectionError):
        return None


def tls_client_certificate(_):
    with with_node("tls-client") as node:
        certificate, key = client_certificate(node, node.user)
        for state in ("enable", "mandatory"):
            ask_for_certificates(node, state)
            shown = CertificateAuthenticator(
                cert_path=certificate, key_path=key, trust_store_path=authority_of(node))
            cluster = connect(address_of(node), shown)
            try:
                exchange(cluster)
            finally:
                cluster.close()
            context = ssl.create_default_context(cafile=authority_of(node))
            context.load_cert_chain(certificate, key)
            status, body = rest(node, "GET", "/whoami", context=context, has_login=False)
            expect_equal((status, json.loads(body)["id"]), (200, node.user), "who asks over REST")
        expect_error(CouchbaseException, connect, address_of(node),
                     by_password(node, authority_of(node)), BRIEF)
        node.stop()
        node.start()
        cluster = connect(address_of(node), shown)
        exchange(cluster)
        cluster.close()


def tls_certificate_of_nobody(_):
    with with_node("tls-nobody") as node:
        certificate, key = client_certificate(node, "nobody")
        ask_for_certificates(node)
        shown = CertificateAuthenticator(
            cert_path=certificate, key_path=key, trust_store_path=authority_of(node))
        expect_error(CouchbaseException, connect, address_of(node), shown, BRIEF)
        with open(node.log_path, encoding="utf-8") as log:
            expect("there is no user" in log.read(), "the log tells why")
        cluster = connect(address_of(node), by_password(node, authority_of(node)))
        exchange(cluster)
        cluster.close()


def tls_rest(_):
    with with_node("tls-rest") as node:
        status, body = rest(node, "GET", "/pools/default/certificate")
        with open(authority_of(node), "rb") as file:
            expect_equal((status, body), (200, file.read()), "the certificate to trust")
        _, body = rest(node, "GET", "/pools/default/certificates")
        described = json.loads(body)[0]
        expect_equal(described["type"], "generated", "kind of certificate")
        context = ssl.create_default_context(cafile=authority_of(node))
        expect_equal(described["sha256"], fingerprint(node.tls_port, context), "its fingerprint")
        _, body = rest(node, "GET", "/pools/default/trustedCAs")
        expect_equal(len(json.loads(body)), 1, "authorities of clients")
        _, body = rest(node, "GET", "/pools/default/nodeServices")
        services = json.loads(body)["nodesExt"][0]["services"]
        expect_equal((services["kvSSL"], services["mgmtSSL"]),
                     (node.tls_port, node.management_tls_port), "ports in the map")
        _, body = rest(node, "GET", "/pools/nodes")
        ports = json.loads(body)["nodes"][0]["ports"]
        expect_equal(ports["httpsMgmt"], node.management_tls_port, "port of the list of nodes")
        _, body = rest(node, "GET", "/settings/clientCertAuth")
        expect_equal(json.loads(body), {"state": "disable", "prefixes": []}, "rules for clients")
        status, _ = rest(node, "GET", "/pools", has_login=False)
        expect_equal(status, 401, "status without a login")


def fingerprint(port, context):
    """SHA-256 of the certificate that is shown at a port, as people write it."""
    with socket.create_connection((HOST, port), timeout=5) as plain, \
            context.wrap_socket(plain, server_hostname=HOST) as session:
        digest = hashlib.sha256(session.getpeercert(binary_form=True)).hexdigest().upper()
    return ":".join(digest[at:at + 2] for at in range(0, len(digest), 2))


def tls_renewed_under_load(_):
    with with_node("tls-renewed", "--threads", "4") as node:
        context = ssl.create_default_context(cafile=authority_of(node))
        cluster = connect(address_of(node), by_password(node, authority_of(node)))
        collection = cluster.bucket(BUCKET).default_collection()
        over, failures, count = threading.Event(), [], [0]

        def work():
            while not over.is_set():
                try:
                    collection.upsert(f"key-{count[0] % 100}", {"n": count[0]})
                    count[0] += 1
                except CouchbaseException as error:
                    failures.append(str(error))

        worker = threading.Thread(target=work)
        worker.start()
        shown = [fingerprint(node.tls_port, context)]
        try:
            for number in range(RENEWALS):
                os.remove(authority_of(node, "node.pem"))
                if number % 2 == 0:
                    os.kill(node.process.pid, signal.SIGHUP)
                else:
                    status, _ = rest(node, "POST", "/node/controller/reloadCertificate", b"")
                    expect_equal(status, 200, "status of a renewal")
                wait_until(lambda: fingerprint(node.tls_port, context) != shown[-1], 5,
                           "another certificate is shown")
                shown.append(fingerprint(node.tls_port, context))
                time.sleep(0.2)
        finally:
            over.set()
            worker.join()
            cluster.close()
        expect_equal(failures, [], "failed operations")
        expect(count[0] > 100, f"only {count[0]} operations")
        expect_equal(len(set(shown)), RENEWALS + 1, "different certificates")


def tls_bad_file_is_refused(_):
    with with_node("tls-own") as maker:
        with open(authority_of(maker, "node.pem"), encoding="ascii") as file:
            pem = file.read()
        given = os.path.join(work_directory(), "given.pem")
        write(given, pem)
        flags = ("--tls-certificate", given, "--tls-key", given)
        with with_node("tls-given", *flags) as node:
            trusted = authority_of(maker)
            context = ssl.create_default_context(cafile=trusted)
            before = fingerprint(node.tls_port, context)
            write(given, "nonsense")
            reload = "/node/controller/reloadCertificate"
            status, body = rest(node, "POST", reload, b"", context=context)
            expect_equal(status, 400, "status of a bad file")
            expect(b"BEGIN CERTIFICATE" in body, f"the reason is told: {body}")
            expect_equal(fingerprint(node.tls_port, context), before, "what is shown")
            write(given, pem)
            status, _ = rest(node, "POST", reload, b"", context=context)
            expect_equal(status, 200, "status of a good file")


def write(path, text):
    """Replaces a file."""
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def tls_two_nodes(_):
    with Nodes("tls-two", nodes=2, replicas=1) as nodes:
        trusted = authority_of_cluster(nodes)
        authenticator = PasswordAuthenticator("Administrator", "password", cert_path=trusted)
        for number in range(2):
            cluster = connect(f"{HOST}:{nodes.base + 2 * number + 1}", authenticator)
            try:
                for key in range(40):
                    exchange(cluster, f"key-{key}")
            finally:
                cluster.close()
