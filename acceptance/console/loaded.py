"""Nodes under load, with a browser each."""

import os
import subprocess

from browser import Browser
from node import Node
from seen import VBUCKETS

THREADS = {"1": "", "4": "-with-four-threads"}


def load(node, *flags):
    """Clients that store and read until they are stopped."""
    return subprocess.Popen(
        [os.environ["SETTEE_BINARY"], "load", "--port", str(node.port), "--username", node.user,
         "--password", node.password, "--num-items", "2000", "--rate-limit", "500", *flags],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


class Nodes:
    """Nodes under load with a browser each, by their numbers of threads, begun when needed."""

    def __init__(self, chromium):
        self._chromium = chromium
        self._open = {}

    def __enter__(self):
        return self

    def __getitem__(self, threads):
        """The browser of a node, with nothing left of the case before."""
        if threads not in self._open:
            for before in list(self._open):
                self._close(before)
            node = Node(f"console-{threads}", "--vbuckets", str(VBUCKETS), "--threads", threads)
            node.start()
            loads = [load(node), load(node, "--durability", "majority", "--key-prefix", "durable")]
            self._open[threads] = (
                node, loads, Browser(self._chromium, node, THREADS[threads]))
        browser = self._open[threads][2]
        browser.take_remarks()
        return browser

    def __exit__(self, *_):
        for threads in list(self._open):
            self._close(threads)

    def _close(self, threads):
        node, loads, browser = self._open.pop(threads)
        browser.close()
        for process in loads:
            process.kill()
            process.wait()
        node.stop()
