"""Pages of other sites, and what the console's own may not do."""

from attacks import ATTACK, ATTACK_SECONDS, FORBIDDEN, site_with
from cases import expect, expect_equal
from node import HOST
from seen import expect_clean, page_cookies


def a_page_of_another_site_changes_nothing(browser):
    page = browser.sign_in()
    [cookie] = page_cookies(browser)
    for path in ("/uilogout", "/settee/hotKeys"):
        address = browser.address + path
        with site_with(ATTACK.replace("TARGET", address)) as port:
            # Two sites: one with the host of the node, to which cookies are sent, and one without.
            for host in (HOST, "localhost"):
                tab = page.context.new_page()
                with tab.expect_request(
                        lambda it: it.url == address and it.is_navigation_request()):
                    tab.goto(f"http://{host}:{port}/", wait_until="commit")
                tab.wait_for_timeout(300)
                tab.close()
    expect_equal(page_cookies(browser), [cookie], "cookies")
    told = page.evaluate("""async () => (await fetch("/settee/buckets/default/hotKeys")).json()""")
    expect(told["secondsLeft"] < ATTACK_SECONDS / 2, f"no sampling goes on: {told['secondsLeft']}")
    expect_clean(browser)


def the_page_keeps_to_its_policy(browser):
    page = browser.sign_in()
    expect_clean(browser)
    page.evaluate("""() => {
        window.violations = 0;
        document.addEventListener("securitypolicyviolation", (event) => {
            if (event.blockedURI.startsWith("http")) window.violations += 1;
        });
    }""")
    for what, attempt in FORBIDDEN.items():
        expect(page.evaluate(attempt), f"{what} is refused")
    browser.take_remarks()
    with site_with(f"<iframe src='{browser.address}/ui/'></iframe>") as port:
        page.goto(f"http://{HOST}:{port}/")
        page.wait_for_timeout(300)
        inner = [frame.url for frame in page.frames if frame != page.main_frame]
        expect(not any(url.startswith(browser.address) for url in inner), f"in a frame: {inner}")
    browser.take_remarks()


CASES = [a_page_of_another_site_changes_nothing, the_page_keeps_to_its_policy]
