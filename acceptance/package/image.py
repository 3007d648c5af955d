"""The root of the container's image, run in namespaces as a container engine would."""

import os
import signal
import subprocess

from cases import expect, work_directory
from node import free_port

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
ASSEMBLE = os.path.join(ROOT, "packaging", "container", "assemble-root")
# Its processes see a root that is read-only, a volume, and nothing of this machine; with a third
# argument that is not empty, the control groups of a directory, as its root of version 2.
ENTER = """
mount --bind "$1" "$1"
mount --bind "$2" "$1/var/lib/settee"
mount -t proc proc "$1/proc"
mount --rbind /sys "$1/sys"
if [ -n "$3" ]; then
    mount --bind "$3" "$1/sys/fs/cgroup"
    mount --bind "$3/joined" "$1/proc/1/cgroup"
fi
mount -o remount,bind,ro "$1"
shift 3
exec chroot --userspec=1000:1000 "$@"
"""


def assemble():
    """The root of an image with the binary that is tested."""
    root = os.path.join(work_directory(), "image")
    if not os.path.exists(root):
        subprocess.run([ASSEMBLE, os.environ["SETTEE_BINARY"], root], check=True,
                       stdin=subprocess.DEVNULL)
    return root


def size_bytes(root):
    """The bytes of all files below."""
    paths = (os.path.join(directory, name) for directory, _, names in os.walk(root)
             for name in names)
    return sum(os.lstat(path).st_size for path in paths)


class Container:
    """A node in the image, with a volume; stopped as an engine stops it."""

    def __init__(self, name, groups=(), limits=None, **variables):
        self._limits = self._written(name, limits)
        self._joined = "".join(f"echo $$ > {group}/cgroup.procs; " for group in groups)
        self._root = assemble()
        self._volume = os.path.join(work_directory(), f"{name}-volume")
        self.log_path = os.path.join(work_directory(), f"{name}.log")
        self.port, self.management_port = free_port(), free_port()
        self._variables = {
            # As in the build file.
            "SETTEE_DATA_DIR": "/var/lib/settee", "SETTEE_HOST": "0.0.0.0",
            "SETTEE_ADVERTISE": "localhost", "SETTEE_PORT": str(self.port),
            "SETTEE_MANAGEMENT_PORT": str(self.management_port), "SETTEE_JOURNAL_SIZE": "64MiB",
            **variables}
        self.process = None

    @staticmethod
    def _written(name, limits):
        """A directory of these files, as a group's of version 2; of none, no directory."""
        if limits is None:
            return ""
        directory = os.path.join(work_directory(), f"{name}-groups")
        os.makedirs(directory)
        for file, text in {"cgroup.controllers": "cpu memory", "joined": "0::/", **limits}.items():
            with open(os.path.join(directory, file), "w", encoding="ascii") as written:
                written.write(f"{text}\n")
        return directory

    def _command(self, *arguments):
        namespaces = ["unshare", "--mount", "--propagation", "private", "--pid", "--fork",
                      "--kill-child"]
        inside = ["sh", "-euc", ENTER, "enter", self._root, self._volume, self._limits,
                  self._root]
        return ["sh", "-euc", self._joined + 'exec "$0" "$@"', *namespaces, *inside,
                "/usr/bin/settee", *arguments]

    def __enter__(self):
        os.makedirs(self._volume, exist_ok=True)
        os.chmod(self._volume, 0o777)
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(self._command("serve"), env=self._variables_and_path(),
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            # A process that takes another user no longer ends with the one that has started it.
            os.kill(self.node_process_id(), signal.SIGKILL)
            self.process.wait()

    def _variables_and_path(self):
        return {"PATH": os.environ["PATH"], **self._variables}

    def health(self, *flags):
        """Status and words of the image's own check."""
        done = subprocess.run(self._command("health", *flags), env=self._variables_and_path(),
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=30, check=False)
        return done.returncode, done.stdout.decode(errors="replace")

    def node_process_id(self):
        """The node, as this machine counts processes."""
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children",
                  encoding="ascii") as file:
            children = file.read().split()
        expect(children, f"the container has ended: {self.log()[-600:]}")
        return int(children[0])

    def log(self):
        """What the node has said."""
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()
