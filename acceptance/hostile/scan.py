"""What a node offers to whoever speaks TLS: versions, ciphers, early data, renegotiation."""

import os
import re
import subprocess

from cases import expect, expect_equal, work_directory
from node import HOST, Node

ANSWER_SECONDS = 20
STOP_SECONDS = 30
# What the certificate that a node makes, of an ECDSA key, is shown with. Nothing else is spoken.
CIPHERS = {
    "TLSv1.2": {
        "ECDHE-ECDSA-AES128-GCM-SHA256",
        "ECDHE-ECDSA-AES256-GCM-SHA384",
        "ECDHE-ECDSA-CHACHA20-POLY1305",
    },
    "TLSv1.3": {
        "TLS_AES_128_GCM_SHA256",
        "TLS_AES_256_GCM_SHA384",
        "TLS_CHACHA20_POLY1305_SHA256",
    },
}
REFUSED_VERSIONS = ("-tls1", "-tls1_1")


def client(port, *flags, said=b""):
    """What `openssl s_client` prints of a session, which it ends behind what it says."""
    done = subprocess.run(
        ["openssl", "s_client", "-connect", f"{HOST}:{port}", *flags],
        input=said, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=ANSWER_SECONDS,
        check=False)
    return done.stdout.decode(errors="replace")


def cipher_of(text):
    """The version and cipher of a session that began; nothing of another."""
    found = re.search(r"^New, (TLSv[0-9.]+), Cipher is (\S+)$", text, re.MULTILINE)
    return found.groups() if found else None


def known_ciphers(flag):
    """Every cipher of a version that the tool knows."""
    listed = subprocess.run(
        ["openssl", "ciphers", "-s", flag, "ALL:COMPLEMENTOFALL:@SECLEVEL=0"],
        stdout=subprocess.PIPE, check=True)
    return listed.stdout.decode().strip().split(":")


def accepted(port):
    """By version, the ciphers with which a session begins."""
    found = {"TLSv1.2": set(), "TLSv1.3": set()}
    for version, flag, choice in (("TLSv1.2", "-tls1_2", "-cipher"),
                                  ("TLSv1.3", "-tls1_3", "-ciphersuites")):
        for cipher in known_ciphers(flag):
            level = ":@SECLEVEL=0" if choice == "-cipher" else ""
            begun = cipher_of(client(port, flag, choice, cipher + level))
            if begun:
                expect_equal(begun[1], cipher, "the cipher of a session")
                found[version].add(cipher)
    return found


def scan():
    """Both ports behind TLS offer what they should, and nothing else."""
    with Node("scan", "--threads", "1", "--vbuckets", "16") as node:
        for port in (node.tls_port, node.management_tls_port):
            expect_equal(accepted(port), CIPHERS, f"the ciphers of port {port}")
            for version in REFUSED_VERSIONS:
                text = client(port, version, "-cipher", "ALL:@SECLEVEL=0")
                expect_equal(cipher_of(text), None, f"a session with {version}")
            expect_no_early_data(port)
            expect_no_renegotiation(port)
        node.stop(STOP_SECONDS)
    expect_equal(node.unexpected_log_lines(), [], "lines in the node's log")


def expect_no_early_data(port):
    """A session that is resumed takes nothing before the handshake is done."""
    kept = os.path.join(work_directory(), "session.pem")
    early = os.path.join(work_directory(), "early")
    with open(early, "wb") as file:
        file.write(b"GET / HTTP/1.1\r\n\r\n")
    said = b"GET /pools HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    client(port, "-tls1_3", "-sess_out", kept, "-ign_eof", said=said)
    text = client(port, "-tls1_3", "-sess_in", kept, "-early_data", early)
    expect("Early data was not sent" in text or "Early data was rejected" in text,
           f"early data at port {port}: {text}")


def expect_no_renegotiation(port):
    """A second handshake in a session of TLS 1.2 is refused."""
    text = client(port, "-tls1_2", said=b"R\n")
    expect("RENEGOTIATING" in text, f"the tool asked for nothing: {text}")
    expect("no renegotiation" in text or "handshake failure" in text or "errno" in text,
           f"a renegotiation at port {port}: {text}")


def declare(cases):
    """The cases of scans."""
    cases.add("tls-scan", scan)
