"""Bytes that are no requests."""

import random

from attack import Attack, Crowd
from mcbp import HEADER, SET, request

OPEN_AT_A_TIME = 100


def random_bytes():
    """Anything."""
    return random.randbytes(random.randrange(1, 4096))


def half_frame():
    """A frame that is cut somewhere."""
    frame = request(SET, key=b"key", extras=bytes(8), value=random.randbytes(200))
    return frame[:random.randrange(1, len(frame))]


def absurd_lengths():
    """A header whose lengths cannot be."""
    magic = random.choice((0x80, 0x08, 0x81, 0x18, 0x82, 0x83))
    lengths = (random.choice((0, 1, 0xFFFF)), random.choice((0, 1, 0xFF)))
    size = random.choice((0, 1, 30 << 20, 0x7FFFFFFF, 0xFFFFFFFF))
    return HEADER.pack(magic, random.randrange(256), *lengths, random.randrange(256),
                       random.randrange(1 << 16), size, 1, 2) + random.randbytes(64)


def any_command():
    """A sound header of any command with anything behind it."""
    return request(random.randrange(256), key=random.randbytes(random.randrange(300)),
                   extras=random.randbytes(random.randrange(40)), datatype=random.randrange(256),
                   value=random.randbytes(random.randrange(2000)))


def broken_http():
    """A request of HTTP with anything in it."""
    line = random.choice((b"GET /pools HTTP/1.1\r\n", b"POST / HTTP/9.9\r\n", b"GET "))
    header = random.choice((b"Content-Length: 99999999999999999999\r\n\r\n", b"\r\n\r\n",
                            b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n"))
    return line + random.randbytes(random.randrange(100)) + header


def broken_lines():
    """Commands of the text protocol, with words that do not belong to them and blocks that lie."""
    words = (b"get", b"gats", b"set", b"cas", b"ms", b"mg", b"ma", b"md", b"incr", b"stats", b"key",
             b"0", b"-1", b"99999999", b"4294967296", b"v", b"N30", b"MA", b"b", b"noreply", b"\r\n",
             b"\r\nx\r\n", b"k" * 251, random.randbytes(30))
    return b" ".join(random.choices(words, k=random.randrange(1, 60))) + b"\r\n"


KINDS = [random_bytes, half_frame, absurd_lengths, any_command, broken_http, broken_lines]


def everywhere(node, stop):
    """All kinds at all ports."""
    crowd = Crowd(OPEN_AT_A_TIME)
    ports = (node.port, node.memcached_port, node.management_port)
    while not stop.is_set():
        crowd.send(random.choice(ports), random.choice(KINDS)())
    return dict(crowd.counts)


ATTACKS = [Attack("garbage", everywhere, flags=("--memcached-port", "0"))]
