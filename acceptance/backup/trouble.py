"""What goes wrong with backups, and that it is said."""

import glob
import json
import os
import shutil
import time

import tool
from node import Node


def declare(cases):
    """Declares the cases."""

    @cases.case
    def strangers_and_wrong_places_are_refused():
        target = tool.work("refused-target")
        with Node("refused", "--vbuckets", str(tool.VBUCKETS)) as node:
            arguments = tool.backup_arguments(node, target)
            management = f"http://127.0.0.1:{node.management_port}"
            tool.fail([*arguments, "--password", "wrong"][:7] + ["--password", "wrong"], "check")
            tool.fail(["backup", "--target", target, "--management", management,
                       "--password", "wrong"], "--password")
            tool.fail(["backup", "--target", target, "--management", management,
                       "--password", node.password, "--bucket", "other"], "--bucket")
            tool.fail([*arguments[:2], "/proc/no/such", *arguments[3:]], "/proc/no/such")
        tool.fail(arguments, "is the server running")
        assert not glob.glob(os.path.join(target, "*", "*")), "something was stored"

    @cases.case
    def an_ephemeral_bucket_has_no_backup():
        with Node("ephemeral", "--bucket-type", "ephemeral") as node:
            tool.fail(tool.backup_arguments(node, tool.work("ephemeral-target")), "no", "files")

    @cases.case
    def damage_is_found_and_nothing_half_restored_is_served():
        target = tool.work("damaged-target")
        with Node("damaged", "--vbuckets", str(tool.VBUCKETS)) as node:
            writer = tool.Writer(node, 5)
            writer.write(100)
            writer.persist()
            made = tool.succeed(tool.backup_arguments(node, target))
        whole = os.path.join(target, made["backup"])
        objects = sorted(glob.glob(os.path.join(whole, "5.*.couch")))
        assert len(objects) == 1, objects
        manifest = os.path.join(whole, "manifest.json")
        for number, (harm, words) in enumerate((
                (lambda: flip(objects[0]), ("vBucket 5", "not those")),
                (lambda: os.truncate(objects[0], 4096), ("vBucket 5", "not those")),
                (lambda: os.remove(objects[0]), ("vBucket 5", "missing")),
                (lambda: change(manifest), ("vBucket 5", "something else")),
                (lambda: flip(manifest, 0), ("manifest", "damaged")),
                (lambda: os.remove(manifest), ("no complete backup",)))):
            kept = tool.work("damaged-kept")
            shutil.copytree(whole, kept)
            harm()
            directory = tool.work(f"damaged-{number}-data")
            tool.fail(["restore", "--target", target, "--data-dir", directory], *words)
            assert os.listdir(os.path.join(directory, "buckets")) == [], "something is left"
            shutil.rmtree(whole)
            shutil.move(kept, whole)
        directory = tool.work("damaged-again-data")
        arguments = ["restore", "--target", target, "--data-dir", directory]
        # A restore that was killed leaves this.
        os.makedirs(os.path.join(directory, "buckets", ".restoring-default", "x"))
        with open(os.path.join(directory, "settee.json"), "w", encoding="utf-8") as mark:
            json.dump({"format": 1, "cluster_uuid": "0" * 32}, mark)
        tool.succeed([*arguments, "--json"])
        tool.fail(arguments, "already", "--bucket")
        with Node("damaged-again") as node:
            writer.check(node, 100)
            tool.fail(arguments, "another node uses")

    @cases.case
    def a_killed_tool_leaves_no_backup_and_is_gone_on_with():
        target = tool.work("killed-target")
        with Node("killed", "--vbuckets", str(tool.VBUCKETS)) as node:
            writers = [tool.Writer(node, vbucket, keys=400, filler=20_000) for vbucket in range(8)]
            for writer in writers:
                writer.write(400)
                writer.persist()
            arguments = tool.backup_arguments(node, target, "--parallel", "1")
            process = tool.start_tool(arguments)
            while not glob.glob(os.path.join(target, "default-*", "*.couch")):
                assert process.poll() is None, "it ended before it was killed"
                time.sleep(0.001)
            process.kill()
            process.wait()
            assert not glob.glob(os.path.join(target, "*", "manifest.json"))
            restore = ["restore", "--target", target, "--data-dir", tool.work("killed-again-data")]
            tool.fail(restore, "no complete backup")
            made = tool.succeed(arguments)
            assert made["reused"] >= 1, made
            assert len(os.listdir(target)) == 2, os.listdir(target)
        tool.succeed([*restore, "--json"])
        with Node("killed-again") as node:
            for writer in writers:
                writer.check(node, 400)

    @cases.case
    def a_node_that_goes_away_ends_the_backup():
        target = tool.work("gone-target")
        with Node("gone", "--vbuckets", str(tool.VBUCKETS)) as node:
            writers = [tool.Writer(node, vbucket, keys=400, filler=20_000) for vbucket in range(8)]
            for writer in writers:
                writer.write(400)
                writer.persist()
            process = tool.start_tool(tool.backup_arguments(node, target, "--parallel", "1"))
            while not glob.glob(os.path.join(target, "default-*", "*.couch")):
                assert process.poll() is None, "it ended before the node was killed"
                time.sleep(0.001)
            node.kill()
            assert process.wait(60) == 1
        assert not glob.glob(os.path.join(target, "*", "manifest.json"))


def flip(path, position=200):
    """Changes one bit."""
    with open(path, "r+b") as file:
        file.seek(position)
        byte = file.read(1)[0]
        file.seek(position)
        file.write(bytes([byte ^ 1]))


def change(manifest):
    """Has a manifest say another seqno."""
    with open(manifest, encoding="utf-8") as file:
        content = json.load(file)
    for vbucket in content["vbuckets"]:
        vbucket["high_seqno"] += vbucket["vbid"] == 5
    with open(manifest, "w", encoding="utf-8") as file:
        json.dump(content, file)
