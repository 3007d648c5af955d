"""Who is let in, and what they see."""

from browser import Browser
from cases import expect, expect_equal
from node import Node
from seen import expect_clean, page_cookies, shows


class FreshNode(Node):
    """A node that nobody has told its administrator."""

    def arguments(self):
        """Those of any node, without user and password."""
        arguments = super().arguments()
        at = arguments.index("--user")
        return arguments[:at] + arguments[at + 4:]


def a_login_is_asked_for_and_a_wrong_password_told(browser):
    page = browser.open()
    page.get_by_label("User").fill(browser.node.user)
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("button", name="Sign in").click()
    shows(page, "The user or the password is wrong")
    expect_equal(page.context.cookies(), [], "cookies")
    expect(page.url.endswith("/ui/"), f"the address leads to the console, not {page.url}")
    browser.picture("sign-in")
    browser.sign_in()
    [cookie] = page_cookies(browser)
    expect_equal((cookie["httpOnly"], cookie["sameSite"]), (True, "Strict"), "the cookie")
    page = browser.page
    page.get_by_role("button", name="Sign out").click()
    page.get_by_role("button", name="Sign in").wait_for()
    expect_equal(page_cookies(browser), [], "cookies of who has signed out")
    expect_clean(browser)


def a_user_sees_what_its_roles_are_for(browser):
    page = browser.sign_in()
    browser.go("Users")
    page.get_by_role("button", name="New user").click()
    page.get_by_label("User", exact=True).fill("reader")
    page.get_by_label("Password", exact=True).fill("password")
    page.get_by_label("Roles, with commas between them").fill("data_reader[default]")
    page.get_by_role("button", name="Make it").click()
    page.get_by_role("button", name="Change reader").wait_for()
    expect_clean(browser)
    page = browser.sign_in(user="reader", password="password")
    expect_equal(page.locator("#user").inner_text(), "reader", "who is signed in")
    for title, text in (("Users", "cluster.admin.security"), ("Log", "cluster.admin.security"),
                        ("Slow operations", "cluster.stats.memcached!read")):
        browser.go(title)
        shows(page, f"This needs the permission {text}")
    browser.picture("not-permitted")
    browser.go("Documents")
    page.get_by_label("Key", exact=True).fill("00000000000000000001")
    page.get_by_role("button", name="Open or make").click()
    page.get_by_label("Value").fill("{}")
    page.get_by_role("button", name="Store").click()
    shows(page, "This needs the permission cluster.bucket[default].data.docs!upsert")
    remarks = [it for it in browser.take_remarks() if "403" not in it]
    expect_equal(remarks, [], "what the browser remarks")


def a_node_is_set_up_in_the_browser(browser):
    """Beside the node under load, one that has never been started."""
    threads = browser.node.name.rsplit("-", 1)[1]
    with FreshNode(f"fresh-{threads}", "--vbuckets", "64", "--threads", threads, "--setup") as node:
        other = Browser(browser.chromium, node, browser.suffix)
        page = other.open()
        page.get_by_role("heading", name="Set this node up").wait_for()
        page.get_by_label("Administrator").fill("ann")
        page.get_by_label("Password", exact=True).fill("hunter22")
        page.get_by_label("The same password again").fill("hunter23")
        page.get_by_role("button", name="Set it up").click()
        shows(page, "The two passwords differ")
        other.picture("set-up")
        page.get_by_label("The same password again").fill("hunter22")
        page.get_by_role("button", name="Set it up").click()
        page.get_by_role("heading", name="Overview").wait_for()
        expect_equal(page.locator("#user").inner_text(), "ann", "who is signed in")
        other.close()
        expect_clean(other)
        node.stop()


CASES = [
    a_login_is_asked_for_and_a_wrong_password_told,
    a_user_sees_what_its_roles_are_for,
    a_node_is_set_up_in_the_browser,
]
