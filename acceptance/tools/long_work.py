"""Cases: work that takes long tells how far it is, how fast, and how long it will go on."""

import base64
import os
import re
import urllib.request

from cases import expect, wait_until, work_directory
from node import COLOUR, HOST, Node
from typing_in import Typist, settee

VBUCKETS = "8"
DOCUMENTS = "60000"
# What is here is not large: lines come far more often than otherwise.
OFTEN_MS = "5"
OFTEN = {"SETTEE_PROGRESS_INTERVAL_MS": OFTEN_MS}
LOADING = re.compile(r'loading documents .*vbuckets="\d+/8" documents="\d+/60000" '
                     r"documents_per_second=[1-9]\d* seconds_left=\d+")
COMPACTING = re.compile(r'compacting a file .*bytes_done=[1-9]\d* bytes_total=[1-9]\d* '
                        r"bytes_per_second=[1-9]\d* seconds_left=\d+")
FILES = re.compile(r"^[1-9]\d* of \d+ files, \d+ MB, [\d.]+ MB/s, \d+ s left$", re.MULTILINE)
BACKUP = re.compile(r"^\d+ of 8 vBuckets, [\d.]+ of about [\d.]+ MB, [\d.]+ MB/s, about \d+ s left$",
                    re.MULTILINE)


def work_that_takes_long_tells_how_far_it_is(_nodes, threads):
    """Loading, compaction, verification, backup and restore, each once."""
    node = Node(f"long-work-{threads}", "--vbuckets", VBUCKETS, "--threads", threads,
                "--progress-interval-ms", OFTEN_MS)
    with node:
        typed = Typist(node, **OFTEN)
        typed("load", "--num-items", DOCUMENTS, "--min-size", "100", "--max-size", "100",
              "--populate-only", "--num-threads", "4", "--random-body")
        compact(node)
        wait_until(lambda: COMPACTING.search(log_of(node)), 90, "a compaction tells how far it is")
        backup = os.path.join(work_directory(), f"long-backup-{threads}")
        said = typed("backup", "--target", backup)
        expect(BACKUP.search(said.err), f"a backup tells how far it is: {said.err[-500:]}")
        node.stop(30)
        said = settee("verify-file", node.data_directory, environment=OFTEN)
        expect(FILES.search(said.err), f"verification tells how far it is: {said.err[-500:]}")
        quiet = settee("verify-file", node.data_directory)
        expect(quiet.err == "", f"what takes no time is silent: {quiet.err[-500:]}")
        node.start()
        expect(LOADING.search(log_of(node)), f"loading tells how far it is: {log_of(node)[-900:]}")
        node.stop(30)
    restored = os.path.join(work_directory(), f"long-restored-{threads}")
    said = settee("restore", "--target", backup, "--data-dir", restored, "--bucket", "default",
                  environment=OFTEN)
    expect(BACKUP.search(said.err), f"a restore tells how far it is: {said.err[-500:]}")


def compact(node):
    """Orders that every file of the bucket is compacted."""
    request = urllib.request.Request(
        f"http://{HOST}:{node.management_port}"
        "/pools/default/buckets/default/controller/compactBucket", data=b"")
    login = base64.b64encode(f"{node.user}:{node.password}".encode()).decode()
    request.add_header("Authorization", f"Basic {login}")
    with urllib.request.urlopen(request, timeout=30):
        pass


def log_of(node):
    """What the node has said, without colours."""
    with open(node.log_path, encoding="utf-8") as log:
        return COLOUR.sub("", log.read())


CASES = (work_that_takes_long_tells_how_far_it_is,)
