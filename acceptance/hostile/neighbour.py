"""A server that has nothing to do with the node, and does as little as one can: it takes fresh
memory and says back what it hears. How long that takes is what the machine does to everybody."""

import mmap
import socket

from children import Child
from node import HOST

WORD = b"?" * 32
FRESH = bytes(64 << 10)
LOOK_SECONDS = 1


class Neighbour:
    """The server's process, for one client."""

    def __init__(self):
        listener = socket.create_server((HOST, 0))
        self.port = listener.getsockname()[1]
        self.child = Child(serve, listener)
        listener.close()


def serve(listener, stop):
    """Answers the first client until told to stop."""
    listener.settimeout(LOOK_SECONDS)
    while not stop.is_set():
        try:
            client, _ = listener.accept()
        except TimeoutError:
            continue
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client.settimeout(LOOK_SECONDS)
        answer(client, stop)


def answer(client, stop):
    """Until the client goes."""
    while not stop.is_set():
        try:
            word = client.recv(len(WORD))
        except TimeoutError:
            continue
        if not word:
            return
        with mmap.mmap(-1, len(FRESH)) as fresh:
            fresh.write(FRESH)
        client.sendall(word)


def ask(connection):
    """A word there and back."""
    connection.sendall(WORD)
    left = len(WORD)
    while left:
        left -= len(connection.recv(left))
