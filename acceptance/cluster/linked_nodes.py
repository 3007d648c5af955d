"""Two nodes that reach each other through lines which can be cut, and clients directly."""

import json
import os

from cluster_run import PASSWORD, USER, Cluster
from cases import work_directory
from node import HOST, Node
from proxy import Proxy


class LinkedNodes(Cluster):
    """As a cluster of two nodes and one replica; each node has a map with a proxy for the other."""

    def __init__(self, name, vbuckets=64):
        super().__init__(name, vbuckets=vbuckets)
        self._nodes = []
        self.proxies = []

    def __enter__(self):
        self._nodes = [
            Node(f"{os.path.basename(self.directory)}-{index}", user=USER, password=PASSWORD)
            for index in range(2)]
        self.proxies = [Proxy(node.port) for node in self._nodes]
        for index, node in enumerate(self._nodes):
            node._flags = [
                "--node-name", f"n_{index}", "--cluster-map", self._write_map(index),
                "--vbuckets", str(self.vbuckets), "--threads", "1", "--memory-quota", "128MiB"]
        for node in self._nodes:
            node.spawn()
        for node in self._nodes:
            node.wait_until_ready()
        return self

    def __exit__(self, *_):
        for proxy in self.proxies:
            proxy.close()
        for node in self._nodes:
            if node.is_running():
                node.stop(30)

    def _write_map(self, reader):
        """The map of one node: it reaches the other one through its proxy."""
        nodes = [{
            "name": f"n_{index}", "host": HOST, "mgmt": node.management_port,
            "kv": node.port if index == reader else self.proxies[index].port,
        } for index, node in enumerate(self._nodes)]
        plan = {"rev": [1, 1], "nodes": nodes, "replicas": 1,
                "vbuckets": [[vbucket % 2, 1 - vbucket % 2] for vbucket in range(self.vbuckets)]}
        path = os.path.join(work_directory(), f"{self._nodes[reader].name}-map.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(plan, file)
        return path

    def cut(self, silent):
        """Nothing passes between the nodes."""
        for proxy in self.proxies:
            proxy.cut(silent)

    def heal(self):
        """They reach each other again."""
        for proxy in self.proxies:
            proxy.heal()

    def port(self, node):
        return self._nodes[node].port

    def chains(self):
        ports = [node.port for node in self._nodes]
        return [[ports[vbucket % 2], ports[1 - vbucket % 2]] for vbucket in range(self.vbuckets)]

    def unexpected_log_lines(self, expected=()):
        return [line for node in self._nodes for line in node.unexpected_log_lines(expected)]
