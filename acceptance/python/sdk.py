"""The SDK's objects that the cases share."""

import itertools
from datetime import timedelta

from couchbase.auth import PasswordAuthenticator
from couchbase.cluster import Cluster
from couchbase.exceptions import CouchbaseException
from couchbase.options import ClusterOptions, ClusterTimeoutOptions

BUCKET = "default"
READY = timedelta(seconds=10)


class Sdk:
    """One cluster object, connected once, used by all cases."""

    def __init__(self, node):
        self.node = node
        self._names = itertools.count(1)
        self.cluster = self.connect()
        self.bucket = self.cluster.bucket(BUCKET)
        self.collection = self.bucket.default_collection()

    def connect(self, user=None, password=None):
        """Another cluster object, with the node's credentials unless others are given."""
        authenticator = PasswordAuthenticator(
            user or self.node.user, password or self.node.password)
        timeouts = ClusterTimeoutOptions(
            kv_timeout=timedelta(seconds=10), connect_timeout=READY, bootstrap_timeout=READY)
        options = ClusterOptions(
            authenticator, timeout_options=timeouts, enable_mutation_tokens=True)
        return Cluster.connect(self.node.connection_string, options)

    def close(self):
        """Closes the connections."""
        self.cluster.close()

    def key(self, name="key"):
        """A key that no other case uses."""
        return f"{name}-{next(self._names)}"

    def stored(self, value, **options):
        """A new document with this value: its key and what the store returned."""
        key = self.key()
        return key, self.collection.upsert(key, value, **options)

    def get_json(self, key):
        """The value of a JSON document."""
        return self.collection.get(key).content_as[dict]

    def answers(self, key):
        """Whether an operation succeeds within a second."""
        try:
            self.collection.exists(key, timeout=timedelta(seconds=1))
        except CouchbaseException:
            return False
        return True

    def is_gone(self, key):
        """Whether no document has this key."""
        return not self.collection.exists(key).exists
