"""Cases: a backup meets a damaged file."""

import os

from cases import expect, expect_equal
from files import flip_a_bit, overwrite
from mcbp import open_bucket
from node import HOST, run_to_end
from stored import DAMAGED, Stored, stopped


def declare(cases):
    """In the order of running."""
    cases.case(a_backup_does_not_leave_a_damaged_vbucket_out)
    cases.case(a_backup_does_not_switch_the_alarm_off)


def back_up(stored, name):
    """Status and output of a backup."""
    target = os.path.join(stored.node.data_directory, "..", name)
    return run_to_end(["backup", "--target", target, "--spec",
                       f"couchbase://{HOST}:{stored.node.port}", "--username", stored.node.user,
                       "--password", stored.node.password], seconds=60)


def a_backup_does_not_leave_a_damaged_vbucket_out():
    with stopped("left-out") as stored:
        flip_a_bit(stored.file())
        stored.start_after_damage()
        status, output = back_up(stored, "left-out-backup")
        expect(status != 0, f"the backup fails: {output}")
        expect(str(DAMAGED) in output, f"it names the vBucket: {output}")


def a_backup_does_not_switch_the_alarm_off():
    """The file is damaged under the node, and a backup is the first to meet the damage."""
    with Stored("alarm", cycle_milliseconds=600_000) as stored:
        stored.write(b"first value")
        stored.node.restart()
        stored.write(b"second value", range(50))
        overwrite(stored.file())
        status, output = back_up(stored, "alarm-backup")
        expect(status != 0, f"the backup fails: {output}")
        with open_bucket(stored.node) as connection:
            damaged = connection.statistics("")["ep_vbuckets_damaged"]
        expect_equal(damaged, "1", "ep_vbuckets_damaged")
        stored.expect_error(f"{DAMAGED}.couch.")
        expect(stored.write_until_refused(), "writes are refused")
        stored.expect_others_serve()
