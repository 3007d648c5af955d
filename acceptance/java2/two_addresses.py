"""Two nodes, each with an address of its own: this SDK knows a node by its host name alone."""

import contextlib
import json
import os

from cases import work_directory
from node import Node
from programs import CLUSTER_VBUCKETS, ClusterRun

HOSTS = ("127.0.0.1", "127.0.0.2")


class TwoAddresses(ClusterRun):
    """Two nodes with a replica each, which stay as they are."""

    def run(self, command, chosen, environment):
        """Whether all went well."""
        path = os.path.join(work_directory(), f"map-{self.threads}.json")
        vbuckets = int(os.environ.get("VBUCKETS", CLUSTER_VBUCKETS))
        nodes = [
            Node(f"n_{index}-with-{self.threads}", "--host", host, "--node-name", f"n_{index}",
                 "--cluster-map", path, "--vbuckets", str(vbuckets),
                 "--threads", str(self.threads), "--memory-quota", "128MiB")
            for index, host in enumerate(HOSTS)]
        write_map(path, nodes, vbuckets)
        with contextlib.ExitStack() as stack:
            for node in nodes:
                stack.callback(node.spawn().kill)
            for node in nodes:
                node.wait_until_ready()
            told = {**environment, "SETTEE_CONNECT": nodes[0].connection_string,
                    "SETTEE_USER": nodes[0].user, "SETTEE_PASSWORD": nodes[0].password,
                    "SETTEE_MANAGEMENT_PORT": str(nodes[0].management_port)}
            return self.follow([*command, "cluster", *chosen], told, None)


def write_map(path, nodes, vbuckets):
    """The file of the cluster's map: every second vBucket is active on the first node."""
    plan = {"rev": [1, 1], "replicas": 1,
            "nodes": [{"name": f"n_{index}", "host": host, "kv": node.port,
                       "mgmt": node.management_port}
                      for index, (host, node) in enumerate(zip(HOSTS, nodes))],
            "vbuckets": [[vbucket % 2, 1 - vbucket % 2] for vbucket in range(vbuckets)]}
    with open(path, "w", encoding="utf-8") as file:
        json.dump(plan, file)
