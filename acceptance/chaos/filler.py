"""Load that nobody checks: it fills memory, journals and disks."""

import os
import subprocess
import threading

from cluster_run import BUCKET, HOST, PASSWORD, USER
from plan import FILLER_BYTES, FILLER_RATES


class Filler:
    """`settee load`, begun again whenever it ends, as it does when a node is not there."""

    def __init__(self, cluster, plan):
        self._cluster, self._plan = cluster, plan
        self._stop = threading.Event()
        self._process = None
        self._thread = threading.Thread(target=self._run)

    def __enter__(self):
        if FILLER_RATES[self._plan.filler] != 0:
            self._thread.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        """Ends the load."""
        self._stop.set()
        if self._process is not None:
            self._process.terminate()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self):
        turn = 0
        while not self._stop.is_set():
            node = turn % self._plan.nodes
            self._process = subprocess.Popen(
                self._arguments(node), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL)
            if self._stop.is_set():
                self._process.terminate()
            self._process.wait()
            self._stop.wait(0.2)
            turn += 1

    def _arguments(self, node):
        smallest, largest = FILLER_BYTES
        arguments = [
            os.environ["SETTEE_BINARY"], "load",
            "-U", f"couchbase://{HOST}:{self._cluster.port(node)}/{BUCKET}",
            "--user", USER, "--password", PASSWORD, "--key-prefix", "filler-",
            "--num-items", str(self._plan.filler_documents), "--no-population",
            "--set-pct", "90", "--min-size", str(smallest), "--max-size", str(largest),
            "--random-body", "--num-threads", "8", "--batch-size", "8", "--workers", "1",
            "--expiry", str(self._plan.filler_expiry_seconds), "--timeout", "5"]
        rate = FILLER_RATES[self._plan.filler]
        return arguments + ([] if rate is None else ["--rate-limit", str(rate)])
