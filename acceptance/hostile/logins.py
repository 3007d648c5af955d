"""Logins that are wrong, or never end."""

from attack import Attack, Crowd, crowd_size, keep_open, stranger
from mcbp import SASL_AUTH, request

# Those that are open at a time: more than the node has waiting for their turn.
PLAIN_LOGINS = 100
HALVES = 8000
# With the rest of the message just below the 4096 bytes of one.
NONCE_BYTES = 4000


def plain(node, stop):
    """Connect, a wrong password, close."""
    crowd, number = Crowd(PLAIN_LOGINS), 0
    while not stop.is_set():
        number += 1
        wrong = f"\0{node.user}\0wrong-{number}".encode()
        crowd.send(node.port, request(SASL_AUTH, key=b"PLAIN", value=wrong))
    return dict(crowd.counts)


def halves(node, stop):
    """The first message of a login with a long nonce, and then nothing."""
    first = f"n,,n={node.user},r={'x' * NONCE_BYTES}".encode()
    frame = request(SASL_AUTH, key=b"SCRAM-SHA512", value=first)

    def begin():
        opened = stranger(node.port)
        opened.send(frame)
        return opened

    return keep_open([begin], crowd_size(HALVES), stop)


ATTACKS = [
    Attack("plain-logins", plain),
    Attack("scram-halves", halves, lets_newcomers_in=True),
]
