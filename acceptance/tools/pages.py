"""Cases: the commands of pages for operators, as they stand there.

Those of README.md are run by the suite `readme`, those of docs/operations.md by `package`, those of
docs/metrics.md by `metrics`.
"""

import json
import os
import re
import subprocess

from cases import expect, expect_equal, work_directory
from certificates import authority_with
from node import HOST, Node
from typing_in import COMMAND_SECONDS, place_of

DOCS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs")
# How many blocks of commands there are; what is in blocks without `sh` is not for a shell.
BLOCKS = {"backup.md": 1, "first-start.md": 1, "metrics.md": 1, "operations.md": 11,
          "security.md": 3}
SECRET = "secret"


def blocks(page):
    """The blocks of a page, in their order."""
    with open(os.path.join(DOCS, page), encoding="utf-8") as file:
        return re.findall(r"^```sh\n(.*?)^```$", file.read(), re.MULTILINE | re.DOTALL)


def run(block, directory, node, **replaced):
    """Has a shell carry a block out beside a node; what it says."""
    for said, meant in replaced.items():
        expect(said in block, f"{said} is in the block")
        block = block.replace(said, meant)
    programs = os.path.join(work_directory(), "programs")
    if not os.path.exists(programs):
        os.makedirs(programs)
        os.symlink(os.environ["SETTEE_BINARY"], os.path.join(programs, "settee"))
    variables = {name: value for name, value in os.environ.items()
                 if not name.startswith("SETTEE_")}
    path = os.pathsep.join([programs, os.environ["PATH"]])
    done = subprocess.run(["sh", "-euc", block], cwd=directory, stdin=subprocess.DEVNULL,
                          env={**variables, **place_of(node), "PATH": path},
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=COMMAND_SECONDS, check=False)
    said = done.stdout.decode(errors="replace")
    expect_equal(done.returncode, 0, f"the status of {block}, which said {said[-600:]}")
    return said


def every_block_of_a_page_is_run():
    """A page that has more commands than are known here, or a page that has some, fails."""
    pages = [page for page in os.listdir(DOCS) if page.endswith(".md") and blocks(page)]
    expect_equal({page: len(blocks(page)) for page in pages}, BLOCKS, "blocks of commands")


def the_commands_of_pages_work(_nodes, threads):
    """Of first starts, users and their limits, TLS between nodes, and backups."""
    directory = os.path.join(work_directory(), f"pages-{threads}")
    os.makedirs(directory)
    with Node(f"pages-{threads}", "--vbuckets", "16", "--threads", threads,
              password=SECRET) as node:
        password = {"SETTEE_PASSWORD=password": f"SETTEE_PASSWORD={SECRET}"}
        said = run(blocks("first-start.md")[0], directory, node, **password)
        expect("travel" in said, "the bucket is listed")
        users, limits, between_nodes = blocks("security.md")
        expect("bob" in run(users, directory, node), "the user is listed")
        run("settee user set bob --new-password hunter22 --roles admin", directory, node)
        run(limits, directory, node)
        run(between_nodes, directory, node, **a_node_of_a_cluster(directory))
        target, restored = (os.path.join(directory, name) for name in ("backups", "restored"))
        backup = blocks("backup.md")[0]
        said = run(backup, directory, node, **{
            "/backups": target, "couchbase://127.0.0.1": f"couchbase://{HOST}:{node.port}",
            "/srv/settee": restored, "settee serve": "settee serve --check"})
        expect("default" in said, "the backup is listed")
        expect(os.path.exists(os.path.join(restored, "settee.json")), "there is a node's directory")
        node.stop()


def a_node_of_a_cluster(directory):
    """Files of a map and of certificates for this machine; what a block calls it otherwise."""
    ca, own = authority_with(directory, "localhost")
    nodes = [{"name": f"n_{number}@localhost", "host": host, "kv": 11210, "mgmt": 8091,
              "kvSSL": 11207, "mgmtSSL": 18091}
             for number, host in enumerate(("db-0.example", "localhost"))]
    with open(os.path.join(directory, "map.json"), "w", encoding="ascii") as file:
        json.dump({"rev": [1, 1], "nodes": nodes, "bucket": "default", "replicas": 1,
                   "vbuckets": [[0, 1], [1, 0]]}, file)
    return {"settee serve": "settee serve --check --vbuckets 2", "db-1.example": "localhost",
            "10.0.0.1": HOST, "db-1.pem": own, "ca.pem": ca}


CASES = (the_commands_of_pages_work,)
