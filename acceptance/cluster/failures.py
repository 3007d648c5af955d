"""Cases: nodes are killed, and the line between them is cut, while durable writes are recorded."""

import time

from cases import expect, expect_equal
from cluster_run import Cluster
from linked_nodes import LinkedNodes
from recording import Clients

LOAD_SECONDS = 1.5
SETTLE_SECONDS = 30


def declare(cases, random, rounds):
    """Every kind of failure, so many times each."""
    for function in (killed_active_loses_nothing, killed_active_of_three_is_replaced,
                     killed_replica_comes_back, hanging_replica_makes_writes_ambiguous,
                     both_nodes_come_back, cut_line_heals):
        name = function.__name__.replace("_", "-")
        cases.add(name, lambda function=function: function(random, rounds))


def settle(clients):
    """What the clients have seen must be what the rules allow."""
    clients.check_all(SETTLE_SECONDS)
    expect_equal(clients.problems, [], "what should not have happened")
    expect(clients.acknowledged_count > 0 and clients.read_count > 0, "the clients did something")


def load(random):
    """Time for the clients, ending at a random moment."""
    time.sleep(LOAD_SECONDS * (0.5 + random.random()))


def killed_active_loses_nothing(random, rounds):
    """Two nodes: kill one, promote its replicas, take it in again as a replica."""
    with Cluster("two-killed", flags=["--node-argument=--threads=1"]) as cluster:
        for number in range(rounds):
            lost = number % 2
            with Clients(cluster, prefix=f"round-{number}") as clients:
                load(random)
                cluster.tell("--kill", lost)
                cluster.tell("--failover", lost)
                load(random)
                cluster.tell("--recover", lost)
                load(random)
            settle(clients)
            cluster.wait_until_replicated()
        expect_equal(cluster.unexpected_log_lines(), [], "lines in the nodes' logs")


def killed_active_of_three_is_replaced(random, rounds):
    """Three nodes, two replicas: durable writes go on without the one that is killed."""
    flags = ["--node-argument=--threads=1"]
    with Cluster("three-killed", nodes=3, replicas=2, flags=flags) as cluster:
        for number in range(rounds):
            lost = number % 3
            with Clients(cluster, prefix=f"round-{number}") as clients:
                load(random)
                cluster.tell("--kill", lost)
                cluster.tell("--failover", lost)
                before = clients.acknowledged_count
                load(random)
                expect(clients.acknowledged_count > before, "durable writes go on with two nodes")
                cluster.tell("--recover", lost)
                load(random)
            settle(clients)
            cluster.wait_until_replicated()
        expect_equal(cluster.unexpected_log_lines(), [], "lines in the nodes' logs")


def killed_replica_comes_back(random, rounds):
    """A node is killed and started again with the same map: the other one's writes go on."""
    with Cluster("replica-killed", flags=["--node-argument=--threads=1"]) as cluster:
        for number in range(rounds):
            lost = number % 2
            # What the killed node had acknowledged at a level without its disk is not promised.
            with Clients(cluster, levels=(2, 3), prefix=f"round-{number}") as clients:
                load(random)
                cluster.tell("--kill", lost)
                load(random)
                cluster.tell("--restart", lost)
                load(random)
            settle(clients)
            cluster.wait_until_replicated()
        expect_equal(cluster.unexpected_log_lines(), [], "lines in the nodes' logs")


def hanging_replica_makes_writes_ambiguous(random, rounds):
    """A node that hangs and goes on: what its stream had under way arrives."""
    with Cluster("replica-hangs", flags=["--node-argument=--threads=1"]) as cluster:
        for number in range(rounds):
            with Clients(cluster, prefix=f"round-{number}") as clients:
                load(random)
                cluster.tell("--pause", number % 2)
                load(random)
                cluster.tell("--resume", number % 2)
                load(random)
            settle(clients)
            cluster.wait_until_replicated()
        expect_equal(cluster.unexpected_log_lines(), [], "lines in the nodes' logs")


def both_nodes_come_back(random, rounds):
    """Both nodes are killed and started again: what a majority had on disk is there."""
    with Cluster("both-killed", flags=["--node-argument=--threads=1"]) as cluster:
        for number in range(rounds):
            with Clients(cluster, levels=(3,), prefix=f"round-{number}") as clients:
                load(random)
                cluster.tell("--kill", 0)
                cluster.tell("--kill", 1)
                cluster.tell("--restart", 0)
                cluster.tell("--restart", 1)
                load(random)
            settle(clients)
            cluster.wait_until_replicated()
        expect_equal(cluster.unexpected_log_lines(), [], "lines in the nodes' logs")


def cut_line_heals(random, rounds):
    """The nodes do not reach each other for a while, with lines that are closed or silent."""
    with LinkedNodes("line-cut") as cluster:
        for number in range(rounds):
            with Clients(cluster, prefix=f"round-{number}") as clients:
                load(random)
                cluster.cut(silent=number % 2 == 1)
                load(random)
                cluster.heal()
                load(random)
            settle(clients)
            cluster.wait_until_replicated()
        expect_equal(cluster.unexpected_log_lines(), [], "lines in the nodes' logs")
