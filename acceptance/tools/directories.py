"""Cases: data directories that are looked at, and what a damaged one is told to do."""

import json
import os
import re
import shlex
import shutil

from cases import expect, expect_equal, work_directory
from node import COLOUR, HOST, Node
from typing_in import Typist, settee

FIXTURES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "crates",
                        "storage", "tests", "fixtures", "couchstore")
VBUCKETS = 4


def original(name, *files):
    """A directory as an original server has one, with a bucket of these files."""
    root = os.path.join(work_directory(), name)
    bucket = os.path.join(root, "data", "travel")
    os.makedirs(bucket)
    os.makedirs(os.path.join(root, "data", "@2i"))
    for fixture, file in files:
        shutil.copyfile(os.path.join(FIXTURES, fixture), os.path.join(bucket, file))
    return root


def what_of_an_original_directory_is_taken_over_is_told():
    """And nothing in it is changed; what is damaged, or no bucket, is said."""
    root = original("original", ("golden-v14.couch.1", "0.couch.1"),
                    ("mixed-rollbacks-v14.couch.1", "1.couch.1"))
    before = snapshot(root)
    said = settee("adopt", "--check", root)
    expect("bucket travel: taken over: " in said.out and "left behind:" in said.out, said.out)
    expect_equal(snapshot(root), before, "what is there")
    told = json.loads(settee("adopt", "--check", root, "-o", "json").out)
    (bucket,) = told["buckets"]
    expect(bucket["taken_over"] and bucket["documents"] > 0 and bucket["files"] == 2, str(bucket))
    # The figures are those of the node that takes it over.
    command = re.search(r"settee serve --data-dir (\S+) --bucket (\S+)", said.out)
    expect_equal(command[2], "travel", "the command that takes it over")
    broken = original("broken", ("golden-v14.couch.1", "0.couch.1"),
                      ("golden-v14.couch.1", "1.couch.1"))
    with open(os.path.join(broken, "data", "travel", "1.couch.1"), "r+b") as file:
        file.write(bytes(1 << 20))
    said = settee("adopt", "--check", broken, status=1)
    expect("vBucket 1 would be out of service" in said.out, said.out)
    archive = os.path.join(work_directory(), "archive")
    os.makedirs(archive)
    with open(os.path.join(archive, ".backup"), "w", encoding="ascii"):
        pass
    expect("cbbackupmgr" in settee("adopt", "--check", archive, status=1).err, "a backup")
    expect("holds no bucket" in settee("adopt", "--check", work_directory(), status=1).err, "none")
    settee("adopt", root, status=2)


def snapshot(root):
    """Names, sizes and times of all files."""
    found = [os.path.join(place, name) for place, _, names in os.walk(root) for name in names]
    return sorted((path, os.stat(path).st_size, os.stat(path).st_mtime_ns) for path in found)


def what_the_doctor_prints_heals(_nodes, threads):
    """A file is damaged: the log names a command, the doctor explains and prints it, and typed as
    it is printed it heals the vBucket."""
    with Node(f"healed-{threads}", "--vbuckets", str(VBUCKETS), "--threads", threads,
              "--apply-cycle-ms", "100") as node:
        typed = Typist(node)
        typed("shell", stdin="".join(f"set key-{n} {n}\n" for n in range(40)).encode())
        running = json.loads(typed("doctor", node.data_directory, "--quick", "-o", "json").out)
        expect(any("a node uses it now" in fact for fact in running["facts"]), str(running))
        node.stop()
        sound = settee("doctor", node.data_directory)
        expect("no node uses it now" in sound.out and " 0 problems" in sound.out, sound.out)
        damage(os.path.join(node.data_directory, "buckets", "default"), vbucket=1)
        ill = settee("doctor", node.data_directory, status=1)
        expect("1.couch." in ill.out and "what to do:" in ill.out, ill.out)
        told = json.loads(settee("doctor", node.data_directory, "-o", "json", status=1).out)
        expect(not told["sound"], "so it is told to programs")
        node.start()
        with open(node.log_path, encoding="utf-8") as log:
            lines = [COLOUR.sub("", line) for line in log if "ERROR" in line and "1.couch" in line]
        printed = re.search(r"settee (reset-vbucket 1 --bucket default)", lines[0])
        expect(printed, f"the log names the command: {lines}")
        said = typed(*shlex.split(printed[1]))
        expect("loses all of it" in said.out and "--confirm" in said.err, "nothing is changed yet")
        commands = [line.strip() for line in ill.out.splitlines() if line.startswith("    settee")]
        heals = [shlex.split(line)[1:] for line in commands if line.endswith("--confirm")]
        expect_equal(len(heals), 1, f"one command: {commands}")
        typed(*heals[0])
        expect("no vBucket's file is damaged" in typed("reset-vbucket").out, "it is healed")
        typed("shell", stdin="".join(f"set key-{n} {n}\n" for n in range(40)).encode())
        node.stop()
        healed = settee("doctor", node.data_directory)
        expect("was set aside when vBucket 1 began anew" in healed.out, healed.out)
        expect(" 0 problems, " in healed.out, healed.out)


def damage(bucket, vbucket):
    """Overwrites a vBucket's file."""
    (name,) = [name for name in os.listdir(bucket) if name.startswith(f"{vbucket}.couch.")]
    path = os.path.join(bucket, name)
    size = os.path.getsize(path)
    with open(path, "r+b") as file:
        file.write(b"\xee" * size)


def backups_are_made_listed_and_put_back(nodes, threads):
    """With the words of cbbackupmgr, into a directory that a node then serves."""
    node = nodes.of(threads)
    typed = Typist(node)
    typed("set", "kept", "in a backup")
    archive = os.path.join(work_directory(), f"backups-{threads}")
    place = ["-a", archive, "-r", "daily"]
    typed("cbbackupmgr", "config", *place)
    cluster = ["-c", f"couchbase://{HOST}:{node.management_port}", "-u", node.user,
               "-p", node.password]
    typed("cbbackupmgr", "backup", *place, *cluster, "--include-data", "default", "-t", "2")
    expect("default" in typed("cbbackupmgr", "info", *place).out, "it is listed")
    listed = json.loads(typed("cbbackupmgr", "info", *place, "-j").out)
    expect("default" in json.dumps(listed), str(listed))
    said = typed("cbbackupmgr", "restore", *place, *cluster, status=2)
    printed = re.search(r"settee (restore --target \S+) --data-dir DIRECTORY", said.err)
    fresh = Node(f"restored-{threads}", "--vbuckets", "16", "--threads", threads)
    settee(*shlex.split(printed[1]), "--data-dir", fresh.data_directory, "--bucket", "default")
    with fresh:
        expect_equal(Typist(fresh)("get", "kept").out, "in a backup", "the document")
        fresh.stop()


CASES = (what_the_doctor_prints_heals, backups_are_made_listed_and_put_back)
