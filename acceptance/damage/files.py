"""Cases: a vBucket's file is damaged, cut, replaced or gone."""

import functools
import os
import shutil

from cases import expect, expect_equal
from mcbp import open_bucket
from node import HOST, run_to_end
from stored import (BLOCK_SIZE, DAMAGED, Stored, change_byte, newest_header, stopped)


def flip_a_bit(path):
    """In the newest header's body."""
    change_byte(path, newest_header(path) + 40, lambda byte: byte ^ 4)


def change_the_type(path):
    """The newest header is no header by its first byte."""
    change_byte(path, newest_header(path), lambda _: 0)


def cut_at_the_header(path):
    """The newest header is gone."""
    os.truncate(path, newest_header(path))


def cut_in_the_commit(path):
    """The newest header and a part of what it points to are gone."""
    os.truncate(path, newest_header(path) - BLOCK_SIZE)


def cut_to_a_block(path):
    """Next to nothing is left."""
    os.truncate(path, BLOCK_SIZE)


def overwrite(path):
    """Something else has the name."""
    size = os.path.getsize(path)
    with open(path, "r+b") as file:
        file.write(bytes(size))


def make_a_directory(path):
    """What has the name cannot be read."""
    os.remove(path)
    os.mkdir(path)


def make_a_dangling_link(path):
    """What has the name is not there."""
    os.remove(path)
    os.symlink("/nonexistent/file", path)


CHANGES = {
    "a-bit-of-the-newest-header": flip_a_bit,
    "the-type-of-the-newest-header": change_the_type,
    "a-file-cut-at-its-newest-header": cut_at_the_header,
    "a-file-cut-in-its-last-commit": cut_in_the_commit,
    "a-file-cut-to-a-block": cut_to_a_block,
    "a-file-overwritten-with-zeros": overwrite,
    "a-file-removed": os.remove,
    "a-file-that-is-a-directory": make_a_directory,
    "a-file-that-is-a-dangling-link": make_a_dangling_link,
}


def declare(cases):
    """In the order of running."""
    for name, change in CHANGES.items():
        cases.add(f"{name}-takes-one-vbucket",
                  functools.partial(damage_takes_one_vbucket, name, change, by_kill=False))
    for name in ("a-bit-of-the-newest-header", "a-file-that-is-a-directory"):
        cases.add(f"{name}-after-a-kill-takes-one-vbucket",
                  functools.partial(damage_takes_one_vbucket, name, CHANGES[name], by_kill=True))
    cases.case(a_file_removed_after_a_kill_is_missed_or_made_of_the_journal)
    cases.case(an_older_copy_of_a_file_is_not_served)
    cases.case(what_the_journal_has_for_a_damaged_file_is_not_lost)
    cases.case(a_file_that_is_damaged_under_a_node_takes_one_vbucket)
    cases.case(an_order_begins_a_damaged_vbucket_anew)


def damage_takes_one_vbucket(name, change, by_kill):
    ending = "killed" if by_kill else "stopped"
    with stopped(f"{name}-{ending}", by_kill=by_kill) as stored:
        path = stored.file()
        change(path)
        is_there = os.path.lexists(path)
        stored.start_after_damage()
        stored.expect_out_of_service()
        stored.expect_error(f"{DAMAGED}.couch.")
        if is_there:
            is_kept = any(name.startswith(os.path.basename(path))
                          for name in os.listdir(stored.bucket_directory))
            expect(is_kept, "the damaged file, or what is left of it, is not removed")
        # It is so after one more start, too.
        stored.node.stop()
        stored.start_after_damage()
        stored.expect_out_of_service()


def a_file_removed_after_a_kill_is_missed_or_made_of_the_journal():
    with stopped("removed-after-kill", by_kill=True) as stored:
        os.remove(stored.file())
        stored.start_after_damage()
        stored.expect_nothing_wrong()
        stored.expect_others_serve()


def an_older_copy_of_a_file_is_not_served():
    with Stored("older-copy") as stored:
        stored.write(b"first value")
        stored.node.stop()
        copy = os.path.join(stored.node.data_directory, "..", "older-copy.couch")
        shutil.copyfile(stored.file(), copy)
        stored.node.start()
        stored.write(b"second value")
        stored.node.stop()
        shutil.copyfile(copy, stored.file())
        stored.start_after_damage()
        stored.expect_out_of_service()
        stored.expect_error(f"{DAMAGED}.couch.")


def what_the_journal_has_for_a_damaged_file_is_not_lost():
    """A file is damaged while the journal has more for it: the bucket starts, and with the file
    put back as it was everything is there."""
    with Stored("journal-has-more", cycle_milliseconds=60_000) as stored:
        stored.write(b"first value")
        stored.node.restart()
        stored.write(b"second value")
        stored.node.kill()
        whole = os.path.join(stored.node.data_directory, "..", "whole.couch")
        shutil.copyfile(stored.file(), whole)
        flip_a_bit(stored.file())
        stored.start_after_damage()
        stored.expect_out_of_service()
        stored.node.stop()
        shutil.copyfile(whole, stored.file())
        stored.start_after_damage()
        stored.expect_nothing_wrong()
        stored.expect_others_serve()
        with open_bucket(stored.node) as connection:
            damaged = connection.statistics("")["ep_vbuckets_damaged"]
        expect(damaged == "0", f"no vBucket is out of service: {damaged}")


def a_file_that_is_damaged_under_a_node_takes_one_vbucket():
    """What the next commit needs of the file is not there any more."""
    with Stored("under-a-node") as stored:
        stored.write(b"first value")
        stored.wait_for_files()
        overwrite(stored.file())
        expect(stored.write_until_refused(), "writes are refused once a commit has met the damage")
        stored.expect_error(f"{DAMAGED}.couch.")
        stored.expect_others_serve()
        stored.expect_nothing_wrong()


def an_order_begins_a_damaged_vbucket_anew():
    """Without `--confirm` it says what is lost, and changes nothing."""
    with stopped("anew") as stored:
        path = stored.file()
        flip_a_bit(path)
        stored.start_after_damage()
        order = ["reset-vbucket", str(DAMAGED), "--management",
                 f"http://{HOST}:{stored.node.management_port}", "--user", stored.node.user,
                 "--password", stored.node.password]
        _, output = run_to_end(order)
        expect("loses all of it" in output, f"it says what is lost: {output}")
        stored.expect_out_of_service()
        status, output = run_to_end([*order, "--confirm"])
        expect_equal(status, 0, f"the status, which came with {output}")
        stored.expect_begun_anew()
        kept = [name for name in os.listdir(stored.bucket_directory)
                if name.startswith(os.path.basename(path))]
        expect(kept, "the damaged file is renamed, not removed")
        stored.node.restart()
        stored.expect_begun_anew()
