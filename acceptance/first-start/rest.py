"""Requests of programs that set a server up."""

import base64
import json
import urllib.error
import urllib.parse
import urllib.request

from cases import expect
from node import HOST


class Rest:
    """The REST port of a node, asked as nobody or with a login."""

    def __init__(self, node, user=None, password=None):
        self._url = f"http://{HOST}:{node.management_port}"
        self._headers = {}
        if user is not None:
            login = base64.b64encode(f"{user}:{password}".encode()).decode()
            self._headers["Authorization"] = f"Basic {login}"

    def ask(self, method, path, **form):
        """Status and body; fields of a form go into the request's body."""
        data = urllib.parse.urlencode(form).encode() if method != "GET" else None
        request = urllib.request.Request(
            self._url + path, method=method, data=data, headers=self._headers)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def done(self, method, path, **form):
        """The body of a request that succeeds."""
        status, body = self.ask(method, path, **form)
        expect(200 <= status < 300, f"{method} {path} {form}: {status} {body}")
        return body

    def get(self, path):
        """The JSON that is answered."""
        return json.loads(self.done("GET", path))
