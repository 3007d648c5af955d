"""Cases: documents of a running node."""

import json
import os
import subprocess

from cases import expect, expect_equal, wait_until
from typing_in import Typist

ALL_BYTES = bytes(range(256)) * 4
MISSING = "there is no document"


def bytes_come_back_as_they_were(nodes, threads):
    """Through standard input and output: text, JSON, nothing, and all bytes."""
    typed = Typist(nodes.of(threads))
    for key, value in (("bytes", ALL_BYTES), ("text", "gr\u00fc\u00dfe\n".encode()), ("empty", b""),
                       ("json", b'{"a": [1, null]}'), ("large", os.urandom(1 << 20))):
        said = typed("set", key, stdin=value)
        expect_equal((said.out, said.err), ("", ""), "a change says nothing")
        expect_equal(typed("get", key).bytes, value, f"the document {key}")
    shown = json.loads(typed("get", "bytes", "-o", "json").out)
    expect("value_base64" in shown and "value" not in shown, f"bytes that are no text: {shown}")
    shown = json.loads(typed("get", "json", "-o", "json").out)
    expect_equal(shown["value"], '{"a": [1, null]}', "a body that is text")
    expect_equal(shown["flags"], 0x02000000, "flags of JSON")
    expect(shown["cas"].isdigit(), f"a version is a text: {shown}")


def versions_and_conditions_are_kept(nodes, threads):
    """--cas, --add and --replace, and what a durable write answers."""
    typed = Typist(nodes.of(threads))
    first = json.loads(typed("set", "versioned", "1", "-o", "json").out)["cas"]
    second = json.loads(typed("set", "versioned", "2", "--cas", first, "-o", "json").out)["cas"]
    said = typed("set", "versioned", "3", "--cas", first, status=1)
    expect("has another version" in said.err and said.out == "", said.err)
    typed("delete", "versioned", "--cas", first, status=1)
    expect_equal(typed("get", "versioned").out, "2", "what was not changed")
    typed("set", "versioned", "3", "--add", status=1)
    typed("set", "versioned", "3", "--replace")
    expect(MISSING in typed("set", "never", "3", "--replace", status=1).err, "nothing to replace")
    expect(second != first, "each write has a version of its own")
    for level in ("majority", "majority_and_persist_to_active", "persist_to_majority"):
        typed("set", "durable", level, "--durability", level)
        expect_equal(typed("get", "durable").out, level, "a durable write")


def expiries_are_set_and_changed(nodes, threads):
    """A document goes by itself, unless it is touched before."""
    typed = Typist(nodes.of(threads))
    typed("set", "short", "x", "--expiry", "1")
    typed("set", "touched", "x", "--expiry", "1")
    typed("touch", "touched", "1000")
    typed("touch", "never", "5", status=1)
    wait_until(lambda: is_gone(typed, "short"), 20, "it expires")
    expect_equal(typed("get", "touched").out, "x", "what was touched stays")


def is_gone(typed, key):
    """Whether there is no such document."""
    return MISSING in typed("get", key, status=None).err


def counters_count_and_documents_are_deleted(nodes, threads):
    """Exit codes tell whether all that was meant was there."""
    typed = Typist(nodes.of(threads))
    expect(MISSING in typed("incr", "counted", status=1).err, "no counter yet")
    expect_equal(typed("incr", "counted", "--initial", "5").out, "5\n", "a counter begins")
    expect_equal(typed("incr", "counted", "10").out, "15\n", "up")
    expect_equal(typed("incr", "counted", "-20").out, "0\n", "down to nothing")
    shown = json.loads(typed("incr", "counted", "-o", "json").out)
    expect_equal((shown["key"], shown["value"]), ("counted", 1), "for programs")
    typed("set", "word", "hello")
    expect("is no counter" in typed("incr", "word", status=1).err, "a word")
    said = typed("delete", "word", "gone", "counted", status=1)
    expect(said.err.count(MISSING) == 1 and "gone" in said.err, said.err)
    typed("get", "counted", status=1)


def collections_have_documents_of_their_own(nodes, threads):
    """A scope and a collection are made, written, read and dropped."""
    typed = Typist(nodes.of(threads))
    typed("collection", "create-scope", "shop")
    typed("collection", "create", "shop.orders", "--max-ttl", "0")
    typed("set", "-c", "shop.orders", "order", "1")
    expect_equal(typed("get", "order", "--collection", "shop.orders").out, "1", "in it")
    typed("get", "order", status=1)
    said = typed("get", "order", "-c", "shop.none", status=1)
    expect("settee collection list" in said.err, said.err)
    listed = json.loads(typed("collection", "list", "-o", "json").out)
    expect("shop" in [scope["name"] for scope in listed["scopes"]], str(listed))
    typed("collection", "drop-scope", "shop", "--confirm")


def scans_list_keys_and_documents(nodes, threads):
    """A prefix, a limit, bodies, any key, and a reader that goes away."""
    node = nodes.of(threads)
    typed = Typist(node)
    keys = [f"scanned::{number}" for number in range(40)] + ["scanned::\u00fc \t'\""]
    lines = "".join(f"set '{key}' '{number}'\n" for number, key in enumerate(keys[:40]))
    typed("shell", stdin=lines.encode())
    typed("set", keys[40], stdin=b"\xff\n")

    def found():
        return [json.loads(line) for line in
                typed("scan", "scanned::", "-o", "json", "--with-values").out.splitlines()]
    wait_until(lambda: len(found()) == 41, 20, "all are persisted and listed")
    by_key = {document["key"]: document for document in found()}
    expect_equal(sorted(by_key), sorted(keys), "keys")
    expect_equal(by_key["scanned::7"]["value"], "7", "a body")
    expect("value_base64" in by_key[keys[40]], "a body that is no text")
    listed = typed("scan", "scanned::", "--with-values").out
    expect_equal(listed.count("\n"), 41, "a line a document, whatever its bytes")
    expect_equal(typed("scan", "scanned::", "--limit", "3").out.count("\n"), 3, "a limit")
    expect_equal(typed("scan", "nothing::").out, "", "nothing is found, and that is no error")
    pipe = subprocess.run(
        f"'{os.environ['SETTEE_BINARY']}' scan; echo $? >&2", shell=True, check=False,
        stdout=open_and_close(), stderr=subprocess.PIPE,
        env={**os.environ, **typed.environment})
    expect_equal(pipe.stderr.decode(), "0\n", "a reader that goes away is no error")


def open_and_close():
    """A pipe that nobody reads any more."""
    reader, writer = os.pipe()
    os.close(reader)
    return writer


CASES = (bytes_come_back_as_they_were, versions_and_conditions_are_kept,
         expiries_are_set_and_changed, counters_count_and_documents_are_deleted,
         collections_have_documents_of_their_own, scans_list_keys_and_documents)
