"""Clients of the management port that guess passwords, or take all day to ask."""

import base64
import collections
import select

from attack import Attack, keep_open, stranger

GUESSERS = 64
SLOW_CLIENTS = 700
READ_BYTES = 1 << 16


class Guesser:
    """A connection that sends one wrong password after the other."""

    def __init__(self, node, index):
        self._node, self._index, self._number = node, index, 0
        self.socket = stranger(node.management_port)

    def guess(self):
        """One more request."""
        self._number += 1
        wrong = f"{self._node.user}:wrong-{self._index}-{self._number}".encode()
        login = base64.b64encode(wrong).decode()
        self.socket.send(
            f"GET /pools HTTP/1.1\r\nHost: x\r\nAuthorization: Basic {login}\r\n\r\n".encode())

    def status(self):
        """What the answer begins with; nothing when the connection is over."""
        return self.socket.recv(READ_BYTES)[9:12].decode()


def guess(node, stop):
    """Many connections, each with one request under way."""
    counts = collections.Counter()
    guessers = {}

    def add(index):
        guesser = Guesser(node, index)
        guesser.guess()
        guessers[guesser.socket] = guesser

    for index in range(GUESSERS):
        add(index)
    while not stop.is_set():
        for readable in select.select(list(guessers), [], [], 0.1)[0]:
            guesser = guessers[readable]
            try:
                status = guesser.status()
                guesser.guess()
            except OSError:
                status = ""
            counts[status or "closed"] += 1
            if not status:
                del guessers[readable]
                readable.close()
                add(GUESSERS + sum(counts.values()))
    if set(counts) - {"401", "429", "closed"}:
        raise AssertionError(f"wrong passwords were answered with {counts}")
    return dict(counts)


def dawdle(node, stop):
    """A header a byte a second."""
    def begin():
        opened = stranger(node.management_port)
        opened.send(b"GET /pools HTTP/1.1\r\nHost: ")
        return opened

    return keep_open([begin], SLOW_CLIENTS, stop, lambda opened: opened.send(b"x"))


ATTACKS = [
    Attack("rest-logins", guess),
    Attack("rest-slow-headers", dawdle, administrator_seconds=10),
]
