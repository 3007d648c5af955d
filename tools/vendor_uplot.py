#!/usr/bin/env python3
"""Fetches the console's chart library, uPlot (MIT), from the npm registry: its minified script, its
style and its licence. With `--check` it only says whether the files in the tree are those.

To take another version, change the two constants: `npm view uplot@VERSION dist.integrity`.
"""

import base64
import hashlib
import io
import pathlib
import sys
import tarfile
import urllib.request

VERSION = "1.6.32"
INTEGRITY = ("KIMVnG68zvu5XXUbC4LQEPnhwOxBuLyW1AHtpm6IKTXImkbLgkMy+jabjLgSLMasNuGGzQm/"
             "ep3tOkyTxpiQIw==")
ADDRESS = f"https://registry.npmjs.org/uplot/-/uplot-{VERSION}.tgz"
CONSOLE = pathlib.Path(__file__).resolve().parent.parent / "crates" / "management" / "console"

# Names in the package, and in the tree.
FILES = {
    "package/dist/uPlot.iife.min.js": "uPlot.iife.min.js",
    "package/dist/uPlot.min.css": "uPlot.min.css",
    "package/LICENSE": "uPlot.LICENSE.txt",
}


def fetch():
    """The package's files by their names in the tree."""
    with urllib.request.urlopen(ADDRESS, timeout=60) as answer:
        package = answer.read()
    found = base64.b64encode(hashlib.sha512(package).digest()).decode()
    if found != INTEGRITY:
        sys.exit(f"{ADDRESS} is not what it was: its SHA-512 is {found}; look at what has changed")
    with tarfile.open(fileobj=io.BytesIO(package)) as archive:
        return {own: archive.extractfile(name).read() for name, own in FILES.items()}


def main():
    """Writes the files, or compares them."""
    files = fetch()
    if sys.argv[1:] == ["--check"]:
        others = [name for name, data in files.items() if (CONSOLE / name).read_bytes() != data]
        sys.exit(f"not as in uPlot {VERSION}: {', '.join(others)}" if others else 0)
    for name, data in files.items():
        (CONSOLE / name).write_bytes(data)


main()
