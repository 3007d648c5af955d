#!/usr/bin/env python3
"""Writes the table of SDKs and operations in COMPAT.md from what the suites' last runs printed.

`cargo xtask acceptance <suite>` keeps the outcome of each case. An operation works with an SDK when
every case of it that the SDK's suites have passed. An SDK whose suites have not run keeps its
column.
"""

import os
import sys

sys.dont_write_bytecode = True

BEGIN, END = "<!-- SDKs and operations: begin -->", "<!-- SDKs and operations: end -->"
FOUR = "-with-four-threads"

# Suites by SDK, in the order of the columns.
SDKS = {
    "Python": ("python", "cluster"), "Go": ("go", "cluster-go", "gocb-suite"), "Node": ("node",),
    "Java": ("java",), "Java 2": ("java2",), "Kotlin": ("kotlin",), "Scala": ("scala",),
    "Rust": ("rust",), "libcouchbase": ("libcouchbase",),
}

# Cases by operation. A name that ends in `*` stands for all that begin so.
OPERATIONS = {
    "connect, ping, diagnostics": ("connect", "wait-until-ready", "ping", "diagnostics"),
    "refused logins and buckets": ("wrong-password-is-refused", "unknown-user-is-refused",
                                   "unknown-bucket-is-refused"),
    "get": ("upsert-and-get", "get-missing"),
    "exists": ("exists",),
    "insert": ("insert-new", "insert-existing", "insert-after-remove"),
    "upsert": ("upsert-overwrites",),
    "replace": ("replace-existing", "replace-missing", "replace-with-cas",
                "replace-with-stale-cas"),
    "remove": ("remove", "remove-missing", "remove-with-stale-cas"),
    "touch, get and touch": ("touch", "touch-missing", "get-and-touch"),
    "expiry, preserved expiry": ("expiry*", "preserve-expiry", "expired-can-be-inserted"),
    "get and lock, unlock": ("get-and-lock", "locked-*", "unlock*", "lock-ends",
                             "write-with-lock-cas-unlocks"),
    "append, prepend": ("append*", "prepend"),
    "increment, decrement": ("increment*", "decrement*", "counter-is-a-document"),
    "values to 20 MiB, JSON, text, bytes": ("json-*", "string-values", "binary-values",
                                            "empty-value", "value-*", "compressible-value",
                                            "objects-of-the-language"),
    "many operations at once": ("multi-*", "parallel-operations", "parallel-increments",
                                "reactive-operations", "thousands-in-flight"),
    "mutation tokens": ("mutation-tokens",),
    "durability levels": ("durable-writes-are-committed", "sdk-durable-writes-at-every-level",
                          "sdk-stopped-replica-makes-durable-writes-ambiguous"),
    "observed durability (persist to, replicate to)": (
        "persist-to-active", "sdk-observed-writes-reach-the-replica"),
    "lookup in": ("paths-are-looked-up", "paths-that-are-not-there", "attributes-of-the-server",
                  "TestInsertLookupIn*", "TestSubdocNil"),
    "mutate in": ("paths-are-changed*", "paths-change-*", "paths-need-json", "paths-with-*",
                  "paths-and-expiry", "arrays-*", "counters-in-documents", "parents-are-created",
                  "documents-are-created-by-paths", "parallel-changes-of-one-document",
                  "TestMutateIn*", "TestPreserveExpiryMutateIn"),
    "attributes and macros": ("attributes-are-beside-the-body", "macros-name-the-change",
                              "removed-documents-keep-system-attributes",
                              "TestMutateInBasicArrayXattrs", "TestMutateInLookupInMacro",
                              "TestMutateInLookupInXattrs"),
    "lists, maps, queues, sets": ("lists", "maps", "queues", "sets", "TestListCrud",
                                  "TestSetCrud", "TestQueueCrud", "TestMapCrud"),
    "scopes and collections": ("collections-come-and-go", "documents-in-collections",
                               "dropped-collection", "collection-expiry*", "unknown-collection",
                               "sdk-collections-on-two-nodes", "TestCollection*",
                               "TestCreateCollection*", "TestUpdateCollection*",
                               "TestDropNonExistent*", "TestDropScopes*", "TestGetAllScopes*"),
    "range, prefix and sampling scans": ("scans-*", "scan-*", "sdk-scans-see-both-nodes",
                                         "TestRangeScan*"),
    "reads of replicas": ("sdk-replicas-can-be-read", "TestInsertReplicateTo*",
                          "TestDurabilityGetFromAnyReplica"),
    "parts of replicas": ("sdk-parts-of-replicas-can-be-read",
                          "sdk-parts-of-documents-are-replicated", "TestUpsertReplicateToLookupIn*",
                          "TestLookupInAnyReplica*"),
    "transactions": ("transactions-*", "sdk-transactions-on-two-nodes", "TestTransactions*"),
    "restarts and failovers": ("restart-*", "sdk-failover-keeps-the-sdk-working"),
    "buckets made, changed, flushed, dropped": (
        "buckets-*", "a-bucket-is-flushed-where-that-is-enabled",
        "a-dropped-bucket-is-gone-for-its-clients"),
    "users and groups": ("users-come-and-go", "groups-come-and-go", "roles-are-listed",
                         "own-password", "reader-does-not-write", "user-of-one-collection",
                         "removed-user"),
    "TLS, client certificates": ("tls-*",),
}


def outcomes(directory, suites):
    """Whether each case passed, by its name without the number of threads; `None` if none ran."""
    passed = {}
    for suite in suites:
        path = os.path.join(directory, f"{suite}.txt")
        if not os.path.exists(path):
            print(f"kept: `cargo xtask acceptance {suite}` has not run")
            return None
        with open(path, encoding="utf-8") as file:
            lines = [line.split() for line in file if line.startswith("CASE ")]
        for _, name, outcome, *_ in lines:
            name = name.removesuffix(FOUR)
            passed[name] = passed.get(name, True) and outcome == "ok"
    return passed


def cell(operation, passed):
    """What the table says of an operation."""
    names = [name for name in passed if any(
        name == case or case.endswith("*") and name.startswith(case[:-1])
        for case in OPERATIONS[operation])]
    if not names:
        return ""
    return f"yes ({len(names)})" if all(passed[name] for name in names) else "no"


def column_of(text, sdk):
    """What a table says of an SDK, by operation."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")]
            for line in text.strip().splitlines()]
    if not rows or sdk not in rows[0]:
        return {}
    index = rows[0].index(sdk)
    return {row[0]: row[index] for row in rows[2:]}


def table(directory, before):
    """The lines of the table; `before` are those of the one that it replaces."""
    columns = []
    for sdk, suites in SDKS.items():
        passed = outcomes(directory, suites)
        columns.append(column_of(before, sdk) if passed is None else {
            operation: cell(operation, passed) for operation in OPERATIONS})
    lines = ["| Operation | " + " | ".join(SDKS) + " |", "|---|" + "---|" * len(SDKS)]
    for operation in OPERATIONS:
        cells = (column.get(operation, "") for column in columns)
        lines.append(f"| {operation} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main():
    """Replaces what is between the markers."""
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    target = os.environ.get("CARGO_TARGET_DIR", os.path.join(root, "target"))
    path = os.path.join(root, "COMPAT.md")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    before, rest = text.split(BEGIN)
    replaced, after = rest.split(END)
    written = table(os.path.join(target, "acceptance-outcomes"), replaced)
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"{before}{BEGIN}\n{written}\n{END}{after}")


main()
