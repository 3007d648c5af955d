"""A minimal client on a plain socket (docs/specification/protocol.md, section 1)."""

import socket
import struct
import zlib
from dataclasses import dataclass

HEADER = struct.Struct(">BBHBBHIIQ")

GET, SET, DELETE, FLUSH = 0x00, 0x01, 0x04, 0x08
HELLO, SASL_AUTH, SELECT_BUCKET = 0x1F, 0x21, 0x89
OBSERVE_SEQNO, GET_FAILOVER_LOG, SEQNO_PERSISTENCE = 0x91, 0x96, 0xB7
GET_CLUSTER_CONFIG = 0xB5
STAT = 0x10

SUCCESS, KEY_NOT_FOUND = 0x00, 0x01

FEATURE_MUTATION_SEQNO, FEATURE_XERROR, FEATURE_SELECT_BUCKET = 0x04, 0x07, 0x08
FEATURE_SNAPPY, FEATURE_JSON, FEATURE_COLLECTIONS = 0x0A, 0x0B, 0x12

DATATYPE_SNAPPY = 0x02


class ConnectionLost(Exception):
    """The node closed the connection, or died."""


@dataclass
class Response:
    """One answer, cut into its parts."""

    opcode: int
    status: int
    opaque: int
    cas: int
    datatype: int
    extras: bytes
    key: bytes
    value: bytes

    def mutation_token(self):
        """The vBucket uuid and the seqno that MutationSeqno adds to the answer to a mutation."""
        return struct.unpack(">QQ", self.extras)


def request(opcode, key=b"", extras=b"", value=b"", vbucket=0, cas=0, opaque=0, datatype=0):
    """The bytes of a classic request (magic 0x80)."""
    size = len(extras) + len(key) + len(value)
    header = HEADER.pack(
        0x80, opcode, len(key), len(extras), datatype, vbucket, size, opaque, cas)
    return header + extras + key + value


def durable_request(opcode, key, extras, value, level, milliseconds, vbucket, opaque=0):
    """The bytes of a request with a durability requirement (magic 0x08)."""
    framing = struct.pack(">BBH", 0x13, level, milliseconds)
    size = len(framing) + len(extras) + len(key) + len(value)
    lengths = len(framing) << 8 | len(key)
    header = HEADER.pack(0x08, opcode, lengths, len(extras), 0, vbucket, size, opaque, 0)
    return header + framing + extras + key + value


def durable_set(key, value, level, milliseconds, vbucket, opaque=0):
    """The bytes of a SET with a durability requirement."""
    return durable_request(SET, key, bytes(8), value, level, milliseconds, vbucket, opaque)


def vbucket_of(key, count):
    """The vBucket of a key (docs/specification/clients.md, section 5.6)."""
    return ((zlib.crc32(key) >> 16) & 0x7FFF) % count


class Connection:
    """A connection whose requests are answered in order."""

    def __init__(self, host, port, seconds=30):
        try:
            self._socket = socket.create_connection((host, port), timeout=seconds)
        except OSError as error:
            raise ConnectionLost(str(error)) from None
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._received = bytearray()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Closes the socket."""
        self._socket.close()

    def detach(self):
        """The socket, for callers who send what no client would."""
        return self._socket

    def send(self, frames):
        """Sends whole requests."""
        try:
            self._socket.sendall(frames)
        except OSError as error:
            raise ConnectionLost(str(error)) from None

    def receive(self):
        """The next answer."""
        header = HEADER.unpack(self._take(HEADER.size))
        magic, opcode, key_size, extras_size, datatype, status, size, opaque, cas = header
        if magic != 0x81:
            raise ValueError(f"not an answer, magic {magic:#x}")
        body = self._take(size)
        key_end = extras_size + key_size
        return Response(opcode, status, opaque, cas, datatype,
                        body[:extras_size], body[extras_size:key_end], body[key_end:])

    def _take(self, size):
        while len(self._received) < size:
            try:
                piece = self._socket.recv(1 << 16)
            except ConnectionError as error:
                raise ConnectionLost(str(error)) from None
            if not piece:
                raise ConnectionLost("end of stream")
            self._received += piece
        taken = bytes(self._received[:size])
        del self._received[:size]
        return taken

    def call(self, opcode, **parts):
        """One request and its answer."""
        self.send(request(opcode, **parts))
        response = self.receive()
        if response.opcode != opcode:
            raise ValueError(f"opcode {response.opcode:#x} answers {opcode:#x}")
        return response

    def call_successfully(self, opcode, **parts):
        """One request, whose answer must be success."""
        response = self.call(opcode, **parts)
        if response.status != SUCCESS:
            raise ValueError(f"opcode {opcode:#x} got status {response.status:#x}")
        return response

    def statistics(self, group):
        """A group of statistics, as a dictionary."""
        self.send(request(STAT, key=group.encode()))
        statistics = {}
        while True:
            response = self.receive()
            if response.status != SUCCESS:
                raise ValueError(f"statistics {group!r} got status {response.status:#x}")
            if not response.key:
                return statistics
            statistics[response.key.decode()] = response.value.decode()

    def open_bucket(self, user, password, bucket, features=(FEATURE_MUTATION_SEQNO,)):
        """HELLO, SASL PLAIN and SELECT_BUCKET."""
        wanted = [FEATURE_SELECT_BUCKET, FEATURE_XERROR, *features]
        self.call_successfully(
            HELLO, key=b"acceptance", value=struct.pack(f">{len(wanted)}H", *wanted))
        plain = f"\0{user}\0{password}".encode()
        self.call_successfully(SASL_AUTH, key=b"PLAIN", value=plain)
        self.call_successfully(SELECT_BUCKET, key=bucket.encode())
        return self


def open_bucket(node, bucket="default", features=(FEATURE_MUTATION_SEQNO,), seconds=30):
    """A connection to the bucket of a node."""
    connection = Connection("127.0.0.1", node.port, seconds)
    return connection.open_bucket(node.user, node.password, bucket, features)
