"""Certificates of nodes and of their clients, and what nodes are told of them."""

import base64
import json
import os
import ssl
import subprocess
import urllib.error
import urllib.request

from cases import expect_equal, work_directory
from node import HOST

# A client is the user that its certificate's common name says.
RULES = {"prefixes": [{"path": "subject.cn", "prefix": "", "delimiter": ""}]}
STRANGER = "nobody"


def authority_of(node, name="ca.pem"):
    """The file of the node's own authority."""
    return os.path.join(node.data_directory, "certificates", name)


def openssl(*arguments):
    """Runs a command of openssl."""
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)


def client_certificate(node, user):
    """The files of a certificate in this name that the node's authority has signed, and its key."""
    base = os.path.join(work_directory(), f"{node.name}-{user}")
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
            "-keyout", f"{base}.key", "-out", f"{base}.csr", "-subj", f"/CN={user}")
    with open(f"{base}.ext", "w", encoding="ascii") as file:
        file.write("basicConstraints=CA:false\nextendedKeyUsage=clientAuth\n")
    authority = authority_of(node, "authority.pem")
    openssl("x509", "-req", "-in", f"{base}.csr", "-CA", authority, "-CAkey", authority,
            "-CAcreateserial", "-CAserial", f"{base}.srl", "-days", "2",
            "-extfile", f"{base}.ext", "-out", f"{base}.pem")
    return f"{base}.pem", f"{base}.key"


def other_authority():
    """The file of an authority that has signed no node's certificate."""
    base = os.path.join(work_directory(), "other-authority")
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
            "-keyout", f"{base}.key", "-out", f"{base}.pem", "-subj", "/CN=other", "-days", "2")
    return f"{base}.pem"


def authority_with(directory, host):
    """The files of an authority, and of a node's certificate for `host` with its key that it has
    signed."""
    ca, own = (os.path.join(directory, f"{name}.pem") for name in ("authority", host))
    new_key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    openssl("req", "-x509", *new_key, "-keyout", f"{ca}.key", "-out", ca, "-subj", "/CN=nodes",
            "-days", "2")
    openssl("req", *new_key, "-keyout", f"{own}.key", "-out", f"{own}.csr", "-subj", f"/CN={host}")
    with open(f"{own}.ext", "w", encoding="ascii") as file:
        file.write(f"basicConstraints=CA:false\nsubjectAltName=DNS:{host}\n"
                   "extendedKeyUsage=serverAuth,clientAuth\n")
    openssl("x509", "-req", "-in", f"{own}.csr", "-CA", ca, "-CAkey", f"{ca}.key",
            "-CAcreateserial", "-CAserial", f"{own}.srl", "-days", "2", "-extfile", f"{own}.ext",
            "-out", f"{own}.signed")
    with open(own, "wb") as file:
        for part in (f"{own}.signed", f"{own}.key"):
            with open(part, "rb") as source:
                file.write(source.read())
    return ca, own


def rest(node, method, path, body=None, context=None, has_login=True):
    """Status and body of a request behind TLS."""
    request = urllib.request.Request(
        f"https://{HOST}:{node.management_tls_port}{path}", data=body, method=method)
    if has_login:
        login = base64.b64encode(f"{node.user}:{node.password}".encode()).decode()
        request.add_header("Authorization", f"Basic {login}")
    context = context or ssl.create_default_context(cafile=authority_of(node))
    try:
        with urllib.request.urlopen(request, timeout=10, context=context) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def ask_for_certificates(node, state="enable", context=None):
    """Has the node ask clients for certificates."""
    status, body = rest(node, "POST", "/settings/clientCertAuth",
                        json.dumps({**RULES, "state": state}).encode(), context=context)
    expect_equal((status, body), (202, b""), "answer to the rules")


def told_of(node):
    """What a program needs to connect behind TLS, as variables; the node asks for certificates."""
    ask_for_certificates(node)
    own, stranger = client_certificate(node, node.user), client_certificate(node, STRANGER)
    return {
        "SETTEE_TLS_CONNECT": f"couchbases://{HOST}:{node.tls_port}",
        "SETTEE_AUTHORITY": authority_of(node), "SETTEE_OTHER_AUTHORITY": other_authority(),
        "SETTEE_CERTIFICATE": own[0], "SETTEE_KEY": own[1],
        "SETTEE_STRANGERS_CERTIFICATE": stranger[0], "SETTEE_STRANGERS_KEY": stranger[1],
    }


def authority_of_cluster(nodes):
    """The file of the one authority of a cluster's nodes."""
    return os.path.join(nodes.directory, "certificates", "ca.pem")


def told_of_cluster(nodes):
    """What a program needs to connect to several nodes behind TLS, as variables."""
    # The port of TLS is the one behind the data port.
    seeds = ",".join(f"{HOST}:{nodes.port(number) + 1}" for number in range(nodes.nodes))
    return {"SETTEE_TLS_CONNECT": f"couchbases://{seeds}",
            "SETTEE_AUTHORITY": authority_of_cluster(nodes)}
