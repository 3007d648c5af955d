"""Sessions that never begin, or begin with nonsense, at the ports behind TLS."""

import collections
import os
import socket
import ssl
import subprocess

from attack import CONNECT_SECONDS, Attack, Crowd, crowd_size, keep_open, stranger
from node import HOST

HALVES = 3000
GARBAGE_AT_A_TIME = 200
GARBAGE_BYTES = 2000
HELLOS_AT_A_TIME = 100
SLOW = 500
SLOW_SECONDS = 0.2
RENEGOTIATION_SECONDS = 20


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


def slow(node, stop):
    """Handshakes that go on by a byte at a time."""
    first, said = hello(), collections.Counter()

    def pulse(opened):
        position = said[opened.fileno()] % len(first)
        opened.send(first[position:position + 1])
        said[opened.fileno()] += 1

    openers = [lambda: stranger(node.tls_port), lambda: stranger(node.management_tls_port)]
    return keep_open(openers, crowd_size(SLOW), stop, pulse, SLOW_SECONDS)


def resumptions(node, stop):
    """Sessions that are resumed at once and say nothing."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    counts, session = collections.Counter(), None
    while not stop.is_set():
        try:
            with socket.create_connection((HOST, node.tls_port), CONNECT_SECONDS) as plain, \
                    context.wrap_socket(plain, session=session) as begun:
                counts["resumed" if begun.session_reused else "begun"] += 1
                session = begun.session
        except OSError:
            counts["refused"] += 1
    return dict(counts)


def renegotiations(node, stop):
    """Sessions of TLS 1.2 that begin another handshake again and again."""
    counts = collections.Counter()
    while not stop.is_set():
        asked = subprocess.run(
            ["openssl", "s_client", "-connect", f"{HOST}:{node.tls_port}", "-tls1_2"],
            input=b"R\n" * 20, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            timeout=RENEGOTIATION_SECONDS, check=False)
        is_refused = b"no renegotiation" in asked.stdout or asked.returncode != 0
        counts["refused" if is_refused else "ended"] += 1
    return dict(counts)


ATTACKS = [
    Attack("tls-halves", halves, lets_newcomers_in=True),
    Attack("tls-hellos", hellos),
    Attack("tls-garbage", garbage),
    Attack("tls-slow", slow, lets_newcomers_in=True),
    Attack("tls-resumptions", resumptions, lets_newcomers_in=True),
    Attack("tls-renegotiations", renegotiations, lets_newcomers_in=True),
]
