"""Cases: how a running node is changed, and what it tells of itself."""

import json
import os
import socket
import tarfile
import threading

from cases import expect, expect_equal, wait_until, work_directory
from node import HOST, Node
from typing_in import Typist

SECRETS = ("an-admins-secret", "bobs-secret-1")


def parameters_are_changed_until_the_node_stops(nodes, threads):
    """set-param, and what it says of a name or a value that is none."""
    typed = Typist(nodes.of(threads))
    typed("set-param", "mem_high_wat_percent", "0.81")
    config = json.loads(typed("stats", "config", "--json").out)
    expect_equal(float(config["ep_mem_high_wat_percent"]), 0.81, "what the node says")
    shown = json.loads(typed("set-param", "mem_high_wat_percent", "0.85", "-o", "json").out)
    expect_equal(shown, {"name": "mem_high_wat_percent", "value": "0.85"}, "for programs")
    said = typed("set-param", "nonsense", "1", status=1)
    expect("mem_high_wat_percent" in said.err, f"the names that there are: {said.err}")
    typed("set-param", "mem_high_wat_percent", "much", status=1)


def hot_keys_are_sampled(nodes, threads):
    """The one document that is asked for all the time comes first."""
    node = nodes.of(threads)
    typed = Typist(node)
    lines = "set hot 1\nset cold 1\n" + "get cold\n" + "get hot\n" * 4000

    def asks():
        typed("shell", stdin=lines.encode())
    asking = threading.Thread(target=asks)
    asking.start()
    said = typed("hot-keys", "--for", "2", "--limit", "3")
    asking.join()
    rows = [line.split() for line in said.out.splitlines()]
    expect_equal(rows[0], ["SHARE", "COUNTED", "KEY"], "columns")
    expect_equal(rows[1][2], "hot", f"the hottest: {said.out}")
    said = typed("hot-keys", "--for", "1", "-o", "json")
    expect(said.out == "" and "no request" in said.err, f"nobody asks: {said.out} {said.err}")


def lines_files_and_levels_of_the_log(_nodes, threads):
    """A log of JSON in a file that is rotated, its level by module, and audit events apart."""
    log = os.path.join(work_directory(), f"log-{threads}", "node.log")
    os.makedirs(os.path.dirname(log))
    with Node(f"logging-{threads}", "--vbuckets", "4", "--threads", threads, "--log-file", log,
              "--log-file-size", "64KiB", "--log-json") as node:
        typed = Typist(node)

        def lines():
            with open(log, encoding="utf-8") as file:
                return [json.loads(line) for line in file]
        expect(any("serving" in str(line) for line in lines()), "JSON, a line an event")
        expect(not [line for line in lines() if line["level"] == "DEBUG"], "no details")
        expect_equal(typed("set-log-level").out.splitlines()[0], "FILTER", "what holds now")
        typed("set-log-level", "trace")
        expect_equal(json.loads(typed("set-log-level", "-o", "json").out)["filter"], "trace",
                     "for programs")
        said = typed("set-log-level", "bucket=loud", status=1)
        expect("bucket=debug,info" in said.err, f"one that is a filter: {said.err}")

        def is_rotated():
            # Whatever loop the data port has, REST's says much of each connection at this level.
            for _ in range(100):
                socket.create_connection((HOST, node.management_port)).close()
            return os.path.exists(log + ".1")
        wait_until(is_rotated, 20, "the file is rotated by its size")
        typed("set-log-level", "server=debug,warn")
        typed("user", "set", "carl", "--new-password", "carls-secret", "--roles", "ro_admin")

        def events():
            with open(os.path.join(node.data_directory, "audit.log"), encoding="utf-8") as audit:
                return audit.read()
        wait_until(lambda: "users/local/carl" in events(), 20, "who changed what is noted")
        expect("carls-secret" not in events(), "no password is an event")
        expect(not any("carls-secret" in str(line) for line in lines()), "nor a line")
        node.stop()


def one_archive_has_everything_but_secrets(_nodes, threads):
    """Logs, statistics, configuration and timings; neither a password nor a key nor a document."""
    secret, bobs = SECRETS
    log = os.path.join(work_directory(), f"collected-{threads}.log")
    with Node(f"collected-{threads}", "--vbuckets", "4", "--threads", threads, "--log-file", log,
              password=secret) as node:
        typed = Typist(node)
        typed("user", "set", "bob", "--new-password", bobs, "--roles", "admin")
        typed("set", "a", "the-body-of-a-document")
        typed("get", "a")
        target = os.path.join(work_directory(), f"collected-{threads}.tar.gz")
        said = typed("collect", "--target", target, "--data-dir", node.data_directory, "--log",
                     log, "--redact")
        expect_equal(said.out, f"{target}\n", "where it is")
        names, texts = content(target)
        for part in ("buckets/default/timings.txt", "buckets/default/memory.txt",
                     "node/metrics.txt", "node/buckets.json", "logs/", "data/audit.log", "files.txt"):
            expect(any(part in name for name in names), f"{part} is in it: {names}")
        with open(os.path.join(node.data_directory, "certificates", "authority.pem"),
                  encoding="ascii") as file:
            pem = file.read()
        key = pem.partition("PRIVATE KEY-----\n")[2].splitlines()[0]
        expect(len(key) > 20, "the authority has a key")
        with open(os.path.join(node.data_directory, "users.json"), encoding="utf-8") as file:
            stored = set(strings(json.load(file)))
        hashes = [text for text in stored if len(text) > 24 and text.endswith("=")]
        expect(hashes, "there are stored keys")
        for what in (secret, bobs, key, "the-body-of-a-document", *hashes):
            where = [name for name, text in zip(names, texts) if what in text]
            expect_equal(where, [], f"{what} is in no file")
        where = [name for name, text in zip(names, texts) if "<ud>bob</ud>" in text]
        expect_equal(where, [], "names that logs mark are checksums")
        node.stop()
    # Of a node that does not run, files alone are collected.
    said = typed("collect", "--target", target, "--data-dir", node.data_directory, "--log", log)
    names, _ = content(target)
    expect("left out" in said.err and not any("metrics" in name for name in names), said.err)


def content(path):
    """Names and texts of an archive."""
    with tarfile.open(path) as archive:
        members = [member for member in archive.getmembers() if member.isfile()]
        texts = [archive.extractfile(member).read().decode(errors="replace") for member in members]
        return [member.name for member in members], texts


def strings(value):
    """All texts in JSON."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, dict)):
        for part in value.values() if isinstance(value, dict) else value:
            yield from strings(part)


CASES = (parameters_are_changed_until_the_node_stops, hot_keys_are_sampled,
         lines_files_and_levels_of_the_log, one_archive_has_everything_but_secrets)
