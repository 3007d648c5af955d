"""What pages of other sites try, and what the console's own page must not be able to do."""

import contextlib
import http.server
import threading

from node import HOST

# What another site may have a browser send without asking: a form, and a request of a script.
ATTACK_SECONDS = 600
ATTACK = f"""<!doctype html><title>evil</title><body><form method=post action="TARGET">
<input name=seconds value={ATTACK_SECONDS}></form><script>
fetch("TARGET", {{method: "POST", mode: "no-cors", credentials: "include",
  body: new URLSearchParams({{seconds: "{ATTACK_SECONDS}"}})}})
  .catch(() => null);
setTimeout(() => document.forms[0].submit(), 200);
</script>"""


@contextlib.contextmanager
def site_with(text):
    """The port of a site that answers everything with this page."""
    class Page(http.server.BaseHTTPRequestHandler):
        """The page."""

        def do_GET(self):
            """Whatever is asked for."""
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_):
            """Nobody reads it."""

    with http.server.ThreadingHTTPServer((HOST, 0), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()

# Each resolves to whether the page was kept from it.
FORBIDDEN = {
    "a script in the page": """() => {
        const script = document.createElement("script");
        script.textContent = "window.wasRun = true";
        document.head.append(script);
        return window.wasRun === undefined;
    }""",
    "a style in the page": """() => {
        const style = document.createElement("style");
        style.textContent = "body { color: rgb(1, 2, 3) }";
        document.head.append(style);
        return getComputedStyle(document.body).color !== "rgb(1, 2, 3)";
    }""",
    "data of another place": """() => fetch("http://127.0.0.1:9/").then(() => false,
        () => new Promise((done) => setTimeout(() => done(window.violations > 0), 50)))""",
    "a picture of another place": """() => new Promise((done) => {
        const picture = new Image();
        picture.onload = () => done(false);
        picture.onerror = () => setTimeout(() => done(window.violations > 1), 50);
        picture.src = "http://127.0.0.1:9/a.png";
    })""",
}
