"""What goes wrong, how it is put right, and what may be lost by it."""

import contextlib
import os
import signal
import subprocess
import time

from cases import wait_until
from damage import damage

ALL = (0, 1, 2, 3)
# A node that comes back has of its own vBuckets what was on its disk.
MEMORY_ONLY = (0, 1)
# A replica that is promoted lacks what was not sent to it yet.
NOT_DURABLE = (0,)
NOTHING = ()

# What may be left of a disk that is full, in bytes.
LEFT_WHEN_FULL = 1 << 20


def carry_out(event, chaos):
    """One event, from its beginning until all orders are carried out."""
    EVENTS[event.kind](event, chaos)


def kill(event, chaos):
    """SIGKILL, and a start with the same map."""
    (node,) = event.nodes
    with chaos.losing(MEMORY_ONLY, [node]):
        chaos.order("--kill", node)
        time.sleep(event.seconds / 4)
        chaos.order("--restart", node)
        chaos.catch_up()


def kill_two(event, chaos):
    """SIGKILL of two nodes at once."""
    with chaos.losing(MEMORY_ONLY, event.nodes):
        for node in event.nodes:
            chaos.order("--kill", node)
        time.sleep(event.seconds / 4)
        for node in event.nodes:
            chaos.order("--restart", node)
        chaos.catch_up()


def kill_failover(event, chaos):
    """SIGKILL; the replicas are promoted, and the node is taken in again."""
    (node,) = event.nodes
    with chaos.losing(NOT_DURABLE, [node]):
        chaos.order("--kill", node)
        time.sleep(event.seconds / 4)
        give_up_and_take_in(event, chaos)


def failover(event, chaos):
    """A node that serves is given up, and taken in again."""
    with chaos.losing(NOT_DURABLE, event.nodes):
        give_up_and_take_in(event, chaos)


def pause(event, chaos):
    """A node hangs and goes on."""
    (node,) = event.nodes
    chaos.order("--pause", node)
    time.sleep(event.seconds)
    chaos.order("--resume", node)
    chaos.catch_up()


def pause_failover(event, chaos):
    """A node hangs, is given up, goes on and is taken in again. It may answer reads with what it
    knew until it hears that it was given up."""
    (node,) = event.nodes
    with chaos.losing(NOT_DURABLE, [node]), chaos.reading_the_past([node]):
        chaos.order("--pause", node)
        time.sleep(event.seconds / 2)
        chaos.order("--failover", node)
        time.sleep(event.seconds / 4)
        chaos.order("--resume", node)
        chaos.order("--recover", node)
        chaos.catch_up()


def restart(event, chaos):
    """An orderly stop and a start. Documents in memory alone live on in the replicas."""
    (node,) = event.nodes
    with chaos.losing(NOT_DURABLE if chaos.plan.is_ephemeral else NOTHING, [node]):
        chaos.order("--restart", node)
        chaos.catch_up()


def stop_all(event, chaos):
    """Everything stops in order and starts again."""
    nodes = range(chaos.plan.nodes)
    with chaos.losing(ALL if chaos.plan.is_ephemeral else NOTHING, nodes):
        chaos.stop()
        chaos.cluster.start()
        chaos.catch_up()


def damage_file(event, chaos):
    """A file is damaged while its node is stopped; the node is given up and taken in again."""
    (node,) = event.nodes
    with chaos.losing(NOT_DURABLE, [node]):
        chaos.terminate(node)
        path = damage(chaos.bucket_directory(node), event.damage, event.draw)
        if path is not None:
            chaos.damaged.append((node, path))
            chaos.say(f"{event.damage}: {os.path.basename(path)} of n_{node}")
        chaos.order("--restart", node)
        give_up_and_take_in(event, chaos)


def disk_full(event, chaos):
    """A node's disk is full for a while. It refuses writes and goes on by itself."""
    (node,) = event.nodes
    stuffing = os.path.join(chaos.node_directory(node), "stuffing")
    with open(stuffing, "wb") as file:
        space = os.statvfs(chaos.node_directory(node))
        free = space.f_bavail * space.f_bsize
        with contextlib.suppress(OSError):
            os.posix_fallocate(file.fileno(), 0, max(4096, free - LEFT_WHEN_FULL))
    time.sleep(event.seconds * 2)
    os.remove(stuffing)
    chaos.catch_up()


def give_up_and_take_in(event, chaos):
    """Failover, and recovery after a while."""
    (node,) = event.nodes
    chaos.order("--failover", node)
    time.sleep(event.seconds / 4)
    chaos.order("--recover", node)
    chaos.catch_up()


EVENTS = {
    "kill": kill, "kill-two": kill_two, "kill-failover": kill_failover, "failover": failover,
    "pause": pause, "pause-failover": pause_failover, "restart": restart, "stop-all": stop_all,
    "damage": damage_file, "disk-full": disk_full,
}


def mount_small_disk(directory, size_mib):
    """A file system of its own for a node's data."""
    os.makedirs(directory, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size_mib}m", "tmpfs", directory],
                   check=True, stderr=subprocess.DEVNULL)


def unmount(directory):
    """Takes it away again."""
    subprocess.run(["umount", directory], check=True)


def can_mount(directory):
    """Whether file systems can be mounted here."""
    try:
        mount_small_disk(directory, 1)
    except (OSError, subprocess.CalledProcessError):
        return False
    unmount(directory)
    return True


def end_process(process_id, seconds):
    """SIGTERM, and the wait for the end of a process that is not a child."""
    os.kill(process_id, signal.SIGTERM)

    def is_gone():
        try:
            with open(f"/proc/{process_id}/stat", encoding="utf-8") as file:
                return file.read().rpartition(")")[2].split()[0] == "Z"
        except FileNotFoundError:
            return True

    wait_until(is_gone, seconds, f"process {process_id} ends after SIGTERM")
