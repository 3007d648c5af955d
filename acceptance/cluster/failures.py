"""Cases: nodes are killed, and the line between them is cut, while durable writes are recorded."""

from cluster_run import Cluster
from linked_nodes import LinkedNodes
from rounds import Kind, wait_until_stopped

# Each costs a start, and a change of roles, three syncs of the disk.
VBUCKETS = 16
# How many of the rounds kill the same node twice.
KILLED_AGAIN = 0.3


def declare(cases, seed, rounds):
    """Every kind of failure, so many times each."""
    for kind in KINDS:
        cases.add(kind.name, lambda kind=kind: kind.run(seed, rounds))


def nodes(name, **options):
    """A cluster of nodes that leave the processors to each other."""
    return Cluster(name, vbuckets=VBUCKETS, flags=["--node-argument=--threads=1"], **options)


def kill_active(one):
    """Two nodes: one is killed, its replicas are promoted, it is taken in again as a replica, and
    sometimes killed again while it catches up."""
    lost = one.number % 2
    replace_by_replica(one, lost)
    if one.random.random() < KILLED_AGAIN:
        one.pause(share=0.2)
        replace_by_replica(one, lost)


def replace_by_replica(one, lost):
    """A node is killed, given up, and taken in again."""
    one.cluster.tell("--kill", lost)
    with one.without_majority():
        one.pause(share=0.5)
        one.cluster.tell("--failover", lost)
        one.reads()
    one.cluster.tell("--recover", lost)


def kill_active_of_three(one):
    """Three nodes, two replicas: durable writes go on without the one that is killed."""
    lost = one.number % 3
    one.cluster.tell("--kill", lost)
    one.pause(share=0.5)
    one.cluster.tell("--failover", lost)
    one.load()
    one.cluster.tell("--recover", lost)


def kill_replica(one):
    """One of two nodes is killed and started again with the same map, sometimes killed again while
    it catches up."""
    lost = one.number % 2
    one.cluster.tell("--kill", lost)
    with one.without_majority():
        one.reads()
    one.cluster.tell("--restart", lost)
    if one.random.random() < KILLED_AGAIN:
        one.pause(share=0.2)
        one.cluster.tell("--kill", lost)
        one.cluster.tell("--restart", lost)


def stop_replica(one):
    """A node hangs and goes on: what its stream had under way arrives."""
    hanging = one.number % 2
    one.cluster.tell("--pause", hanging)
    wait_until_stopped(one.cluster.process_id(hanging))
    with one.without_majority():
        pass
    one.cluster.tell("--resume", hanging)


def kill_both(one):
    """Both nodes are killed and started again: what an active node had on disk is there."""
    for node in shuffled(one.random):
        one.cluster.tell("--kill", node)
        one.pause(share=0.1)
    for node in shuffled(one.random):
        one.cluster.tell("--restart", node)
        one.pause(share=0.1)


def cut_line(one):
    """The nodes do not reach each other for a while, with lines that are closed or silent."""
    one.cluster.cut(silent=one.number % 2 == 1)
    with one.without_majority():
        one.reads()
    one.cluster.heal()


def shuffled(random):
    """Both nodes in a random order."""
    return random.sample([0, 1], 2)


# What a node that is started again had acknowledged without its disk is not promised.
ON_DISK = (2, 3)

KINDS = (
    Kind("killed-active-loses-nothing", lambda: nodes("two-killed"), kill_active),
    Kind("killed-active-of-three-is-replaced",
         lambda: nodes("three-killed", nodes=3, replicas=2), kill_active_of_three),
    Kind("killed-replica-comes-back", lambda: nodes("replica-killed"), kill_replica, ON_DISK),
    Kind("hanging-replica-makes-writes-ambiguous", lambda: nodes("replica-hangs"), stop_replica),
    Kind("both-nodes-come-back", lambda: nodes("both-killed"), kill_both, ON_DISK),
    Kind("cut-line-heals", lambda: LinkedNodes("line-cut", VBUCKETS), cut_line),
)
