"""Headless Chromium, for tests of web pages."""

import contextlib
import shutil

import pytest

_FLAGS = [
    "headless",
    "no-sandbox",
    "disable-gpu",
    "disable-quic",
    "no-first-run",
    "disable-background-networking",
    "disable-sync",
    "disable-component-update",
    "disable-dev-shm-usage",
    "window-size=1000,800",
]


@contextlib.contextmanager
def opened_browser(profile):
    """Yields a browser; skips the test if none is installed.

    Args:
        profile: path of an empty folder.
    """
    chromium, driver = map(shutil.which, ("chromium", "chromedriver"))
    if not (chromium and driver):
        pytest.skip("needs Debian's chromium and chromium-driver")
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (*_FLAGS, f"user-data-dir={profile}"):
        options.add_argument(f"--{flag}")
    logs = {"browser": "ALL", "performance": "ALL"}
    options.set_capability("goog:loggingPrefs", logs)
    browser = webdriver.Chrome(options, webdriver.ChromeService(driver))
    try:
        yield browser
    finally:
        browser.quit()


class Page:
    """A page that is open in a browser."""

    def __init__(self, browser, address):
        from selenium.webdriver import ActionChains

        browser.get(address)
        self.browser, self.actions = browser, ActionChains(browser, 10)

    def all(self, selector):
        return self.browser.find_elements("css selector", selector)

    def text(self, selector):
        (element,) = self.all(selector)
        return element.text

    def hover(self, element):
        self.actions.move_to_element(element).perform()

    def press(self, *keys):
        self.actions.send_keys(*keys).perform()

    def errors(self):
        entries = self.browser.get_log("browser")
        return [entry for entry in entries if entry["level"] == "SEVERE"]
