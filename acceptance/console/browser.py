"""Chromium without a window, and what it had to say about the pages that it has opened."""

import os
import shutil

import axe_playwright_python
from playwright.sync_api import sync_playwright

from node import HOST
from programs import kept_directory

SECONDS = 20
SIZE = {"width": 1360, "height": 900}

# What a person cannot tell the purpose of: a control without a label, a name or a text.
NAMELESS = """() => [...document.querySelectorAll("button, input, select, textarea, a, meter")]
  .filter((it) => !(it.getAttribute("aria-label") || it.textContent.trim()
    || it.closest("label")?.textContent.trim()))
  .map((it) => it.outerHTML)"""

# Rules of WCAG 2.2 up to AA, and what axe-core advises besides, by the lines of what breaks them.
BREACHES = """async () => (await axe.run(document)).violations.flatMap(
  (rule) => rule.nodes.map((node) => `${rule.id}: ${node.html}`))"""

# What has the focus, and whether that is to be seen.
FOCUS = """() => {
  const it = document.activeElement;
  const style = getComputedStyle(it);
  const isSeen = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0;
  return [it.tagName, (it.getAttribute("aria-label") || it.textContent).trim(), isSeen];
}"""


def axe_source():
    """The script of axe-core."""
    directory = os.path.dirname(axe_playwright_python.__file__)
    with open(os.path.join(directory, "axe.min.js"), encoding="utf-8") as file:
        return file.read()


class Chromium:
    """The browser's process."""

    def __init__(self):
        self._playwright = sync_playwright().start()
        # Its sandbox needs user namespaces, which containers often do not have.
        self.process = self._playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"])
        self.axe = axe_source()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.close()
        self._playwright.stop()


class Browser:
    """A person's browser, and the console of a node in it."""

    def __init__(self, chromium, node, suffix=""):
        self.suffix = suffix
        self.chromium = chromium
        self.address = f"http://{HOST}:{node.management_port}"
        self.node = node
        self.remarks = []
        self.sizes = {}
        self.page = None

    def close(self):
        """Closes what is open."""
        if self.page is not None:
            self.page.context.close()
            self.page = None

    def open(self, scheme="light"):
        """A page of somebody who has not been here before."""
        self.close()
        context = self.chromium.process.new_context(
            viewport=SIZE, color_scheme=scheme, reduced_motion="reduce")
        context.set_default_timeout(SECONDS * 1000)
        self.page = context.new_page()
        self.page.on("console", self._note_line)
        self.page.on("pageerror", lambda error: self.remarks.append(f"uncaught: {error}"))
        self.page.on("request", self._note_request)
        self.page.on("response", self._note_response)
        self.page.goto(f"{self.address}/")
        return self.page

    def sign_in(self, scheme="light", user=None, password=None):
        """The same, signed in: as the administrator, unless another user is said."""
        page = self.open(scheme)
        page.get_by_label("User").fill(user or self.node.user)
        page.get_by_label("Password").fill(password or self.node.password)
        page.get_by_role("button", name="Sign in").click()
        page.get_by_role("heading", name="Overview").wait_for()
        return page

    def go(self, title):
        """A page of the console, by its link."""
        self.page.get_by_role("link", name=title, exact=True).click()
        self.page.get_by_role("heading", level=1, name=title, exact=True).wait_for()
        return self.page

    def picture(self, name):
        """Keeps what is seen now, for people who look at it after the run."""
        directory = os.path.join(kept_directory("console"), "pictures")
        name = f"{name}{self.suffix}"
        os.makedirs(directory, exist_ok=True)
        self.page.screenshot(path=os.path.join(directory, f"{name}.png"), full_page=True)

    def nameless(self):
        """Controls whose purpose is not said."""
        return self.page.evaluate(NAMELESS)

    def breaches(self):
        """What axe-core finds on this page that some people cannot use."""
        if not self.page.evaluate("() => typeof axe === 'object'"):
            # As a debugger does, to which the page's policy does not apply.
            self.page.evaluate(self.chromium.axe)
        return self.page.evaluate(BREACHES)

    def press_tab(self):
        """The next place by the keyboard: what it is, its name, and whether that is to be seen."""
        self.page.keyboard.press("Tab")
        return self.page.evaluate(FOCUS)

    def take_remarks(self):
        """What the browser has found wrong since the last time."""
        remarks, self.remarks = self.remarks, []
        return remarks

    def _note_line(self, message):
        # A sign-in is asked for by a status, which the browser takes for an error.
        if message.type in ("error", "warning") and "401" not in message.text:
            self.remarks.append(f"{message.type}: {message.text}")

    def _note_request(self, request):
        if not request.url.startswith((self.address, "data:")):
            self.remarks.append(f"asks elsewhere: {request.url}")

    def _note_response(self, response):
        path = response.url.removeprefix(self.address)
        if path.startswith("/ui/"):
            self.sizes[path] = int(response.headers.get("content-length", 0))
