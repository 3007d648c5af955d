"""What is in a backup that was made while the node was being written to."""

import glob
import os
import struct

import mcbp
import tool
from named_collections import rest
from node import Node, run_to_end


def declare(cases):
    """Declares the cases."""

    @cases.case
    def a_backup_under_load_has_all_that_was_persisted():
        back_up_under_load("loaded", tool.work("loaded-target"))

    @cases.case
    def a_backup_without_a_journal_has_all_that_was_persisted():
        back_up_under_load("plain", tool.work("plain-target"), "--persistence", "files")

    @cases.case
    def a_backup_is_listed_and_a_second_one_is_another():
        target = tool.work("listed-target")
        with Node("listed", "--vbuckets", str(tool.VBUCKETS)) as node:
            writer = tool.Writer(node, 3)
            writer.write(50)
            writer.persist()
            first = tool.succeed(tool.backup_arguments(node, target, "--name", "first"))
            writer.write(50)
            writer.persist()
            second = tool.succeed(tool.backup_arguments(node, target, "--name", "second"))
            assert (first["documents"], second["documents"]) == (20, 20)
            tool.fail(tool.backup_arguments(node, target, "--name", "first"), "already")
        status, output = run_to_end(["backup", "--target", target, "--info"])
        assert status == 0 and len(output.splitlines()) == 2, output
        assert "20 documents" in output, output
        for name, length in (("first", 50), ("second", 100)):
            restored = tool.work(f"restored-{name}-data")
            tool.succeed(["restore", "--target", target, "--data-dir", restored,
                          "--name", name, "--json"])
            with Node(f"restored-{name}") as node:
                assert writer.check(node, length) == length


    @cases.case
    def a_restored_bucket_is_what_it_was_set_to_be_and_takes_no_more_than_there_is():
        restore_buckets_with_settings()


SETTINGS = {"maxTTL": 3600, "durabilityMinLevel": "persistToMajority", "flushEnabled": 1,
            "evictionPolicy": "fullEviction", "compressionMode": "active"}


def restore_buckets_with_settings():
    """Backs up a bucket with settings of its own and one without, and restores both."""
    told, target = {}, tool.work("settings-target")
    flags = ("--memory-quota", "512MiB", "--vbuckets", str(tool.VBUCKETS))
    with Node("settings", *flags) as node:
        rest(node, "POST", "/pools/default/buckets", name="full", ramQuotaMB=100, **SETTINGS)
        for bucket in ("default", "full"):
            arguments = tool.backup_arguments(node, target)
            # Where the place is said as a whole it says the bucket, too.
            arguments[arguments.index("--spec") + 1] += f"/{bucket}"
            tool.succeed(arguments)
            told[bucket] = rest(node, "GET", f"/pools/default/buckets/{bucket}")
    assert told["full"]["quota"]["ram"] == 100 << 20, told
    data = tool.work("settings-restored-data")
    for bucket, backup in (("full", "full"), ("default", "default"), ("rest", "default")):
        name = next(name for name in os.listdir(target) if name.startswith(f"{backup}-"))
        tool.succeed(["restore", "--target", target, "--data-dir", data, "--bucket", bucket,
                      "--name", name, "--json"])
    with Node("settings-restored", *flags) as node:
        found = {bucket: rest(node, "GET", f"/pools/default/buckets/{bucket}")
                 for bucket in ("full", "default", "rest")}
        for field in (*SETTINGS, "quota"):
            if field in told["full"]:
                assert found["full"][field] == told["full"][field], (field, found["full"])
        assert found["full"]["maxTTL"] == 3600, found["full"]
        assert found["default"]["maxTTL"] == 0, found["default"]
        quotas = {bucket: found[bucket]["quota"]["ram"] >> 20 for bucket in found}
        assert quotas == {"full": 100, "default": 206, "rest": 206}, quotas
        assert not node.unexpected_log_lines(), node.unexpected_log_lines()


def watch_until_persisted(node, counts):
    """Returns when that many writes of each vBucket are durable."""
    with mcbp.open_bucket(node) as connection:
        for vbucket, count in enumerate(counts):
            connection.call_successfully(
                mcbp.SEQNO_PERSISTENCE, extras=struct.pack(">Q", count), vbucket=vbucket)


def back_up_under_load(name, target, *flags, environment=None, tool_flags=()):
    """Backs up while writers write, restores, and compares with what the writers know."""
    with Node(name, "--vbuckets", str(tool.VBUCKETS), *flags) as node:
        writers = [tool.Writer(node, vbucket) for vbucket in range(8)]
        for writer in writers:
            writer.write(200)
            writer.start()
        persisted = [writer.written for writer in writers]
        watch_until_persisted(node, persisted)
        arguments = tool.backup_arguments(node, target, *tool_flags)
        made = tool.succeed(arguments, environment)
        for writer in writers:
            writer.finish()
        assert made["vbuckets"] >= len(writers), made
        assert not node.unexpected_log_lines(), node.unexpected_log_lines()
    objects = glob.glob(os.path.join(target, "*", "*.couch"))
    if objects:
        status, output = run_to_end(["verify-file", *objects], seconds=60)
        assert status == 0, output
    restored = f"{name}-restored"
    result = tool.succeed(
        ["restore", "--target", target, "--data-dir", tool.work(f"{restored}-data"), "--json",
         *tool_flags], environment)
    assert result["documents"] == made["documents"], (result, made)
    with Node(restored) as node:
        for writer, count in zip(writers, persisted):
            writer.check(node, count)
        assert not node.unexpected_log_lines(), node.unexpected_log_lines()
        # The vBuckets go on from where the backup ends, on a branch of their own.
        node.restart()
        for writer, count in zip(writers, persisted):
            writer.check(node, count)
