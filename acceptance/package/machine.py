"""A machine that systemd has started, in namespaces of this one, with this one's files below it.

Whatever is done to it goes with it.
"""

import os
import shutil
import signal
import subprocess
import time

from cases import Skip, expect, expect_equal, wait_until, work_directory

HERE = os.path.dirname(os.path.abspath(__file__))
BOOT_SECONDS = 60
COMMAND_SECONDS = 240
GROUPS = "/sys/fs/cgroup"


def hierarchies():
    """The directories of control groups that systemd uses."""
    both = [os.path.join(GROUPS, name) for name in ("systemd", "unified")]
    return [path for path in both if os.path.isdir(path)] or [GROUPS]


class Machine:
    """It has the packages of a directory, and is up in the body of a `with`."""

    def __init__(self, name):
        if os.geteuid() != 0:
            raise Skip("only root makes machines")
        if not os.path.exists("/lib/systemd/systemd"):
            raise Skip("there is no systemd")
        self._directory = os.path.join(work_directory(), name)
        self._group = f"settee-{os.getpid()}-{name}"
        self._unshare = None
        self.process_id = None

    def __enter__(self):
        os.makedirs(self._directory)
        groups = [os.path.join(hierarchy, self._group) for hierarchy in hierarchies()]
        for group in groups:
            os.mkdir(group)
        joined = "".join(f"echo $$ > {group}/cgroup.procs; " for group in groups)
        with open(os.path.join(self._directory, "boot.log"), "wb") as log:
            self._unshare = subprocess.Popen(
                ["sh", "-ec", joined + 'exec unshare --mount --propagation private --pid --fork '
                 '--kill-child --net --uts --ipc --cgroup "$0" "$1"',
                 os.path.join(HERE, "boot"), self._directory],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            self._wait_until_up()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _wait_until_up(self):
        path = f"/proc/{self._unshare.pid}/task/{self._unshare.pid}/children"

        def is_up():
            expect(self._unshare.poll() is None, f"no systemd: {self._boot_log()}")
            try:
                with open(path, encoding="ascii") as file:
                    self.process_id = int(file.read().split()[0])
                with open(f"/proc/{self.process_id}/comm", encoding="ascii") as file:
                    if file.read().strip() != "systemd":
                        return False
            except (IndexError, OSError):
                return False
            return self.ask("systemctl is-system-running")[1].strip() in ("running", "degraded")

        wait_until(is_up, BOOT_SECONDS, "the machine is up")
        self.run("ip link set lo up")

    def _boot_log(self):
        with open(os.path.join(self._directory, "boot.log"), encoding="utf-8") as file:
            return file.read()[-600:]

    def __exit__(self, *_):
        # systemd goes with the process that has made its namespaces, and all others go with it.
        self._unshare.kill()
        self._unshare.wait()
        for hierarchy in hierarchies():
            top = os.path.join(hierarchy, self._group)
            deadline = time.monotonic() + 20
            while os.path.isdir(top) and time.monotonic() < deadline:
                for path, _, _ in os.walk(top, topdown=False):
                    try:
                        os.rmdir(path)
                    except OSError:
                        time.sleep(0.05)

    def path(self, path):
        """A file of the machine, as this one sees it."""
        return f"/proc/{self.process_id}/root{path}"

    def read(self, path):
        """The content of a file."""
        with open(self.path(path), encoding="utf-8") as file:
            return file.read()

    def write(self, path, text):
        """Writes a file; directories on its way are made."""
        os.makedirs(os.path.dirname(self.path(path)), exist_ok=True)
        with open(self.path(path), "w", encoding="utf-8") as file:
            file.write(text)

    def bring(self, package):
        """Puts a package where its commands look for it, instead of others."""
        directory = self.path("/root/packages")
        for name in os.listdir(directory):
            os.remove(os.path.join(directory, name))
        shutil.copy(package, directory)

    def ask(self, script, seconds=COMMAND_SECONDS):
        """Runs a script as root beside the packages; its status and its output."""
        enter = ["nsenter", "--target", str(self.process_id), "--mount", "--pid", "--net", "--uts",
                 "--ipc", "--cgroup", "--root", "--wdns=/root/packages"]
        enter += ["env", "-i", f"PATH={os.environ['PATH']}", "HOME=/root", "PAGER=cat",
                  "DEBIAN_FRONTEND=noninteractive"]
        done = subprocess.run([*enter, "sh", "-euc", script], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=seconds,
                              check=False)
        return done.returncode, done.stdout.decode(errors="replace")

    def run(self, script):
        """Runs a script, which must succeed; its output."""
        status, output = self.ask(script)
        expect_equal(status, 0, f"the status of {script!r:.300}, which said {output[-700:]!r}")
        return output

    def property(self, name):
        """What systemd says of the service."""
        return self.run(f"systemctl show settee --property {name} --value").strip()

    def log(self):
        """What the service has said."""
        return self.run("journalctl --unit settee --no-pager --output cat")

    def signal(self, number=signal.SIGKILL):
        """Sends the node's process a signal."""
        self.run(f"kill -{int(number)} {self.property('MainPID')}")
