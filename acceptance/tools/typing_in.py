"""Commands as somebody types them, and the nodes that they are about."""

import os
import re
import subprocess

from cases import expect, expect_equal, work_directory
from node import HOST, Node

COMMAND_SECONDS = 60
# A command in the list of a help text.
NAME = re.compile(r"^  ([a-z][a-z-]*)  ", re.MULTILINE)
# Commands that print data of a node or a directory, and so have it for programs.
WITH_JSON = {
    "get", "set", "delete", "touch", "incr", "scan", "shell", "stats", "timings", "why-slow",
    "hot-keys", "set-param", "set-log-level", "user", "bucket", "collection", "backup", "restore",
    "dump", "verify-file", "doctor", "adopt", "load",
}


class Said:
    """What a command has said, and where."""

    def __init__(self, done):
        self.status, self.bytes = done.returncode, done.stdout
        self.out = done.stdout.decode(errors="replace")
        self.err = done.stderr.decode(errors="replace")


def settee(*words, stdin=b"", status=0, environment=None):
    """Runs a command, which must end with this status; with any, where it is None."""
    variables = {name: value for name, value in os.environ.items()
                 if not name.startswith("SETTEE_")}
    done = subprocess.run(
        [os.environ["SETTEE_BINARY"], *map(str, words)], input=stdin, capture_output=True,
        timeout=COMMAND_SECONDS, env={**variables, **(environment or {})}, check=False)
    said = Said(done)
    if status is not None:
        line = " ".join(map(str, words))
        expect_equal(said.status, status, f"{line}: {said.out} {said.err}")
    return said


class Nodes:
    """The node that most cases share, one for each number of threads."""

    def __init__(self):
        self._nodes = {}

    def of(self, threads):
        """The node with so many front-end threads."""
        if threads not in self._nodes:
            node = Node(f"shared-{threads}", "--vbuckets", "16", "--threads", threads,
                        "--apply-cycle-ms", "100")
            self._nodes[threads] = node.start()
        return self._nodes[threads]

    def end(self):
        """Ends them all."""
        for node in self._nodes.values():
            if node.is_running():
                node.kill()


def place_of(node):
    """The variables that say which node is meant, and who asks."""
    return {"SETTEE_HOST": HOST, "SETTEE_PORT": str(node.port), "SETTEE_USER": node.user,
            "SETTEE_PASSWORD": node.password}


class Typist:
    """Types commands about one node."""

    def __init__(self, node, **others):
        self.environment = {**place_of(node), **others}

    @classmethod
    def of(cls, environment):
        """One whose variables say where."""
        typist = cls.__new__(cls)
        typist.environment = environment
        return typist

    def __call__(self, *words, stdin=b"", status=0):
        return settee(*words, stdin=stdin, status=status, environment=self.environment)


def commands_of(help_text):
    """The names behind `Commands:`, without those that every program has."""
    _, _, listed = help_text.partition("Commands:\n")
    return [name for name in NAME.findall(listed.split("\n\n")[0] + "  ") if name != "help"]


def every_command_has_one_style():
    """Help with examples on standard output, JSON where data is printed, 2 for a wrong word, and
    nothing but complaints on standard error."""
    commands = commands_of(settee("--help").out)
    expect(len(commands) > 30, f"commands: {commands}")
    expect_equal(WITH_JSON - set(commands), set(), "commands that there are not")
    for command in commands:
        said = settee(command, "--help")
        expect_equal(said.err, "", f"{command}: its help is data")
        expect("Examples:" in said.out, f"{command} has examples")
        expect(f"settee {command}" in said.out.split("Examples:")[1], f"{command}: of itself")
        expect("\x1b" not in said.out, f"{command}: no colours but on a terminal")
        if command in WITH_JSON:
            expect("-o, --output" in said.out or "--json" in said.out, f"{command}: no JSON")
        wrong = settee(command, "--no-such-flag", status=2)
        expect_equal(wrong.out, "", f"{command}: complaints are no data")
        expect("--no-such-flag" in wrong.err, f"{command}: {wrong.err}")
    nobody = ["--host", HOST, "--port", "1", "--password", "x"]
    for command in (["get", "a"], ["set", "a", "b"], ["delete", "a"], ["touch", "a", "1"],
                    ["incr", "a"], ["scan"], ["stats"], ["timings"], ["why-slow"], ["hot-keys"],
                    ["top", "--once"], ["shell"], ["set-param", "a", "1"], ["set-log-level"],
                    ["user", "list"], ["bucket", "list"], ["collection", "list"],
                    ["reset-vbucket"], ["backup", "--target", work_directory()]):
        said = settee(*command, *nobody, status=1)
        expect_equal(said.out, "", f"{command}: no data")
        expect(said.err.startswith("settee: ") and said.err.count("\n") == 1,
               f"{command}: one line that says what to do: {said.err}")
        expect("check --host and --port" in said.err, f"{command}: {said.err}")


def pages_and_completions_are_written():
    """A manual page for every command, and what three shells load."""
    directory = os.path.join(work_directory(), "man1")
    settee("man", directory)
    pages = set(os.listdir(directory))
    commands = commands_of(settee("--help").out)
    wanted = {"settee.1"} | {f"settee-{command}.1" for command in commands}
    expect_equal(wanted - pages, set(), "pages that are missing")
    expect("settee-user-set.1" in pages, "commands below commands have pages, too")
    with open(os.path.join(directory, "settee-get.1"), encoding="utf-8") as page:
        text = page.read()
    expect(".TH settee-get 1" in text and "Examples" in text, text[:200])
    for shell in ("bash", "zsh", "fish"):
        script = settee("completions", shell).out
        missing = [command for command in commands if command not in script]
        expect_equal(missing, [], f"commands that {shell} does not complete")
    done = subprocess.run(["bash", "-n"], input=settee("completions", "bash").bytes, check=False)
    expect_equal(done.returncode, 0, "bash reads its script")
