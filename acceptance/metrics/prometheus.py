"""A Prometheus that reads a node."""

import base64
import json
import os
import subprocess
import urllib.parse
import urllib.request

from cases import wait_until
from node import HOST, free_port

STOP_SECONDS = 10


def ask_as(node, path, password=None):
    """What the REST port answers to the administrator, or to somebody who says another password."""
    login = base64.b64encode(f"{node.user}:{password or node.password}".encode()).decode()
    request = urllib.request.Request(f"http://{HOST}:{node.management_port}{path}",
                                     headers={"Authorization": f"Basic {login}"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return answer.read().decode()


class Prometheus:
    """The process, with the alert rules' job names: one job a path, read every second."""

    def __init__(self, directory, node, paths):
        self._directory = directory
        self._port = free_port()
        self._process = None
        os.makedirs(directory)
        jobs = [{
            # The first path is the job that the rules name.
            "job_name": "settee" if path == paths[0] else f"settee{path}",
            "metrics_path": path,
            "basic_auth": {"username": node.user, "password": node.password},
            "static_configs": [{"targets": [f"{HOST}:{node.management_port}"],
                                "labels": {"cluster": "main"}}],
        } for path in paths]
        # YAML takes JSON.
        with open(self._path("prometheus.yml"), "w", encoding="utf-8") as file:
            json.dump({"global": {"scrape_interval": "1s"}, "scrape_configs": jobs}, file)

    def _path(self, name):
        return os.path.join(self._directory, name)

    def __enter__(self):
        with open(self._path("log"), "ab") as log:
            self._process = subprocess.Popen(
                ["prometheus", f"--config.file={self._path('prometheus.yml')}",
                 f"--storage.tsdb.path={self._path('data')}",
                 f"--web.listen-address={HOST}:{self._port}"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wait_until(self._is_ready, 60, "Prometheus is ready")
        return self

    def __exit__(self, kind, error, trace):
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _is_ready(self):
        try:
            with urllib.request.urlopen(f"http://{HOST}:{self._port}/-/ready", timeout=10):
                return True
        except OSError:
            return False

    def series(self, expression):
        """What the expression finds now."""
        query = urllib.parse.urlencode({"query": expression})
        url = f"http://{HOST}:{self._port}/api/v1/query?{query}"
        with urllib.request.urlopen(url, timeout=30) as answer:
            return json.load(answer)["data"]["result"]
