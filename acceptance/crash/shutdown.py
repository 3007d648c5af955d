"""Cases: an orderly stop, idle and under load."""

import errno
import functools
import socket
import threading
import time

from cases import expect, expect_equal
from files import verify, vbucket_files
from history import History
from mcbp import GET, SET, SUCCESS, ConnectionLost, open_bucket, vbucket_of
from node import HOST, Node
from recovered import read_branches, read_states
from workload import Workload, declare_keys

VBUCKETS = 1024
LOAD_SECONDS = 2
DEMANDING_SECONDS = 0.7
PORT_KILLS = 10


def declare(cases):
    """In the order of running."""
    for function in (stop_under_load_keeps_every_acknowledged_write, stop_when_idle_is_quick,
                     stop_while_starting_is_orderly, log_that_cannot_be_written_stops_nobody):
        cases.case(function)
    for threads in ("1", "4"):
        cases.add(f"a-killed-node-leaves-its-ports-at-once-with-threads-{threads}",
                  functools.partial(a_killed_node_leaves_its_ports, threads))
    name = "where-durability-is-demanded-a-kill-takes-no-plain-write"
    cases.add(name, functools.partial(where_durability_is_demanded, "1"))
    cases.add(f"{name}-with-four-threads", functools.partial(where_durability_is_demanded, "4"))


def a_killed_node_leaves_its_ports(threads):
    """When the process is gone nobody is let in any more, and the next one can have its ports."""
    node = Node(f"ports-{threads}", "--vbuckets", "16", "--threads", threads,
                "--memcached-port", "0", "--tls-port", "0")
    for _ in range(PORT_KILLS):
        with node:
            ports = [node.port, node.management_port, node.tls_port, node.memcached_port]
            connections = [open_bucket(node) for _ in range(8)]
            node.kill()
            for port in ports:
                with socket.socket() as caller, socket.socket() as listener:
                    refusal = caller.connect_ex((HOST, port))
                    expect_equal(refusal, errno.ECONNREFUSED, f"a call at port {port}")
                    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    listener.bind((HOST, port))
                    listener.listen()
            for connection in connections:
                connection.close()


def where_durability_is_demanded(threads):
    """Plain writes of eight clients, none of which asks for durability, up to the kill."""
    acknowledged, few = [], 16
    with Node(f"demanding-{threads}", "--vbuckets", str(few), "--threads", threads,
              "--durability-min-level", "majority_and_persist_on_master") as node:
        def write(client):
            try:
                with open_bucket(node) as connection:
                    for number in range(1_000_000):
                        key = b"%d-%d" % (client, number)
                        answer = connection.call(SET, key=key, extras=bytes(8), value=key,
                                                 vbucket=vbucket_of(key, few))
                        if answer.status == SUCCESS:
                            acknowledged.append(key)
            except ConnectionLost:
                pass
        writers = [threading.Thread(target=write, args=(client,)) for client in range(8)]
        for writer in writers:
            writer.start()
        time.sleep(DEMANDING_SECONDS)
        node.kill()
        for writer in writers:
            writer.join()
        node.start()
        with open_bucket(node) as connection:
            lost = [key for key in acknowledged
                    if connection.call(GET, key=key, vbucket=vbucket_of(key, few)).value != key]
        node.stop()
    expect(len(acknowledged) > 20, f"{len(acknowledged)} were acknowledged")
    print(f"FIGURE a kill took {len(lost)} of {len(acknowledged)} plain writes", flush=True)
    expect_equal(lost, [], "acknowledged writes that are lost")


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
