"""Requests to the node that the map names."""

from cluster_run import BUCKET, HOST, NOT_MY_VBUCKET, PASSWORD, USER
from mcbp import Connection, ConnectionLost, vbucket_of


class Router:
    """Sends each request to the node that the map names, on connections of its own.

    A request that was not answered within `seconds` may still be carried out later, even after what
    is sent next on another connection.
    """

    def __init__(self, cluster, seconds=5):
        self.cluster, self._seconds = cluster, seconds
        self._connections = {}
        self._chains = cluster.chains()

    def ask(self, key, encode):
        """The answer, or nothing when there was none."""
        vbucket = vbucket_of(key, len(self._chains))
        port = self._chains[vbucket][0]
        try:
            connection = self._connection(port)
            connection.send(encode(vbucket))
            response = connection.receive()
        except (ConnectionLost, TimeoutError):
            self._forget(port)
            return None
        if response.status == NOT_MY_VBUCKET:
            self._chains = self.cluster.chains()
        return response

    def _connection(self, port):
        if port is None:
            raise ConnectionLost("no node has it")
        if port not in self._connections:
            connection = Connection(HOST, port, self._seconds)
            self._connections[port] = connection.open_bucket(USER, PASSWORD, BUCKET)
        return self._connections[port]

    def _forget(self, port):
        connection = self._connections.pop(port, None)
        if connection is not None:
            connection.close()
        self._chains = self.cluster.chains()
