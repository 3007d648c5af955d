"""What is changed in the console."""

import re

from cases import expect_equal
from mcbp import GET, SET, open_bucket, vbucket_of
from seen import VBUCKETS, expect_clean, shows


def a_document_is_made_changed_and_deleted(browser):
    page = browser.sign_in()
    browser.go("Documents")
    page.get_by_label("Key", exact=True).fill("acceptance/one")
    page.get_by_role("button", name="Open or make").click()
    shows(page, "There is no such document yet")
    page.get_by_label("Value").fill('{"a": 1}')
    page.get_by_role("button", name="Store").click()
    shows(page, "JSON of 8")
    key = b"acceptance/one"
    with open_bucket(browser.node) as connection:
        place = {"key": key, "vbucket": vbucket_of(key, VBUCKETS)}
        expect_equal(connection.call_successfully(GET, **place).value, b'{"a": 1}', "the value")
        connection.call_successfully(SET, extras=bytes(8), value=b'{"a":2}', **place)
        page.get_by_label("Value").fill("lost")
        page.get_by_role("button", name="Store").click()
        shows(page, "Somebody has changed the document since it was read")
        browser.picture("document-of-another-version")
        expect_equal(connection.call_successfully(GET, **place).value, b'{"a":2}', "the value")
        page.get_by_role("button", name="Read again").click()
        shows(page, "JSON of 7")
        page.get_by_role("button", name="Delete", exact=True).click()
        page.get_by_role("button", name="Delete it").click()
        shows(page, "There is no such document yet")
        expect_equal(connection.call(GET, **place).status, 1, "the status of what is gone")
    # Refusals are statuses, which the browser takes for errors.
    remarks = [it for it in browser.take_remarks() if "404" not in it and "409" not in it]
    expect_equal(remarks, [], "what the browser remarks")


def a_bucket_is_made_changed_and_deleted(browser):
    page = browser.sign_in()
    browser.go("Buckets")
    page.get_by_role("button", name="New bucket").click()
    page.get_by_label("Name").fill("second")
    page.get_by_label("Memory on each node, MiB").fill("100")
    page.get_by_role("button", name="Make it").click()
    page.get_by_role("button", name="Change second").click()
    page.get_by_label("Writes are durable at least").select_option("majority")
    page.get_by_role("button", name="Change it").click()
    page.locator("tr", has_text="second").filter(has_text="majority").wait_for()
    page.get_by_role("button", name="Delete second").click()
    browser.picture("bucket-deletion")
    page.get_by_role("button", name="Delete it").click()
    page.get_by_role("button", name="Delete second").wait_for(state="detached")
    expect_clean(browser)


def slow_operations_and_hot_documents_are_shown_on_demand(browser):
    page = browser.sign_in()
    browser.go("Slow operations")
    page.get_by_label("Command").select_option("all")
    page.get_by_label("Slow from, milliseconds").fill("0")
    page.get_by_role("button", name="Set it").click()
    shows(page, "It holds until the node stops")
    page.locator("td .parts .span-6").first.wait_for()
    shows(page, "work ")
    browser.picture("slow-operations-there")
    page.get_by_label("Slow from, milliseconds").fill("500")
    page.get_by_role("button", name="Set it").click()
    browser.go("Hot keys")
    page.get_by_label("For").select_option("5")
    page.get_by_role("button", name="Sample").click()
    shows(page, "Sampling for")
    page.get_by_role("cell", name=re.compile("^0+[0-9]+$")).first.wait_for()
    browser.picture("hot-keys-there")
    expect_clean(browser)


def the_node_logs_other_lines_when_told_so(browser):
    page = browser.sign_in()
    browser.go("Log")
    control = page.get_by_label("The node logs (a level, or module=level)")
    before = control.input_value()
    control.fill("no such=level=")
    page.get_by_role("button", name="Log these").click()
    page.locator("#notices p.bad").wait_for()
    control.fill("debug")
    page.get_by_role("button", name="Log these").click()
    shows(page, "lines are logged by another filter")
    control.fill(before)
    page.get_by_role("button", name="Log these").click()
    page.locator("#notices p:not(.bad)").nth(1).wait_for()
    remarks = [it for it in browser.take_remarks() if "400" not in it]
    expect_equal(remarks, [], "what the browser remarks")


CASES = [
    a_document_is_made_changed_and_deleted,
    a_bucket_is_made_changed_and_deleted,
    slow_operations_and_hot_documents_are_shown_on_demand,
    the_node_logs_other_lines_when_told_so,
]
