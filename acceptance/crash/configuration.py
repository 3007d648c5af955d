"""Cases: flags, environment and file say the same things, and the nearer one wins."""

import json
import os
import pty
import subprocess
import time

from cases import expect, expect_equal, wait_until, work_directory
from mcbp import FLUSH, GET_CLUSTER_CONFIG, Connection
from node import HOST, Node, free_port, run_to_end

BUCKET = "orders"
VBUCKETS = 64


def declare(cases):
    """In the order of running."""
    for function in (flags_are_obeyed, environment_is_obeyed, file_is_obeyed,
                     flags_win_over_environment_and_environment_over_file,
                     unknown_setting_in_file_is_refused, wrong_value_is_refused,
                     help_names_every_setting, no_color_is_obeyed):
        cases.case(function)


def settings(name):
    """Settings that differ from every default, for a data directory of their own."""
    directory = os.path.join(work_directory(), f"configured-by-{name}")
    return {
        "data-dir": directory,
        "port": free_port(),
        "management-port": free_port(),
        "memcached-port": free_port(),
        "tls-port": free_port(),
        "management-tls-port": free_port(),
        "ready-file": f"{directory}.ready",
        "memory-quota": "64MiB",
        "bucket": BUCKET,
        "user": "root",
        "password": "secret",
        "vbuckets": VBUCKETS,
        "enable-flush": True,
    }


def as_flags(chosen):
    """A command line."""
    flags = []
    for name, value in chosen.items():
        flags += [f"--{name}"] if value is True else [f"--{name}", str(value)]
    return flags


def as_environment(chosen):
    """Environment variables."""
    return {
        "SETTEE_" + name.upper().replace("-", "_"): "true" if value is True else str(value)
        for name, value in chosen.items()
    }


def as_file(name, chosen):
    """The path of a TOML file."""
    path = os.path.join(work_directory(), f"{name}.toml")
    with open(path, "w", encoding="utf-8") as file:
        for key, value in chosen.items():
            file.write(f"{key} = {json.dumps(value)}\n")
    return path


def expect_obeyed(chosen, flags=(), environment=None):
    """Starts a node with these flags and environment, which must have the chosen settings."""
    log_path = f"{chosen['data-dir']}.log"
    with open(log_path, "wb") as log:
        process = subprocess.Popen(
            [os.environ["SETTEE_BINARY"], "serve", *flags], stdin=subprocess.DEVNULL,
            stdout=log, stderr=log, env={**os.environ, **(environment or {})})
    try:
        ready_file = chosen["ready-file"]
        wait_until(lambda: os.path.exists(ready_file) or process.poll() is not None, 20, "ready")
        with open(log_path, encoding="utf-8") as log:
            expect(process.poll() is None, f"the node runs: {log.read()[-400:]}")
        with open(ready_file, encoding="utf-8") as file:
            check_ready(json.load(file), chosen, process.pid)
        check_bucket(chosen)
        process.terminate()
        expect_equal(process.wait(10), 0, "status after SIGTERM")
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def check_ready(ready, chosen, pid):
    """The ready file says what was chosen."""
    got = {name.replace("_", "-"): value for name, value in ready.items()}
    expect_equal(got.pop("pid"), pid, "pid in the ready file")
    expect_equal(got, {name: chosen[name] for name in got}, "content of the ready file")
    ports = {"port", "management-port", "memcached-port", "tls-port", "management-tls-port"}
    wanted = ports | {"user", "password", "bucket"}
    expect_equal(set(got), wanted, "names in the ready file")


def check_bucket(chosen):
    """Both data ports show the bucket that was chosen."""
    expect(os.path.isdir(chosen["data-dir"]), "the data directory is used")
    with Connection(HOST, chosen["port"]) as connection:
        connection.open_bucket(chosen["user"], chosen["password"], chosen["bucket"])
        config = json.loads(connection.call_successfully(GET_CLUSTER_CONFIG).value)
    expect_equal(config["name"], chosen["bucket"], "name of the bucket")
    vbuckets = len(config["vBucketServerMap"]["vBucketMap"])
    expect_equal(vbuckets, chosen["vbuckets"], "number of vBuckets")
    services = config["nodesExt"][0]["services"]
    for service, port in (("mgmt", "management-port"), ("kvSSL", "tls-port"),
                          ("mgmtSSL", "management-tls-port")):
        expect_equal(services[service], chosen[port], f"{port} in the map")
    with Connection(HOST, chosen["memcached-port"]) as connection:
        connection.call_successfully(FLUSH)


def flags_are_obeyed():
    chosen = settings("flags")
    expect_obeyed(chosen, as_flags(chosen))


def environment_is_obeyed():
    chosen = settings("environment")
    expect_obeyed(chosen, environment=as_environment(chosen))


def file_is_obeyed():
    chosen = settings("file")
    expect_obeyed(chosen, ["--config", as_file("file", chosen)])


def flags_win_over_environment_and_environment_over_file():
    chosen = settings("all")
    file = {**chosen, "bucket": "from-file", "vbuckets": 16, "user": "from-file"}
    environment = {"bucket": "from-environment", "vbuckets": chosen["vbuckets"],
                   "user": chosen["user"]}
    flags = {"bucket": chosen["bucket"]}
    expect_obeyed(chosen, ["--config", as_file("all", file), *as_flags(flags)],
                  as_environment(environment))


def expect_refused(flags, *words):
    """The node ends at once with an error that has these words."""
    started = time.monotonic()
    status, output = run_to_end(["serve", *flags])
    expect(status > 0, f"the status is an error, not {status}: {output}")
    expect(time.monotonic() - started < 5, "a refusal is quick")
    for word in words:
        expect(word in output, f"the message names {word!r}: {output}")
    expect("panicked" not in output, f"an operating error is no bug: {output}")


def unknown_setting_in_file_is_refused():
    chosen = settings("unknown")
    path = as_file("unknown", {**chosen, "memory-quotum": "64MiB"})
    expect_refused(["--config", path], "memory-quotum", path)


def wrong_value_is_refused():
    for name, value in {"memory-quota": "plenty", "port": "70000", "vbuckets": "1000"}.items():
        chosen = {**settings("wrong-value"), name: value}
        expect_refused(as_flags(chosen), name)


def help_names_every_setting():
    status, output = run_to_end(["serve", "--help"])
    expect_equal(status, 0, "status of --help")
    for name in settings("help"):
        expect(f"--{name}" in output, f"--help names --{name}")


def no_color_is_obeyed():
    """On a terminal the log has colours, unless NO_COLOR is set and not empty."""
    for value, is_coloured in ((None, True), ("", True), ("1", False)):
        environment = {name: text for name, text in os.environ.items() if name != "NO_COLOR"}
        if value is not None:
            environment["NO_COLOR"] = value
        node = Node(f"colour-{value}")
        terminal, its_end = pty.openpty()
        process = subprocess.Popen(node.arguments(), stdin=subprocess.DEVNULL, stdout=its_end,
                                   stderr=its_end, env=environment)
        os.close(its_end)
        try:
            said = b""
            while b"took_ms" not in said:
                said += os.read(terminal, 4096)
            expect_equal(b"\x1b[" in said, is_coloured, f"colours with NO_COLOR={value}")
        finally:
            process.kill()
            process.wait()
            os.close(terminal)
