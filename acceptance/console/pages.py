"""What the pages show, and what they cost."""

import base64
import re
import urllib.request

from cases import expect, expect_equal, wait_until
from node import HOST
from seen import VBUCKETS, expect_clean, numbers_move, shows

SIZE_MAX = 300 * 1024

# The title of each page, what is on it under load, and metrics that it names.
PAGES = [
    ("Overview", ["Operations by kind", "p99.9", "Memory and its marks", "Disk queue",
                  "Still to be sent to others"],
     ["kv_ops", "kv_cmd_duration_seconds", "kv_sync_write_commit_duration_seconds",
      "kv_ep_mem_high_wat", "kv_read_bytes", "kv_dcp_items_remaining"]),
    ("Buckets", ["default", "couchstore", "Compact default"], ["kv_mem_used_bytes"]),
    ("Collections", ["_default", "Make collection"], ["kv_collection_item_count"]),
    ("Documents", ["keys of this node that are durable"], []),
    ("Servers", ["healthy", "(this one)", "The map of default"], ["kv_uptime_seconds"]),
    ("vBuckets", [f"{VBUCKETS} vBuckets; on this node {VBUCKETS} active", "Seqno"],
     ["vb_N:high_seqno"]),
    ("Timings", ["SET", "sync_write_commit_majority", "p99.9", "%"], ["kv_cmd_duration_seconds"]),
    ("Slow operations", ["Where the time went", "Slow from, milliseconds"], []),
    ("Hot keys", ["Sample", "Nothing has been sampled yet"], []),
    ("Log", ["lines of this node", "INFO", "Log these"], []),
    ("Users", ["Administrator", "admin", "Your own password"], []),
    ("Settings", ["New passwords have at least", "/settings/autoFailover"], []),
]


def every_page_shows_what_it_is_for_under_load(browser):
    page = browser.sign_in()
    breaches, grounds = [], set()
    for title, texts, metrics in PAGES:
        browser.go(title)
        for text in texts + metrics:
            shows(page, text)
        expect_equal(browser.nameless(), [], f"controls without a name on {title}")
        expect_equal(page.get_by_role("link", name=title, exact=True)
                     .get_attribute("aria-current"), "page", title)
        if title == "Overview":
            numbers_move(page)
        for scheme in ("dark", "light"):
            page.emulate_media(color_scheme=scheme)
            page.wait_for_timeout(1100 if title == "Overview" else 150)
            grounds.add(page.evaluate(
                "() => getComputedStyle(document.documentElement).backgroundColor"))
            if browser.node.name.endswith("-1"):
                # What is on a page does not depend on the node's threads.
                breaches += [f"{title}, {scheme}: {it}" for it in browser.breaches()]
            browser.picture(f"{title.lower().replace(' ', '-')}-{scheme}")
        expect_clean(browser)
    print("".join(f"  {breach}\n" for breach in breaches), end="")
    expect_equal(len(breaches), 0, "what axe-core finds")
    expect_equal(len(grounds), 2, "grounds of light and dark")


def all_files_are_small_and_come_from_the_node(browser):
    page = browser.sign_in()
    total = sum(browser.sizes.values())
    expect(0 < total < SIZE_MAX, f"{total} bytes")
    paints = []
    for _ in range(5):
        page = browser.open()
        page.get_by_label("User").wait_for()
        paints += page.evaluate("""() => performance.getEntriesByName("first-contentful-paint")
            .map((entry) => Math.round(entry.startTime))""")
    expect_equal(len(paints), 5, "first paints")
    print(f"  {len(browser.sizes)} files, {total} bytes, first paint after {sorted(paints)} ms")
    expect_clean(browser)


def who_does_not_look_is_sent_nothing(browser):
    page = browser.sign_in()
    numbers_move(page)
    see = """(hidden) => {
        Object.defineProperty(document, "hidden", {get: () => hidden, configurable: true});
        document.dispatchEvent(new Event("visibilitychange"));
    }"""
    def is_said(state):
        page.wait_for_function(
            "(state) => document.getElementById('state').textContent === state", arg=state)
    for hidden, state in ((True, "paused"), (False, "live")):
        page.evaluate(see, hidden)
        is_said(state)
    with page.expect_event("requestfailed", lambda it: "figuresStreaming" in it.url):
        browser.go("Servers")
    is_said("")
    browser.go("Overview")
    is_said("live")
    expect(connections(browser.node) > 1, "the stream has a connection")
    browser.close()
    wait_until(lambda: connections(browser.node) == 1, 20, "only who asks has a connection")


def connections(node):
    """Connections to the REST port, the one that asks included."""
    login = base64.b64encode(f"{node.user}:{node.password}".encode()).decode()
    request = urllib.request.Request(f"http://{HOST}:{node.management_port}/metrics",
                                     headers={"Authorization": f"Basic {login}"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        text = answer.read().decode()
    [count] = re.findall(r"^cm_http_connections (\d+)$", text, re.MULTILINE)
    return int(count)


CASES = [
    every_page_shows_what_it_is_for_under_load,
    all_files_are_small_and_come_from_the_node,
    who_does_not_look_is_sent_nothing,
]
