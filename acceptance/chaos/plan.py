"""What happens in one round, drawn from its seed: the cluster, the load, and the events."""

import random
from dataclasses import dataclass, field

# Events that lose nothing which a node holds in memory alone, and so fit ephemeral buckets.
EPHEMERAL_EVENTS = ("kill-failover", "pause", "pause-failover", "failover", "restart", "stop-all")
EVENTS = EPHEMERAL_EVENTS + ("kill", "kill-two", "damage", "disk-full")
DAMAGES = ("bit", "cut", "removed", "unreadable")

MIB = 1 << 20
# Bytes of the smallest and the largest document of the filler.
FILLER_BYTES = (2000, 20000)
# Filler's operations a second, for each name; None is as fast as it goes.
FILLER_RATES = {"idle": 0, "light": 300, "heavy": 2000, "flood": None}


@dataclass
class Event:
    """One thing that goes wrong, or is ordered."""

    kind: str
    nodes: list
    seconds: float
    damage: str = ""
    draw: float = 0.0

    def __str__(self):
        aside = f" {self.damage}" if self.damage else ""
        return f"{self.kind}{aside} {','.join(f'n_{node}' for node in self.nodes)}"


@dataclass
class Plan:
    """A round."""

    seed: int
    nodes: int
    replicas: int
    vbuckets: int
    quota_mib: int
    threads: int
    is_ephemeral: bool
    persistence: str
    journal: str
    eviction: str
    filler: str
    filler_expiry_seconds: int
    writers: int
    events: list = field(default_factory=list)

    @property
    def needs_small_disk(self):
        """Whether a node's disk is to become full: it then has a small one of its own."""
        return any(event.kind == "disk-full" for event in self.events)

    @property
    def filler_documents(self):
        """How many documents the filler writes: more than memory holds, unless all must fit."""
        copies = self.quota_mib * MIB * self.nodes / (self.replicas + 1)
        share = 0.25 if self.is_ephemeral or self.needs_small_disk else 1.2
        return int(copies * share / (sum(FILLER_BYTES) / 2))

    def flags(self):
        """Arguments of `settee cluster-run` beside those that say how many of what there are."""
        node = [f"--threads={self.threads}"]
        if self.is_ephemeral:
            node += ["--bucket-type=ephemeral", "--ephemeral-full-policy=fail_new_data"]
        else:
            node += [f"--eviction-policy={self.eviction}"]
        if self.journal == "smallest":
            node += ["--journal-size=64MiB"]
        flags = ["--memory-quota", f"{self.quota_mib}MiB", "--persistence", self.persistence]
        return flags + [f"--node-argument={argument}" for argument in node]

    def __str__(self):
        kind = "ephemeral" if self.is_ephemeral else f"{self.persistence} {self.eviction}"
        journal = f" journal={self.journal}" if self.persistence == "journal" else ""
        events = "; ".join(str(event) for event in self.events)
        return (f"seed {self.seed}: {self.nodes} nodes, {self.replicas} replicas, "
                f"{self.vbuckets} vBuckets, {self.quota_mib} MiB, {self.threads} threads, {kind}"
                f"{journal}, filler {self.filler} x {self.filler_documents}, "
                f"{self.writers} writers: {events}")


def draw(seed, can_mount):
    """The round of a seed. Without the right to mount no disk becomes full."""
    dice = random.Random(f"chaos {seed}")
    nodes = dice.choice((2, 2, 3))
    plan = Plan(
        seed=seed, nodes=nodes, replicas=dice.randint(1, nodes - 1),
        vbuckets=dice.choice((8, 16, 32, 64)), quota_mib=dice.choice((100, 128, 256)),
        threads=dice.choice((1, 4)), is_ephemeral=dice.random() < 0.2,
        persistence=dice.choice(("journal", "journal", "journal", "files")),
        journal=dice.choice(("smallest", "default")), eviction=dice.choice(("value", "full")),
        filler=dice.choice(("idle", "light", "heavy", "flood", "flood")),
        filler_expiry_seconds=dice.choice((0, 0, 10)), writers=dice.randint(8, 12))
    kinds = EPHEMERAL_EVENTS if plan.is_ephemeral else EVENTS
    has_bits_flipped = False
    for _ in range(dice.randint(3, 6)):
        event = Event(dice.choice(kinds), dice.sample(range(nodes), 1), dice.uniform(0.2, 2.0),
                      draw=dice.random())
        if event.kind == "disk-full" and not can_mount:
            event.kind = "pause"
        if event.kind == "kill-two":
            event.nodes = dice.sample(range(nodes), 2)
        if event.kind == "damage":
            event.damage = dice.choice(DAMAGES)
        # A flipped bit may lie in a document that nobody reads until its copy is promoted, and two
        # damages are a majority: from here on nothing is given up, and nothing else is damaged.
        if has_bits_flipped and (event.kind == "damage" or "failover" in event.kind):
            event.kind, event.damage = "pause", ""
        has_bits_flipped |= event.kind == "damage"
        plan.events.append(event)
    return plan
