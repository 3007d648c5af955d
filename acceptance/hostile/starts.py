"""Clients that are there before the node is."""

import struct
import threading
import time

from cases import expect_equal
from mcbp import HELLO, Connection, ConnectionLost
from node import HOST, Node

STARTS = 3
CLIENTS = 24
THREADS = 6
ANSWER_SECONDS = 10
STOP_SECONDS = 30
NOOP, VERSION = 0x0A, 0x0B
FEATURES = struct.pack(">H", 0x08)
# Each client asks one of these. Without a login the first two are refused, which is an answer, too.
QUESTIONS = ((VERSION, {}), (NOOP, {}), (HELLO, {"key": b"early", "value": FEATURES}))


class Early(threading.Thread):
    """A client that connects as soon as somebody listens."""

    def __init__(self, node, question):
        super().__init__()
        self._node, self._question = node, question
        self.problem = "no answer"

    def run(self):
        """Connects, asks, and notes what is wrong with the answer."""
        opcode, parts = self._question
        try:
            with self._connect() as connection:
                connection.call(opcode, **parts)
            self.problem = None
        except (ConnectionLost, TimeoutError, ValueError) as error:
            self.problem = f"opcode {opcode:#x}: {type(error).__name__} {error}"

    def _connect(self):
        deadline = time.monotonic() + ANSWER_SECONDS
        while True:
            try:
                return Connection(HOST, self._node.port, ANSWER_SECONDS)
            except ConnectionLost:
                if time.monotonic() > deadline:
                    raise


def connect_at_start():
    """Several starts, each with a crowd in front of the door."""
    node = Node("starts", "--threads", str(THREADS), "--vbuckets", "16")
    for _ in range(STARTS):
        crowd = [Early(node, QUESTIONS[index % len(QUESTIONS)]) for index in range(CLIENTS)]
        for client in crowd:
            client.start()
        with node:
            for client in crowd:
                client.join()
            node.stop(STOP_SECONDS)
        problems = [client.problem for client in crowd if client.problem]
        expect_equal(problems, [], "what early clients met")
    expect_equal(node.unexpected_log_lines(), [], "lines in the node's log")


def declare(cases):
    """The cases of starts."""
    cases.case(connect_at_start)
