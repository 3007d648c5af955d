#!/usr/bin/env python3
"""Stores a document durably, or reads it: `document.py set|get PORT PASSWORD VALUE`."""

import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

from mcbp import Connection, durable_set, vbucket_of

GET = 0x00
PERSIST_TO_MAJORITY = 3


def main(order, port, password, value):
    """Exits with 0 when the document was stored, or is what it should be."""
    vbuckets = int(os.environ["VBUCKETS"])
    vbucket = vbucket_of(b"sofa", vbuckets)
    with Connection("127.0.0.1", int(port)) as connection:
        connection.open_bucket("Administrator", password, "default")
        if order == "set":
            connection.send(durable_set(b"sofa", value.encode(), PERSIST_TO_MAJORITY, 10_000,
                                        vbucket))
            answer = connection.receive()
            return 0 if answer.status == 0 else f"status {answer.status}"
        answer = connection.call(GET, key=b"sofa", vbucket=vbucket)
        found = bytes(answer.value).decode()
        return 0 if (answer.status, found) == (0, value) else f"status {answer.status}: {found}"


sys.exit(main(*sys.argv[1:]))
