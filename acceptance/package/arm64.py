"""The package of arm64 that `cargo xtask package --target aarch64-unknown-linux-gnu` has made, and
the root of the image beside it. Building them takes a release build, which is left to its caller."""

import glob
import os
import shutil
import subprocess

from cases import LeftOut, Skip, expect, expect_equal, wait_until, work_directory
from node import free_port

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
MADE_BY = "cargo xtask package --target aarch64-unknown-linux-gnu"
EMULATOR = "qemu-aarch64-static"
# Where Debian's cross compiler has the libraries of such machines.
LIBRARIES = "/usr/aarch64-linux-gnu"
# ELF headers' e_machine.
AARCH64 = 183
# An emulated node is many times slower.
SECONDS = 120


def directory():
    """Where `cargo xtask package` puts what it makes."""
    target = os.environ.get("CARGO_TARGET_DIR", os.path.join(ROOT, "target"))
    return os.path.join(os.path.abspath(target), "package")


def package():
    """The newest package."""
    found = glob.glob(os.path.join(directory(), "settee_*_arm64.deb"))
    if not found:
        raise LeftOut(f"there is no package of it; {MADE_BY} makes one, by a release build")
    return max(found, key=os.path.getmtime)


def field(name):
    """What the package says of itself."""
    said = subprocess.run(["dpkg-deb", "--field", package(), name], check=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    return said.stdout.strip()


def machines(root):
    """The machines of all programs and libraries below a directory, by their paths."""
    found = {}
    for place, _, names in os.walk(root):
        for path in (os.path.join(place, name) for name in names):
            if os.path.isfile(path) and not os.path.islink(path):
                with open(path, "rb") as file:
                    head = file.read(20)
                if head[:4] == b"\x7fELF":
                    found[os.path.relpath(path, root)] = int.from_bytes(head[18:20], "little")
    return found


def unpacked(name):
    """The package's files, in a directory of their own."""
    root = os.path.join(work_directory(), name)
    subprocess.run(["dpkg-deb", "--extract", package(), root], check=True,
                   stdin=subprocess.DEVNULL)
    return root


def files_are_of_the_machine():
    """Those of the package, and those of the image that was made with it."""
    expect_equal(field("Architecture"), "arm64", "the machine that the package is for")
    inside = machines(unpacked("arm64-files"))
    expect_equal(inside, {"usr/bin/settee": AARCH64}, "machines of what is in the package")
    image = machines(os.path.join(directory(), "image-arm64"))
    expect("usr/bin/settee" in image, f"the image has the node: {sorted(image)}")
    expect_equal(set(image.values()), {AARCH64}, "machines of what is in the image")


def node_starts(threads):
    """By an emulator, with a client of this machine."""
    root = unpacked(f"arm64-node-{threads}")
    if not shutil.which(EMULATOR) or not os.path.isdir(LIBRARIES):
        raise Skip(f"it takes {EMULATOR} (qemu-user-static) and {LIBRARIES} (libc6-arm64-cross)")
    emulated = [EMULATOR, "-L", LIBRARIES, os.path.join(root, "usr", "bin", "settee")]
    version = subprocess.run([*emulated, "--version"], check=True, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, text=True).stdout
    expect(field("Version") in version, f"the node's version: {version}")
    port, management_port = str(free_port()), str(free_port())
    place = {"PATH": os.environ["PATH"], "SETTEE_PORT": port, "SETTEE_PASSWORD": "password"}
    log_path = os.path.join(work_directory(), f"arm64-{threads}.log")
    with open(log_path, "wb") as log:
        node = subprocess.Popen(
            [*emulated, "serve", "--data-dir", os.path.join(root, "data"), "--vbuckets", "16",
             "--threads", threads, "--journal-size", "64MiB", "--memory-quota", "256MiB",
             "--management-port", management_port],
            env=place, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        def typed(*words):
            return subprocess.run([os.environ["SETTEE_BINARY"], *words], env=place, check=False,
                                  stdin=subprocess.DEVNULL, capture_output=True)
        wait_until(lambda: node.poll() is not None
                   or typed("set", "sofa", "3 seats").returncode == 0, SECONDS, "it serves")
        expect_equal(node.poll(), None, f"the status of a node whose log is {log_path}")
        expect_equal(typed("get", "sofa").stdout, b"3 seats", "the document")
        expect_equal(typed("health", "--management-port", management_port).returncode, 0, "health")
        node.terminate()
        expect_equal(node.wait(SECONDS), 0, "the status of its end")
    finally:
        if node.poll() is None:
            node.kill()
            node.wait()
