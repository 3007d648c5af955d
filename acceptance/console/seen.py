"""What cases look for on a page."""

from cases import expect_equal

VBUCKETS = 64


def shows(page, text):
    """Waits for a text, or the name of a control."""
    page.wait_for_function(
        """(text) => document.body.innerText.includes(text)
             || document.querySelector(`[aria-label="${text}"]`) !== null""", arg=text)


def expect_clean(browser):
    """The browser has found nothing wrong."""
    expect_equal(browser.take_remarks(), [], "what the browser remarks")


def numbers_move(page):
    """Charts are drawn, and a number under load is none of those that mean nothing."""
    page.wait_for_function(
        """() => document.querySelectorAll(".plot canvas").length >= 9
             && document.querySelectorAll(".legend")[1].innerText.match(/[µm]s/)
             && /^[1-9][\\d.]* ?k?\\/s$/.test(document.querySelector(".tile .value").innerText)""")


def page_cookies(browser):
    """The cookies that the browser has for the console."""
    return browser.page.context.cookies()
