"""A browser, a server with a page, and a test that fails for what the browser complains of."""

from __future__ import annotations

import json
import os
import socket
import unittest
from typing import Any, Callable, Dict, List

import nowcalls
import support

try:
    from selenium import webdriver
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.chrome.service import Service
except ImportError:
    webdriver = ActionChains = Keys = None

CHROMIUM = "/usr/bin/chromium"
DRIVER = "/usr/bin/chromedriver"
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")
# Where pictures of the page go; unset: nowhere.
SCREENSHOTS = os.environ.get("NOWCALLS_SCREENSHOTS", "")


def setUpModuleOrSkip() -> None:
    if webdriver is None or not os.path.exists(CHROMIUM) or not os.path.exists(DRIVER):
        # As doctest writes it: `tools/dev test` repeats it at the end.
        print(
            "browser: MESSAGE: skipped: the page in a browser: chromium, chromium-driver or "
            "python3-selenium is missing; tools/dev test --browser installs them"
        )
        raise unittest.SkipTest("no browser")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


class PageServer(support.Server):
    """A server whose page has an address that stays the same over restarts."""

    def __init__(self, *arguments: str) -> None:
        self.page = f"127.0.0.1:{free_port()}"
        super().__init__("--http", self.page, *arguments)


class Browser:
    """One tab.

    scheme: "light", "dark" or "forced", which leaves the system's colours alone.
    """

    def __init__(self, width: int = 1280, height: int = 900, scheme: str = "light") -> None:
        options = webdriver.ChromeOptions()
        options.binary_location = CHROMIUM
        for flag in FLAGS:
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(service=Service(DRIVER), options=options)
        self.command(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
        )
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        if scheme == "forced":
            features = [{"name": "forced-colors", "value": "active"}]
        self.command("Emulation.setEmulatedMedia", {"features": features})

    def command(self, name: str, parameters: Dict[str, Any]) -> Any:
        return self.driver.execute_cdp_cmd(name, parameters)

    def run(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def text(self, selector: str = "body") -> str:
        """The text of the first such element, as it is seen; empty without one."""
        script = "return document.querySelector(arguments[0])?.innerText ?? ''"
        return str(self.run(script, selector))

    def table(self, caption: str) -> List[List[str]]:
        """The cells of a table, without the commands; [] while it is hidden."""
        script = """
            for (const table of document.querySelectorAll("table")) {
              if (table.hidden || !table.caption.textContent.startsWith(arguments[0])) continue;
              return [...table.tBodies[0].rows].map(
                (row) => [...row.querySelectorAll("td:not(.command)")].map((td) => td.innerText));
            }
            return [];"""
        return list(self.run(script, caption))

    def figure(self, name: str) -> str:
        """The value of a named figure of the view."""
        script = """
            for (const term of document.querySelectorAll("main dt")) {
              if (term.textContent === arguments[0]) return term.nextSibling.textContent;
            }
            return "";"""
        return str(self.run(script, name))

    def console(self) -> List[str]:
        """What the browser has complained of since it was asked last."""
        return [str(entry["message"]) for entry in self.driver.get_log("browser")]


class PageTest(unittest.TestCase):
    """A test with a browser; its server is shared by the tests of a class."""

    server: PageServer
    browser: Browser
    namespace: str
    _rules: List[Dict[str, Any]]

    @classmethod
    def setUpClass(cls) -> None:
        cls.server = PageServer()
        cls.addClassCleanup(cls.server.remove)
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.driver.quit)
        cls._rules = []
        cls.namespace = cls.__name__

    def tearDown(self) -> None:
        # Also violations of the page's Content-Security-Policy are told there.
        self.assertEqual([line for line in self.browser.console() if not self.expected(line)], [])

    def expected(self, _complaint: str) -> bool:
        return False

    def load(self, flow_id: int, count: float, make: Any = support.rule, **config: Any) -> int:
        self._rules.append(make(flow_id, count, **config))
        self.server.call("rules_load", self.namespace, json.dumps(self._rules))
        return flow_id

    def client(self, client_id: str) -> Any:
        client = nowcalls.Client(
            self.server.address, namespace=self.namespace, client_id=client_id
        )
        self.addCleanup(client.close)
        return client

    def open(self, view: str, browser: Any = None) -> None:
        """Goes there, and waits for the first figures."""
        browser = browser or self.browser
        browser.driver.get("about:blank")
        browser.driver.get(f"http://{self.server.page}/#/{view}")
        self.soon(lambda: browser.text("#state").startswith("live"))

    def first_flow(self) -> str:
        """The name in the first line of the flows; empty while there is none."""
        rows = self.browser.table("Flows")
        return rows[0][0] if rows else ""

    def soon(self, condition: Callable[[], Any], seconds: float = support.PATIENCE_S) -> None:
        if not support.poll_until(condition, seconds):
            self.fail("it did not come true; the page says:\n" + self.browser.text())
