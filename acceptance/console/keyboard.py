"""The console without a mouse."""

import re

from cases import expect, expect_equal
from pages import PAGES
from seen import VBUCKETS, expect_clean, shows


def every_place_is_reached_by_keyboard_and_seen(browser):
    page = browser.sign_in()
    page.reload()
    page.get_by_role("heading", name="Overview").wait_for()
    places = [browser.press_tab() for _ in range(len(PAGES) + 2)]
    expect_equal(places[0][1], "Skip to the content", "the first place")
    expect_equal([name for _, name, _ in places[1:len(PAGES) + 1]], [it[0] for it in PAGES],
                 "the order of the pages")
    browser.go("Documents")
    page.get_by_role("button", name=re.compile("^0+[0-9]+$")).first.wait_for()
    page.evaluate("() => document.activeElement.blur()")
    places += [browser.press_tab() for _ in range(len(PAGES) + 12)]
    hidden = [place for place in places if place[0] != "BODY" and not place[2]]
    expect_equal(hidden, [], "places whose focus is not seen")
    names = [name for _, name, _ in places]
    for name in ("Sign out", "Look", "Open or make"):
        expect(name in names, f"{name} is reached: {names}")
    landmarks = page.evaluate("""() => [...document.querySelectorAll("header, nav, main")]
        .map((it) => it.tagName)""")
    expect_equal(landmarks, ["HEADER", "NAV", "MAIN"], "landmarks")
    expect_clean(browser)


def the_keyboard_is_enough(browser):
    page = browser.open()
    page.get_by_label("User").wait_for()
    page.keyboard.type(browser.node.user)
    page.keyboard.press("Tab")
    page.keyboard.type(browser.node.password)
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Overview").wait_for()
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("() => document.activeElement.textContent") == "vBuckets":
            break
    page.keyboard.press("Enter")
    page.get_by_role("heading", level=1, name="vBuckets").wait_for()
    expect_equal(page.evaluate("() => document.activeElement.id"), "content", "what has the focus")
    page.locator("#vb-5").wait_for()
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("() => document.activeElement.getAttribute('role')") == "listbox":
            break
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    shows(page, "vBucket 2")
    page.keyboard.press("End")
    shows(page, f"vBucket {VBUCKETS - 1}")
    expect_clean(browser)


CASES = [every_place_is_reached_by_keyboard_and_seen, the_keyboard_is_enough]
