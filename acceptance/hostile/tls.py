"""Sessions that never begin, or begin with nonsense, at the ports behind TLS."""

import os
import ssl

from attack import Attack, Crowd, crowd_size, keep_open, stranger

HALVES = 3000
GARBAGE_AT_A_TIME = 200
GARBAGE_BYTES = 2000
HELLOS_AT_A_TIME = 100


def hello():
    """The first message of a client."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.create_default_context()
    session = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
    try:
        session.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return outgoing.read()


def halves(node, stop):
    """The first half of a handshake, and then nothing."""
    first = hello()[:100]

    def begin(port):
        opened = stranger(port)
        opened.send(first)
        return opened

    openers = [lambda: begin(node.tls_port), lambda: begin(node.management_tls_port)]
    return keep_open(openers, crowd_size(HALVES), stop)


def hellos(node, stop):
    """Handshakes whose answer nobody takes."""
    crowd, first = Crowd(HELLOS_AT_A_TIME), hello()
    while not stop.is_set():
        crowd.send(node.tls_port, first)
        crowd.send(node.management_tls_port, first)
    return dict(crowd.counts)


def garbage(node, stop):
    """Random bytes, by themselves and in records of a handshake, of data and of early data."""
    crowd, first = Crowd(GARBAGE_AT_A_TIME), hello()
    begins = [b"", b"\x16\x03\x01", b"\x17\x03\x03", b"\x14\x03\x03\x00\x01", b"\x15\x03\x03"]
    turn = 0
    while not stop.is_set():
        turn += 1
        port = (node.tls_port, node.management_tls_port)[turn % 2]
        valid = first if turn % 3 == 0 else b""
        crowd.send(port, valid + begins[turn % len(begins)] + os.urandom(GARBAGE_BYTES))
    return dict(crowd.counts)


ATTACKS = [
    Attack("tls-halves", halves, lets_newcomers_in=True),
    Attack("tls-hellos", hellos),
    Attack("tls-garbage", garbage),
]
