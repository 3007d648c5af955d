"""What modules for containers ask a container engine, answered by processes of this machine.

A container is a node in a namespace of networks: it listens where a node in an image does, and its
ports are mapped to free ones of this machine. Requests are those of the Docker Engine's API that
the modules make; others are answered 404, and kept.
"""

import itertools
import json
import os
import re
import signal
import socket
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from cases import Skip, work_directory
from node import HOST, free_port

STOP_SECONDS = 20
API_VERSION = "1.44"
IMAGE = {"Id": "sha256:5e77ee", "RepoTags": ["settee:0.1.0"], "Architecture": "amd64",
         "Os": "linux", "Config": {"Env": [], "Labels": {}, "ExposedPorts": {}}}
VERSION = {"Version": "27.0.0", "ApiVersion": API_VERSION, "MinAPIVersion": "1.24",
           "Os": "linux", "Arch": "amd64"}
INFORMATION = {"ID": "settee", "ServerVersion": "27.0.0", "OperatingSystem": "linux",
               "OSType": "linux", "Architecture": "x86_64", "NCPU": 2, "MemTotal": 1 << 34,
               "Labels": [], "Driver": "none"}
# Containers of all engines have names and directories of their own.
NUMBERS = itertools.count(1)
NETWORK = {"Name": "bridge", "Id": "b41d6e", "Driver": "bridge", "Scope": "local"}


def forward(source, target):
    """Passes bytes on until there are no more."""
    try:
        while data := source.recv(1 << 16):
            target.sendall(data)
    except OSError:
        pass
    for end, how in ((source, socket.SHUT_RD), (target, socket.SHUT_WR)):
        try:
            end.shutdown(how)
        except OSError:
            pass


class MappedPort:
    """A port of this machine whose connections lead to one of a container."""

    def __init__(self, address, port):
        self.number = free_port()
        self._target = (address, port)
        self._listener = socket.create_server((HOST, self.number))
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                node = socket.create_connection(self._target, timeout=5)
            except OSError:
                client.close()
                continue
            node.settimeout(None)
            for source, target in ((client, node), (node, client)):
                threading.Thread(target=forward, args=(source, target), daemon=True).start()

    def close(self):
        """Listens no longer."""
        self._listener.close()


class Network:
    """A namespace with an address that this machine reaches."""

    def __init__(self, number):
        if os.geteuid() != 0:
            raise Skip("only root makes namespaces")
        self.name = f"settee-{os.getpid()}-{number}"
        subnet = f"10.{64 + os.getpid() % 64}.{number % 256}"
        self.gateway, self.address = f"{subnet}.1", f"{subnet}.2"
        self._link = f"se{os.getpid() % 1_000_000}n{number}"
        inside = ["ip", "-n", self.name]
        for command in (
                ["ip", "netns", "add", self.name],
                ["ip", "link", "add", self._link, "type", "veth", "peer", "name", "eth0", "netns",
                 self.name],
                ["ip", "address", "add", f"{self.gateway}/24", "dev", self._link],
                ["ip", "link", "set", self._link, "up"],
                [*inside, "address", "add", f"{self.address}/24", "dev", "eth0"],
                [*inside, "link", "set", "eth0", "up"], [*inside, "link", "set", "lo", "up"]):
            subprocess.run(command, check=True, stdin=subprocess.DEVNULL)

    def remove(self):
        """Removes it, and the link with it."""
        for command in (["ip", "netns", "delete", self.name],
                        ["ip", "link", "delete", self._link]):
            subprocess.run(command, check=False, stdin=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)


class Container:
    """A node that was asked for, and how it is reached."""

    def __init__(self, number, wanted, threads):
        self.name = f"{number:064x}"
        self._wanted = wanted
        self._threads = threads
        self._network = Network(number)
        self._ports = {port: MappedPort(self._network.address, int(port.split("/")[0]))
                       for port in wanted.get("ExposedPorts") or {}}
        self._process = None
        self._log_path = os.path.join(work_directory(), f"container-{number}.log")
        self._data_directory = os.path.join(work_directory(), f"container-{number}")

    def start(self):
        """Starts the node as the image does."""
        said = dict(pair.split("=", 1) for pair in self._wanted.get("Env") or [] if "=" in pair)
        environment = {"PATH": os.environ["PATH"], "SETTEE_DATA_DIR": self._data_directory,
                       "SETTEE_HOST": "0.0.0.0", "SETTEE_ADVERTISE": "localhost",
                       "SETTEE_THREADS": self._threads, **said}
        with open(self._log_path, "ab") as log:
            self._process = subprocess.Popen(
                ["ip", "netns", "exec", self._network.name, os.environ["SETTEE_BINARY"], "serve"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)

    def stop(self, number=signal.SIGTERM):
        """Ends the node."""
        if self.is_running():
            self._process.send_signal(number)
            try:
                self._process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def remove(self):
        """Ends the node, and takes its network away."""
        self.stop(signal.SIGKILL)
        for port in self._ports.values():
            port.close()
        self._network.remove()

    def is_running(self):
        """Whether the process lives."""
        return self._process is not None and self._process.poll() is None

    def described(self):
        """What an engine tells of it."""
        bound = {port: [{"HostIp": "0.0.0.0", "HostPort": str(mapped.number)}]
                 for port, mapped in self._ports.items()}
        running = self.is_running()
        address = {"IPAddress": self._network.address, "Gateway": self._network.gateway,
                   "NetworkID": NETWORK["Id"]}
        return {
            "Id": self.name, "Name": f"/{self.name[-8:]}", "Created": "2026-01-01T00:00:00Z",
            "State": {"Status": "running" if running else "created", "Running": running,
                      "StartedAt": "2026-01-01T00:00:00Z", "FinishedAt": "0001-01-01T00:00:00Z",
                      "ExitCode": 0, "Error": ""},
            "Image": IMAGE["Id"],
            "Config": {"Image": "settee:0.1.0", "Labels": self._wanted.get("Labels") or {},
                       "Env": self._wanted.get("Env") or [], "Tty": False, "Hostname": "settee",
                       "ExposedPorts": {port: {} for port in self._ports}},
            "HostConfig": {"NetworkMode": "bridge", "PortBindings": bound},
            "NetworkSettings": {**address, "Ports": bound, "Networks": {"bridge": address}},
            "Mounts": [],
        }

    def log(self):
        """What the node has said, as an engine frames it: one line of standard output each."""
        with open(self._log_path, "rb") as file:
            lines = file.read().splitlines(keepends=True)
        return b"".join(b"\x01\0\0\0" + len(line).to_bytes(4, "big") + line for line in lines)


class Engine:
    """An engine at a port of this machine, in the body of a `with`."""

    def __init__(self, threads):
        self.threads = threads
        self.containers = {}
        self.refused = []
        self._lock = threading.Lock()
        handler = type("Handler", (_Handler,), {"engine": self})
        self._server = ThreadingHTTPServer((HOST, 0), handler)
        self._server.daemon_threads = True

    @property
    def address(self):
        """For DOCKER_HOST."""
        return f"tcp://{HOST}:{self._server.server_port}"

    def __enter__(self):
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()
        for container in self.containers.values():
            container.remove()

    def make(self, wanted):
        """A container that is not started yet."""
        with self._lock:
            container = Container(next(NUMBERS), wanted, self.threads)
            self.containers[container.name] = container
        return container


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    engine = None

    def do_GET(self):
        self._answer("GET")

    def do_HEAD(self):
        self._answer("HEAD")

    def do_POST(self):
        self._answer("POST")

    def do_DELETE(self):
        self._answer("DELETE")

    def log_message(self, *_):
        pass

    def _answer(self, method):
        body = self._body()
        path = re.sub(r"^/v\d+\.\d+", "", urlsplit(self.path).path)
        container = re.fullmatch(r"/containers/([0-9a-f]{64})(/\w+)?", path)
        if container and container[1] in self.engine.containers:
            self._of_container(method, self.engine.containers[container[1]], container[2])
        elif path == "/_ping":
            self._send(200, b"OK", "text/plain")
        elif path == "/version":
            self._json(200, VERSION)
        elif path == "/info":
            self._json(200, INFORMATION)
        elif path == "/networks":
            self._json(200, [NETWORK])
        elif path == "/containers/json":
            self._json(200, [])
        elif path == "/images/json":
            self._json(200, [IMAGE])
        elif re.fullmatch(r"/images/.*/json", path):
            self._json(200, IMAGE)
        elif method == "POST" and path.endswith("/prune"):
            self._json(200, {})
        elif (method, path) == ("POST", "/containers/create"):
            made = self.engine.make(json.loads(body))
            self._json(201, {"Id": made.name, "Warnings": []})
        else:
            self._refuse(method)

    def _of_container(self, method, container, action):
        orders = {"/start": container.start, "/stop": container.stop,
                  "/kill": lambda: container.stop(signal.SIGKILL)}
        if method == "GET" and action == "/json":
            self._json(200, container.described())
        elif method == "GET" and action == "/logs":
            self._send(200, container.log(), "application/vnd.docker.multiplexed-stream")
        elif method == "POST" and action in orders:
            orders[action]()
            self._send(204, b"", None)
        elif method == "DELETE" and action is None:
            container.remove()
            self._send(204, b"", None)
        else:
            self._refuse(method)

    def _body(self):
        if self.headers.get("Transfer-Encoding") == "chunked":
            chunks = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                chunks.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(chunks)
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _refuse(self, method):
        self.engine.refused.append(f"{method} {self.path}")
        self._json(404, {"message": f"{method} {self.path} is not answered here"})

    def _json(self, status, value):
        self._send(status, json.dumps(value).encode(), "application/json")

    def _send(self, status, body, kind):
        self.send_response(status)
        self.send_header("Api-Version", API_VERSION)
        self.send_header("OSType", "linux")
        if kind is not None:
            self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
