"""Cases: the journal is damaged, ends early, is another one or is gone."""

import os
import shutil

from cases import expect
from node import NodeFailed
from stored import BLOCK_SIZE, DOCUMENTS, Stored, change_byte

# Nothing of the journal is in files before a case wants it there.
LAZY_MILLISECONDS = 600_000
PIECES = 4


def declare(cases):
    """In the order of running."""
    for function in (
            a_journal_that_is_gone_after_a_kill_is_missed,
            a_journal_behind_a_dangling_link_is_missed,
            a_journal_that_is_gone_with_a_damaged_note_is_missed,
            a_journal_that_ends_before_the_files_is_not_gone_on_with,
            a_damaged_group_is_not_taken_for_the_end,
            a_damaged_last_group_is_told,
            a_bucket_without_its_description_is_no_other_bucket):
        cases.case(function)


def segments(stored):
    """Paths of the journal's segments in use, the newest last."""
    directory = stored.journal_directory
    return [os.path.join(directory, name) for name in sorted(os.listdir(directory))
            if name.startswith("j.")]


def end_of_content(path):
    """Where the last block that is not all zeros ends, in bytes."""
    with open(path, "rb") as file:
        content = file.read()
    return -(-len(content.rstrip(b"\0")) // BLOCK_SIZE) * BLOCK_SIZE


def expect_refused_start(stored, *words):
    """The node does not start and says these words; nothing was served."""
    try:
        stored.node.start()
    except NodeFailed as error:
        for word in words:
            expect(word in str(error), f"the message has {word!r}: {error}")
        return
    stored.expect_nothing_wrong()
    stored.expect_others_serve()
    raise AssertionError("the node starts")


def killed_with_a_journal(name):
    """A node whose files lack what its journal has: several groups of much the same size, since each
    piece of the documents is durable before the next is written."""
    stored = Stored(name, cycle_milliseconds=LAZY_MILLISECONDS)
    with stored:
        stored.write(b"first value")
        stored.node.restart()
        for piece in range(PIECES):
            stored.write(b"second value", range(piece, DOCUMENTS, PIECES))
        stored.node.kill()
    return stored


def a_journal_that_is_gone_after_a_kill_is_missed():
    """The mount point without its file system."""
    expect_missed("gone", os.mkdir, os.rmdir, "--accept-lost-journal")


def a_journal_behind_a_dangling_link_is_missed():
    expect_missed("dangling", lambda path: os.symlink("/nonexistent/journal", path), os.remove)


def a_journal_that_is_gone_with_a_damaged_note_is_missed():
    """Whatever the note says: where it is, there was a journal."""
    stored = killed_with_a_journal("note")
    os.rename(stored.journal_directory, stored.journal_directory + "-aside")
    change_byte(os.path.join(stored.bucket_directory, "journal-in-use"), 20, lambda byte: byte ^ 1)
    expect_refused_start(stored, stored.journal_directory, "--accept-lost-journal")


def expect_missed(name, replace, undo, *words):
    """With something else in the journal's place there is no start, which says these words; with
    the journal back everything is there."""
    stored = killed_with_a_journal(name)
    aside = stored.journal_directory + "-aside"
    os.rename(stored.journal_directory, aside)
    replace(stored.journal_directory)
    expect_refused_start(stored, stored.journal_directory, *words)
    undo(stored.journal_directory)
    os.rename(aside, stored.journal_directory)
    with stored:
        stored.expect_nothing_wrong()
        stored.expect_others_serve()


def a_journal_that_ends_before_the_files_is_not_gone_on_with():
    """A copy of a directory whose journal is older than its files: what is written and persisted
    after a start is there after the next crash."""
    with Stored("ends-early") as stored:
        stored.write(b"first value")
        copy = stored.journal_directory + "-older"
        shutil.copytree(stored.journal_directory, copy)
        stored.write(b"second value")
        stored.wait_for_files()
        stored.node.kill()
        shutil.rmtree(stored.journal_directory)
        os.rename(copy, stored.journal_directory)
        try:
            stored.start_after_damage()
        except NodeFailed as error:
            expect("journal" in str(error), f"it is told: {error}")
            return
        stored.expect_error("journal")
        stored.write(b"third value", range(5))
        stored.node.kill()
        stored.start_after_damage()
        stored.expect_nothing_wrong()
        stored.expect_others_serve()


def a_damaged_group_is_not_taken_for_the_end():
    """One bit in the middle of what the journal has, and more behind it."""
    stored = killed_with_a_journal("group")
    newest = segments(stored)[-1]
    middle = end_of_content(newest) // 2 // BLOCK_SIZE * BLOCK_SIZE
    change_byte(newest, middle + 100, lambda byte: byte ^ 1)
    expect_refused_start(stored, os.path.basename(newest), "corrupt")


def a_damaged_last_group_is_told():
    """Nothing proves that the last group was acknowledged; that it is not whole is said."""
    stored = killed_with_a_journal("last-group")
    newest = segments(stored)[-1]
    change_byte(newest, end_of_content(newest) - BLOCK_SIZE + 100, lambda byte: byte ^ 1)
    log_size = os.path.getsize(stored.node.log_path)
    try:
        with stored:
            with open(stored.node.log_path, "rb") as log:
                log.seek(log_size)
                told = log.read().decode(errors="replace")
    except NodeFailed as error:
        told = str(error)
    expect(os.path.basename(newest) in told, f"the segment is named: {told}")


def a_bucket_without_its_description_is_no_other_bucket():
    """How many vBuckets there are stands in `bucket.json` alone: another number would have every
    document looked for elsewhere."""
    stored = killed_with_a_journal("description")
    path = os.path.join(stored.bucket_directory, "bucket.json")
    aside = path + "-aside"
    os.rename(path, aside)
    expect_refused_start(stored, "bucket.json: is missing", "put it back")
    os.rename(aside, path)
    with stored:
        stored.expect_nothing_wrong()
        stored.expect_others_serve()
