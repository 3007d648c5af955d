"""What memcached's own tests are not asked for here, and why."""

# Files of tests, as patterns.
FILES = (
    # How memcached is started: its options, its files, its user, signals.
    "00-startup", "daemonize", "misbehave", "issue_67", "item_size_max", "maxconns", "shutdown",
    # Want one protocol by an option: here the first byte of a connection decides.
    "issue_50",
    # Log in: the port asks nobody for a name.
    "ascii-auth", "ascii-auth2", "binary-sasl",
    # TLS, UDP and sockets of Unix, which the port has not.
    "ssl_*", "udp", "unixsocket",
    # Memory in slabs, its limit in megabytes, and what leaves it: here that stays on disk.
    "64bit", "conn-limits", "dash-M", "dyn-maxbytes", "lru", "lru-*", "refhang", "slab*",
    # Flash beside memory, and starts with what was in memory.
    "*extstore*", "restart",
    # The proxy that memcached can be.
    "proxy*",
    # Lines about what the server does, figures of each connection and of prefixes of keys, and
    # the end of connections that say nothing.
    "idle-timeout", "stats-conns", "stats-detail", "watcher*",
    # Wants nothing said to who speaks HTTP; here the client is told, before it is hung up on.
    "malicious-commands",
    # Are about memcached's own files, or passed over by itself.
    "issue_140", "issue_260", "line-lengths", "whitespace",
)

# What is taken out of a file, as patterns that each find something: a test ends there, or its
# assertions have no number that stays.
PASSAGES = {
    "binary": (
        # Figures of prefixes of keys.
        r"^\$mc->stats\('detail on'\);", r"^my %stats = \$mc->stats\('detail dump'\);",
        # Values may have 20 MiB, and one that is too large leaves the old one where it is.
        r'^\{\n    # diag "Too big\.";.*?^\}',
        # How many connections there may be; and nothing is lost where memory is full.
        r"^    is\(1024, \$stats\{'maxconns'\}\);", r"^    is\('on', \$stats\{'evictions'\}\);",
    ),
    # CAS of the client's own.
    "metaget": (r"^subtest '[^\n]* CAS override' => sub \{.*?^\};",),
}

# Assertions that fail, by their numbers.
ASSERTIONS = {
    # Values of more than 1 MiB.
    "getset": {535, 536, 538, 539},
    # Slabs: what was taken for them, what was reclaimed and evicted; turns that were cut short.
    "issue_14": {21}, "issue_163": {4}, "issue_183": {2, 5}, "issue_22": {43, 84}, "issue_42": {11},
    "issue_61": {7},
    # Values of keys that stand in front of one that is too long have been sent.
    "issue_152": {2},
    # Whether a document was read before (`h`).
    "metaget": {120, 122, 125, 126, 127},
    # How many statistics there are, and those of memcached's memory and expired or flushed reads;
    # keys of a class of slabs; how many connections there may be, and that something is evicted;
    # `reset`, behind which counters go on; values of 2 KiB are not too large.
    "stats": {1, 10, 17, 20, 32, 79, 81, *range(86, 89), *range(90, 101), 102, 103, 106,
              *range(111, 114)},
    # `slabs automove`.
    "strtol-testing": {2},
}
