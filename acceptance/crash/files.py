"""The vBucket files of a stopped node, read by its own tool and by a program that shares no code."""

import json
import os
import re
import subprocess
import sys

VERIFIER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tools/couchverify.py")
VBUCKET_FILE = re.compile(r"\d+\.couch\.\d+$")
FILES_PER_CALL = 256


def vbucket_files(directory):
    """{path: time of the last change in ns} below a data directory."""
    found = {}
    for parent, _, names in os.walk(directory):
        for name in filter(VBUCKET_FILE.match, names):
            path = os.path.join(parent, name)
            found[path] = os.stat(path).st_mtime_ns
    return found


def verify(paths):
    """Complaints about the files."""
    complaints = []
    for start in range(0, len(paths), FILES_PER_CALL):
        command = [sys.executable, VERIFIER, "--kv", *paths[start:start + FILES_PER_CALL]]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        results = [json.loads(line) for line in done.stdout.splitlines()]
        complaints += _verify_with_settee(paths[start:start + FILES_PER_CALL])
        bad = [f"{result['file']}: {result['error']}" for result in results if not result["ok"]]
        if done.returncode != 0 and not bad:
            bad = [done.stderr.decode(errors="replace")[-400:]]
        complaints += bad
    return complaints


def _verify_with_settee(paths):
    """What `settee verify-file` complains about."""
    command = [os.environ["SETTEE_BINARY"], "verify-file", "--json", *paths]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    results = [json.loads(line) for line in done.stdout.splitlines()]
    bad = [f"verify-file: {line}" for line in results if not line["sound"]]
    if len(results) != len(paths) and not bad:
        bad = ["verify-file: " + done.stderr.decode(errors="replace")[-400:]]
    return bad
