"""Cases: the small files beside documents are cut or gone."""

import base64
import functools
import os
import shutil
import urllib.parse
import urllib.request

from cases import expect, expect_equal
from node import HOST, NodeFailed, run_to_end
from stored import Stored

# What documents are in, and what says nothing.
CONTENT = (".couch.", "journal/", "lock", "certificates/", "audit.log")
# Each refusal has one of these, which is what to do.
WAYS_OUT = ("put it back", "from a backup", "moved away", "starts with", "started with")


def declare(cases):
    """In the order of running."""
    for by_kill in (False, True):
        after = "a-kill" if by_kill else "a-stop"
        cases.add(f"what-no-start-takes-the-doctor-calls-ill-behind-{after}",
                  functools.partial(check_all, by_kill))


def check_all(by_kill):
    """Each small file, cut and removed: where the start is refused, it says what to do, and the
    doctor and `--check` find it; what is lost silently the doctor tells."""
    with Stored(f"notes-{by_kill}", cycle_milliseconds=600_000) as stored:
        stored.write(b"first value")
        post(stored.node, "/pools/default/buckets/default", flushEnabled=1)
        post(stored.node, "/pools/default/buckets/default/scopes", name="s1")
        post(stored.node, "/pools/default", clusterName="mine")
        stored.node.restart()
        stored.write(b"second value")
        if by_kill:
            stored.node.kill()
        else:
            stored.node.stop()
        whole = stored.node.data_directory + "-whole"
        shutil.copytree(stored.node.data_directory, whole)
        names = small_files(whole)
        kept = {"bucket.json", "settings.json", "manifest.json", "settee.json", "users.json",
                "own-setup.json", "journal-in-use" if by_kill else "clean-stop"}
        expect(kept <= {os.path.basename(name) for name in names}, f"files to damage: {names}")
        for name in names:
            for how in (cut, os.remove):
                check_damaged(stored, name, how, by_kill)
                shutil.rmtree(stored.node.data_directory)
                shutil.copytree(whole, stored.node.data_directory)
        stored.node.start()
        stored.expect_nothing_wrong()


def post(node, path, **form):
    """A request that must succeed."""
    login = base64.b64encode(f"{node.user}:{node.password}".encode()).decode()
    request = urllib.request.Request(
        f"http://{HOST}:{node.management_port}{path}", method="POST",
        data=urllib.parse.urlencode(form).encode(), headers={"Authorization": f"Basic {login}"})
    with urllib.request.urlopen(request, timeout=10):
        pass


def small_files(directory):
    """Relative paths of all files that no documents are in."""
    found = [os.path.relpath(os.path.join(place, name), directory)
             for place, _, names in os.walk(directory) for name in names]
    return sorted(name for name in found if not any(part in name for part in CONTENT))


def cut(path):
    """To a part of its first line."""
    os.truncate(path, 3)


def check_damaged(stored, name, damage, by_kill):
    """One file, in one way."""
    node = stored.node
    damage(os.path.join(node.data_directory, name))
    what = f"{name}, {damage.__name__}"
    found, told = run_to_end(["doctor", node.data_directory])
    checked, why = run_to_end(node.arguments()[1:] + ["--check"])
    try:
        node.start()
    except NodeFailed as error:
        expect(any(way in str(error) for way in WAYS_OUT), f"{what}: a way out: {error}")
        expect_equal((found, checked), (1, 1), f"{what}: doctor and --check: {told} {why}")
        return
    expect_equal(checked, 0, f"{what}: --check: {why}")
    # The mark of an earlier stop says nothing beside that of the last one.
    is_old = name.endswith("last-stop") and not by_kill
    is_lost = damage is cut or name.endswith(("settee.json", "users.json", "settings.json"))
    if is_lost and not is_old:
        expect_equal(found, 1, f"{what}: the doctor: {told}")
        expect(os.path.basename(name) in told, f"{what}: it names the file: {told}")
    node.kill()
