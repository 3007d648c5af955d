"""A node under test: its process, its ports and its log."""

import json
import os
import random
import re
import signal
import socket
import subprocess
import time

HOST = "127.0.0.1"
# Of nodes whose flags say nothing of it.
VBUCKETS = int(os.environ.get("VBUCKETS", "1024"))
READY_SECONDS = 30
# A stop makes hundreds of syncs, and on a busy disk one of them may take seconds.
STOP_SECONDS = 60

# Below the range from which the system takes ports for outgoing connections: a client that keeps
# connecting to the port of a stopped node must not be given that very port for itself.
PORTS = range(20000, 32000)

_given_ports = set()

COLOUR = re.compile(r"\x1b\[[0-9;]*m")
UNEXPECTED_LOG_LINE = re.compile(r"\bERROR\b|panicked at")


class NodeFailed(Exception):
    """The node did not start, or did not stop, as it should; carries the end of its log."""


def free_port():
    """A port on which nobody listens now, and that nobody has been given here before: who has one
    may listen to it later."""
    while True:
        port = random.choice(PORTS)
        if port in _given_ports:
            continue
        with socket.socket() as probe:
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
        _given_ports.add(port)
        return port


class Node:
    """One node with a data directory and a log of its own below the suite's work directory.

    Its ports stay the same over restarts.
    """

    def __init__(self, name, *flags, user="Administrator", password="password"):
        self.name = name
        self.user = user
        self.password = password
        work = os.environ["WORK_DIR"]
        self.data_directory = os.path.join(work, f"{name}-data")
        self.log_path = os.path.join(work, f"{name}.log")
        self.ready_path = os.path.join(work, f"{name}.ready")
        self.port = free_port()
        self.management_port = free_port()
        self.memcached_port = None
        self.tls_port = self.management_tls_port = None
        self.process = None
        self._flags = list(flags)

    def __enter__(self):
        return self.start()

    def __exit__(self, kind, error, trace):
        if self.is_running():
            self.kill()

    @property
    def connection_string(self):
        """For SDKs."""
        return f"couchbase://{HOST}:{self.port}"

    def arguments(self):
        """The command line of the node."""
        arguments = [
            os.environ["SETTEE_BINARY"], "serve",
            "--data-dir", self.data_directory,
            "--port", str(self.port),
            "--management-port", str(self.management_port),
            "--user", self.user,
            "--password", self.password,
            "--ready-file", self.ready_path,
        ]
        is_said = any(flag.startswith("--vbuckets") for flag in self._flags)
        if "VBUCKETS" in os.environ and not is_said:
            arguments += ["--vbuckets", str(VBUCKETS)]
        return arguments + self._flags

    def spawn(self):
        """Starts the process without waiting for it to serve."""
        assert not self.is_running(), "the node runs already"
        if os.path.exists(self.ready_path):
            os.remove(self.ready_path)
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                self.arguments(), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        return self

    def start(self):
        """Starts the process and returns when it serves."""
        self.spawn()
        return self.wait_until_ready()

    def wait_until_ready(self):
        """Waits for the ready file of the process that was spawned."""
        deadline = time.monotonic() + READY_SECONDS
        while True:
            ready = self._read_ready_file()
            if ready is not None and ready["pid"] == self.process.pid:
                break
            if self.process.poll() is not None:
                raise NodeFailed(f"the node ended with {self.process.returncode}: {self.log_end()}")
            if time.monotonic() > deadline:
                self.kill()
                raise NodeFailed(f"not ready within {READY_SECONDS} s: {self.log_end()}")
            time.sleep(0.01)
        self.memcached_port = ready["memcached_port"]
        self.tls_port = ready.get("tls_port")
        self.management_tls_port = ready.get("management_tls_port")
        return self

    def _read_ready_file(self):
        try:
            with open(self.ready_path, encoding="utf-8") as file:
                return json.load(file)
        except (FileNotFoundError, json.JSONDecodeError):
            return None

    def is_running(self):
        """Whether the process lives."""
        return self.process is not None and self.process.poll() is None

    def terminate(self):
        """Asks the process to stop (SIGTERM) without waiting."""
        self.process.send_signal(signal.SIGTERM)

    def stop(self, seconds=STOP_SECONDS):
        """Asks the process to stop; it must end with status 0 in time."""
        self.terminate()
        try:
            status = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            raise NodeFailed(f"SIGTERM did not stop the node within {seconds} s") from None
        if status != 0:
            raise NodeFailed(f"SIGTERM ended the node with {status}: {self.log_end()}")

    def kill(self):
        """Ends the process at once (SIGKILL)."""
        self.process.kill()
        self.process.wait()

    def restart(self):
        """Stops the process in order and starts it on the same ports."""
        self.stop()
        return self.start()

    def log_end(self, size=800):
        """The last bytes of the log."""
        with open(self.log_path, "rb") as log:
            log.seek(0, os.SEEK_END)
            log.seek(max(0, log.tell() - size))
            return log.read().decode(errors="replace")

    def unexpected_log_lines(self, expected=()):
        """Lines of the log that tell of an error, without those that match an expected one."""
        with open(self.log_path, encoding="utf-8", errors="replace") as log:
            lines = [COLOUR.sub("", line).strip() for line in log]
            return [
                line for line in lines
                if UNEXPECTED_LOG_LINE.search(line)
                and not any(re.search(pattern, line) for pattern in expected)
            ]


def run_to_end(arguments, environment=None, seconds=10):
    """Runs the node's binary, which must end by itself; returns status and output."""
    try:
        done = subprocess.run(
            [os.environ["SETTEE_BINARY"], *arguments], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=seconds,
            env={**os.environ, **(environment or {})}, check=False)
    except subprocess.TimeoutExpired:
        raise NodeFailed(f"{arguments} did not end within {seconds} s") from None
    return done.returncode, done.stdout.decode(errors="replace")
