"""Backups in an S3-compatible store: moto's server, on loopback."""

import os
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request

import restoring
import tool
from cases import Skip
from node import HOST, Node, free_port

STORE_SECONDS = 60


def declare(cases):
    """Declares the cases."""

    @cases.case
    def an_object_store_takes_a_backup_and_gives_it_back():
        with Store() as store:
            restoring.back_up_under_load(
                "store", "s3://backups/some/where", environment=store.environment,
                tool_flags=("--endpoint", store.url))
            listed = tool.succeed(
                ["backup", "--target", "s3://backups/some/where", "--endpoint", store.url,
                 "--info", "--json"], store.environment)
            assert listed["state"] == "whole", listed

    @cases.case
    def a_store_that_refuses_or_loses_objects_is_told_of():
        target = "s3://backups"
        with Store() as store, Node("lost", "--vbuckets", str(tool.VBUCKETS)) as node:
            flags = ("--endpoint", store.url)
            writer = tool.Writer(node, 2)
            writer.write(40)
            writer.persist()
            tool.fail(tool.backup_arguments(node, "s3://no-such-bucket", *flags), "NoSuchBucket",
                      environment=store.environment)
            tool.fail(tool.backup_arguments(node, target, *flags), "AWS_ACCESS_KEY_ID",
                      environment={"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""})
            made = tool.succeed(tool.backup_arguments(node, target, *flags), store.environment)
            restore = ["restore", "--target", target, *flags,
                       "--data-dir", tool.work("lost-again-data")]
            name = store.names(f"{made['backup']}/2.")[0]
            content = store.ask("GET", name)
            store.ask("DELETE", name)
            tool.fail(restore, "vBucket 2", "missing", environment=store.environment)
            store.ask("PUT", name, content[:-1] + b"x")
            tool.fail(restore, "vBucket 2", "not those", environment=store.environment)
            store.ask("PUT", name, content)
            tool.succeed([*restore, "--json"], store.environment)
        with Node("lost-again") as node:
            writer.check(node, 40)


class Store:
    """A store with the bucket `backups`."""

    environment = {"AWS_ACCESS_KEY_ID": "somebody", "AWS_SECRET_ACCESS_KEY": "secret"}

    def __enter__(self):
        beside = os.path.join(os.path.dirname(sys.executable), "moto_server")
        server = beside if os.path.exists(beside) else shutil.which("moto_server")
        if server is None:
            raise Skip("moto_server is not installed")
        port = free_port()
        self.url = f"http://{HOST}:{port}"
        with open(tool.work("store.log"), "ab") as log:
            self._process = subprocess.Popen(
                [server, "-H", HOST, "-p", str(port)], stdin=subprocess.DEVNULL, stdout=log,
                stderr=log)
        deadline = time.monotonic() + STORE_SECONDS
        while True:
            try:
                self.ask("PUT", "")
                return self
            except urllib.error.URLError:
                if time.monotonic() > deadline:
                    self.__exit__()
                    raise
                time.sleep(0.05)

    def __exit__(self, *_):
        self._process.kill()
        self._process.wait()

    def ask(self, method, name, content=None):
        """One request about an object, or about the bucket if the name is empty."""
        request = urllib.request.Request(
            f"{self.url}/backups/{name}", data=content, method=method,
            headers={"Content-Type": "application/octet-stream"})
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.read()

    def names(self, prefix):
        """Names of the objects that begin so."""
        text = self.ask("GET", f"?list-type=2&prefix={prefix}").decode()
        return [part.split("</Key>")[0] for part in text.split("<Key>")[1:]]
