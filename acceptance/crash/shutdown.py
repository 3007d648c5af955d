"""Cases: an orderly stop, idle and under load."""

import time

from cases import expect, expect_equal
from files import verify, vbucket_files
from history import History
from mcbp import SET, open_bucket, vbucket_of
from node import Node
from recovered import read_branches, read_states
from workload import Workload, declare_keys

VBUCKETS = 1024
LOAD_SECONDS = 2


def declare(cases):
    """In the order of running."""
    for function in (stop_under_load_keeps_every_acknowledged_write, stop_when_idle_is_quick,
                     stop_while_starting_is_orderly, log_that_cannot_be_written_stops_nobody):
        cases.case(function)


def stop_under_load_keeps_every_acknowledged_write():
    history = History()
    declare_keys(history, VBUCKETS)
    with Node("shutdown") as node:
        before = read_branches(node, range(VBUCKETS))
        uuids = {vbucket: branch.uuid for vbucket, branch in before.items()}
        load = Workload(node, history, uuids, "shutdown").start()
        time.sleep(LOAD_SECONDS)
        node.stop()
        load.join()
        expect_equal(load.complaints, [], "complaints of the clients")
        files = vbucket_files(node.data_directory)
        expect(files, "there are vBucket files")
        expect_equal(verify(sorted(files)), [], "complaints about the files")
        node.start()
        after = read_branches(node, range(VBUCKETS))
        for vbucket, seqno in history.acknowledged().items():
            expect(after[vbucket].high_seqno >= seqno, f"vBucket {vbucket} has seqno {seqno}")
            expect_equal(after[vbucket].log, before[vbucket].log, "log after an orderly stop")
        for key, state in read_states(node, history.keys).items():
            past = history.keys[key]
            high = after[past.vbucket].high_seqno
            expect(past.may_be(state, high), f"{key}: found {state}, {past.describe(high)}")
        node.stop()
        expect_equal(node.unexpected_log_lines(), [], "lines in the node's log")


def stop_when_idle_is_quick():
    with Node("idle") as node:
        started = time.monotonic()
        node.stop(5)
        expect(time.monotonic() - started < 2, "an idle node stops within 2 s")
        expect_equal(node.unexpected_log_lines(), [], "lines in the node's log")


def stop_while_starting_is_orderly():
    node = Node("starting")
    with node:
        node.stop()
        for delay in (0.02, 0.05, 0.1, 0.2):
            node.spawn()
            time.sleep(delay)
            node.terminate()
            status = node.process.wait(10)
            expect(status in (0, -15), f"a stop after {delay} s ends with {status}")
        node.start()
        node.stop()


def log_that_cannot_be_written_stops_nobody():
    node = Node("mute", "--vbuckets", "16", "--log-level", "debug")
    node.log_path = "/dev/full"
    with node:
        with open_bucket(node) as connection:
            connection.call_successfully(SET, key=b"key", extras=bytes(8), value=b"value",
                                         vbucket=vbucket_of(b"key", 16))
        node.stop()
