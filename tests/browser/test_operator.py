"""What an operator looks for: rows that hold still, tabs told apart, figures that can be read."""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import tempfile
import threading
import urllib.request

import browser
import msgpack
import proxies
import support
from browser import Keys, PageTest

setUpModule = browser.setUpModuleOrSkip

# The least contrast of all texts in `main` and the totals, with what has it.
CONTRAST = """
    const rgb = (text) => text.match(/[\\d.]+/g).map(Number);
    const light = ([r, g, b]) => {
      const [x, y, z] = [r, g, b].map((value) => {
        const part = value / 255;
        return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
      });
      return 0.2126 * x + 0.7152 * y + 0.0722 * z;
    };
    const backOf = (node) => {
      for (let at = node; at; at = at.parentElement) {
        const [r, g, b, alpha = 1] = rgb(getComputedStyle(at).backgroundColor);
        if (alpha > 0) return [r, g, b];
      }
      return [255, 255, 255];
    };
    let least = [99, ""];
    for (const node of document.querySelectorAll("main *, #totals *")) {
      const own = [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim());
      if (!own || node.offsetParent === null) continue;
      let opacity = 1;
      for (let at = node; at; at = at.parentElement) opacity *= getComputedStyle(at).opacity;
      const back = backOf(node);
      const text = rgb(getComputedStyle(node).color);
      const seen = back.map((value, i) => value + (text[i] - value) * opacity);
      const [high, low] = [light(seen), light(back)].sort((a, b) => b - a);
      const ratio = (high + 0.05) / (low + 0.05);
      if (ratio < least[0]) least = [ratio, `${node.tagName} ${node.textContent}`];
    }
    return least;"""


def names(rows):
    return [row[0].split("\n")[0] for row in rows]


class OrderTest(PageTest):
    """Two flows sorted by calls in progress, of which the second overtakes the first."""

    def overtake(self, tens, point):
        """Meanwhile somebody is on a row, to which `point` goes: the order stays."""
        self.first, self.second = (f"r{self.load(10 * tens + i, 9)}" for i in (1, 2))
        client = self.client("worker")
        held = contextlib.ExitStack()
        self.addCleanup(held.close)
        held.enter_context(client.permit(10 * tens + 1))
        self.open(f"flows?sort=now_calls&filter=r{tens}")
        self.soon(lambda: self.calls(self.first) == "1 / 9")
        self.assertEqual(names(self.browser.table("Flows")), [self.first, self.second])
        point()
        held.enter_context(client.permit(10 * tens + 2, count=3))
        self.soon(lambda: self.calls(self.second) == "3 / 9")
        self.assertEqual(names(self.browser.table("Flows")), [self.first, self.second])
        note = "return getComputedStyle(document.querySelector('.table'), '::after').content"
        self.assertIn("order held", self.browser.run(note))

    def calls(self, name):
        return {row[0].split("\n")[0]: row[1] for row in self.browser.table("Flows")}.get(name)

    def point_at(self, *found_by):
        actions = browser.ActionChains(self.browser.driver)
        actions.move_to_element(self.browser.driver.find_element(*found_by)).perform()

    def leave(self):
        self.point_at("tag name", "h1")

    def is_sorted(self):
        return names(self.browser.table("Flows")) == [self.second, self.first]

    def test_rows_stay_under_the_pointer_and_are_sorted_when_it_leaves(self):
        self.overtake(10, lambda: self.point_at("link text", self.second))
        self.leave()
        self.soon(self.is_sorted)

    def test_rows_stay_under_the_focus_and_are_sorted_when_it_leaves(self):
        self.leave()
        focus = "document.querySelector('tbody a').focus()"
        self.overtake(20, lambda: self.browser.run(focus))
        self.browser.driver.switch_to.active_element.send_keys(Keys.SHIFT, Keys.TAB)
        self.soon(self.is_sorted)

    def test_what_is_asked_for_comes_at_once_although_the_pointer_is_there(self):
        self.overtake(30, lambda: self.point_at("link text", self.second))
        self.browser.run(f"location.hash = '#/flows?sort=id&filter={self.second}'")
        self.soon(lambda: names(self.browser.table("Flows")) == [self.second])
        self.leave()

    def test_a_row_that_goes_stays_in_its_place_until_the_pointer_leaves(self):
        flow = self.load(7, 9)
        client = self.client("worker-7")
        first, second = client.acquire(flow), client.acquire(flow)
        self.open(f"flow/{flow}")
        self.soon(lambda: len(self.browser.table("Holders")) == 2)
        self.point_at("css selector", "tbody tr + tr")
        first.release()
        gone = "return document.querySelectorAll('tbody tr.gone').length"
        self.soon(lambda: self.browser.run(gone) == 1)
        tokens = [int(row[-1]) for row in self.browser.table("Holders")]
        self.assertEqual(tokens, [first.token_id, second.token_id])
        self.leave()
        self.soon(lambda: len(self.browser.table("Holders")) == 1)
        second.release()


class ReadingTest(PageTest):
    def title(self):
        return self.browser.driver.title

    def test_every_tab_has_a_title_of_its_own(self):
        self.load(1, 1)
        with self.client("worker-1").permit(1):
            titles = {}
            session = json.loads(self.server.admin("sessions", "--client", "worker-1"))["session"]
            for view in ("flows", "flows?filter=r1", "flow/1", "clients", f"client/{session}",
                         "history", "server"):
                self.open(view)
                self.soon(lambda: "figures" not in self.browser.text("main"))
                titles[view] = self.title()
        self.assertEqual(len(set(titles.values())), len(titles), titles)
        # Its name comes with the figures.
        self.open("flow/1")
        self.soon(lambda: self.title() == f"r1, flow – nowcalls {self.server.page}")
        self.assertEqual(titles["flows?filter=r1"],
                         f"Flows with “r1” – nowcalls {self.server.page}")

    def test_times_have_their_zone(self):
        self.browser.command("Emulation.setTimezoneOverride", {"timezoneId": "Asia/Tokyo"})
        self.addCleanup(self.browser.command, "Emulation.setTimezoneOverride", {"timezoneId": ""})
        self.load(2, 1)
        with self.client("worker-2").permit(2):
            self.open("flow/2")
            self.soon(lambda: self.browser.table("Holders") != [])
            self.assertRegex(self.browser.text("#state"), r"^live \d\d:\d\d:\d\d GMT\+9$")
            self.assertRegex(self.browser.table("Holders")[0][3], r" \d\d:\d\d:\d\d GMT\+9$")

    def test_a_button_says_what_it_copies(self):
        self.load(3, 1)
        with self.client("worker-3").permit(3):
            self.open("flow/3")
            self.soon(lambda: self.browser.table("Holders") != [])
            self.assertEqual(self.browser.text(".place .copy"), "copy flow")
            self.assertEqual(self.browser.text("td .copy"), "copy reclaim")

    def test_waiters_and_history_lead_to_their_client(self):
        flow = self.load(4, 1)
        holder, waiter = self.client("holder"), self.client("waiter & co")
        permit = holder.acquire(flow)
        waiting = threading.Thread(target=lambda: waiter.acquire(flow, wait=20).release())
        waiting.start()
        self.open(f"flow/{flow}")
        self.soon(lambda: len(self.browser.table("Waiters")) == 1)
        self.browser.driver.find_element("link text", "waiter & co").click()
        self.soon(lambda: len(self.browser.table("Clients")) == 1)
        self.assertEqual(names(self.browser.table("Clients")), ["waiter & co"])
        self.server.admin("reclaim", str(permit.token_id), "--reason", "by a test")
        waiting.join()
        self.open("history?filter=holder")
        self.soon(lambda: len(self.browser.table("Tokens")) == 1)
        self.browser.driver.find_element("link text", "holder").click()
        self.soon(lambda: self.browser.text("h1") == "holder")

    def test_what_is_asked_wrongly_is_said(self):
        for view, words in (("flow/abc", "id must be the number of a flow, got 'abc'"),
                            ("flow/1/constructor", "kind must be flow or value"),
                            ("flows?offset=99999999999", "offset must be a number below 2^32")):
            self.browser.driver.get("about:blank")
            self.browser.driver.get(f"http://{self.server.page}/#/{view}")
            self.soon(lambda: words in self.browser.text("#banner"))
            self.assertEqual(self.browser.text("#state"), "refused")
        self.browser.console()
        self.open("flows?sort=constructor")

    def expected(self, complaint):
        asked_wrongly = "/api/look" in complaint and "400" in complaint
        return asked_wrongly or "Chart is not defined" in complaint

    def test_a_fault_of_the_page_itself_is_said(self):
        self.load(6, 1)
        self.open("flows")
        self.browser.run("delete window.Chart; location.hash = '#/flow/6'")
        self.soon(lambda: "This page failed: ReferenceError" in self.browser.text("#banner"))

    def test_failed_calls_and_waits_are_shown(self):
        flow = self.load(5, 9)
        self.open(f"flow/{flow}")
        self.soon(lambda: self.browser.figure("waited p99") == "–")
        with socket.create_connection(tuple(self.server.address.split(":"))) as sock:
            answers = msgpack.Unpacker()

            def ask(method, *params):
                sock.sendall(msgpack.packb([0, 1, method, params]))
                while True:
                    for answer in answers:
                        self.assertIsNone(answer[2])
                        return answer[3]
                    answers.feed(sock.recv(65536))

            for outcome in ("failed", "failed", "timeout"):
                token = ask("acquire", flow, 1)[1]
                ask("release", token, {"outcome": outcome})
        full = self.client("full").acquire(flow, count=9)
        waiting = threading.Thread(target=lambda: self.client("late").acquire(flow, wait=20))
        waiting.start()
        self.soon(lambda: self.browser.table("Waiters") != [])
        full.release()
        waiting.join()
        self.soon(lambda: self.browser.figure("call failed") == "2")
        self.assertEqual(self.browser.figure("call timeout"), "1")
        self.soon(lambda: self.browser.figure("waited p99") not in ("", "–"))
        chart = "Chart.getChart(document.querySelectorAll('canvas')[2])"
        failed = f"return {chart}.data.datasets[3].data.map((point) => point.y)"
        self.soon(lambda: sum(self.browser.run(failed)) == 3)
        self.open("flows?filter=r5")
        self.soon(lambda: len(self.browser.table("Flows")) == 1)
        self.assertRegex(self.browser.table("Flows")[0][6], r"\nwaited \S.* / \S")


class ChartTest(PageTest):
    CHART = "Chart.getChart(document.querySelector('canvas'))"

    def test_the_calls_have_a_line_for_the_level(self):
        self.load(1, 7)
        with self.client("worker").permit(1):
            self.open("flow/1")
            level = f"""return {self.CHART}?.data.datasets
                .find((set) => set.label === "level").data.map((point) => point.y) ?? []"""
            self.soon(lambda: set(self.browser.run(level)) == {7})
            self.assertGreaterEqual(self.browser.run(f"return {self.CHART}.scales.y.max"), 7)

    def test_a_spike_of_a_second_does_not_hide_the_trend(self):
        self.open("flows")
        scale = self.browser.driver.execute_async_script("""
            const done = arguments[0];
            import("/charts.js").then(({ PointCharts }) => {
              const charts = new PointCharts();
              document.getElementById("main").replaceChildren(charts.root);
              const points = { unix_s: Array.from({ length: 300 }, (_, i) => i) };
              for (const name of ["now_calls", "waiting", "granted", "refused", "ended", "held_ms",
                                  "exceptions"]) points[name] = points.unix_s.map(() => 20);
              points.granted[150] = 1000;
              charts.show(points);
              done([charts.answers.chart.scales.y.max, charts.answers.root.textContent]);
            });""")
        self.assertLessEqual(scale[0], 300)
        self.assertIn("peak granted 1,000", scale[1])


class StaleTest(PageTest):
    def expected(self, complaint):
        return "/api/look" in complaint and "net::ERR_" in complaint

    def test_old_figures_are_still_read(self):
        self.load(1, 2)
        permit = self.client("worker").acquire(1, count=2)
        for scheme in ("light", "dark"):
            with self.subTest(scheme=scheme):
                tab = browser.Browser(scheme=scheme)
                self.addCleanup(tab.driver.quit)
                for view in ("flows", "flow/1", "server"):
                    self.open(view, tab)
                    self.soon(lambda: "Waiting for figures" not in tab.text("main"))
                    self.assertGreaterEqual(tab.run(CONTRAST)[0], 4.5, tab.run(CONTRAST))
                    self.server.kill()
                    self.soon(lambda: tab.text("#state") == "no connection")
                    self.assertGreaterEqual(tab.run(CONTRAST)[0], 4.5, tab.run(CONTRAST))
                    self.server.start()
        permit.release()


class WindowsTest(PageTest):
    WINDOWS = 12

    def test_twelve_windows_of_one_browser_all_show_fresh_figures(self):
        flow = self.load(1, 9)
        driver = self.browser.driver
        views = ("flows", f"flow/{flow}", "clients", "server")
        for i in range(self.WINDOWS):
            if i > 0:
                driver.switch_to.new_window("window")
            driver.get(f"http://{self.server.page}/#/{views[i % len(views)]}")
        self.assertEqual(len(driver.window_handles), self.WINDOWS)

        def shown(words):
            for handle in driver.window_handles:
                driver.switch_to.window(handle)
                self.assertFalse(self.browser.run("return document.hidden"))
                self.soon(lambda: words in self.browser.text("#totals"))
                self.assertTrue(self.browser.text("#state").startswith("live"))

        shown("calls in progress\n0")
        with self.client("worker").permit(flow, count=4):
            shown("calls in progress\n4")
        for handle in driver.window_handles[1:]:
            driver.switch_to.window(handle)
            driver.close()
        driver.switch_to.window(driver.window_handles[0])

    def test_a_hidden_tab_asks_for_nothing_and_is_fresh_when_it_is_seen(self):
        self.open("flows")
        asked = "return performance.getEntriesByType('resource').length"
        hide = """
            Object.defineProperty(document, "hidden", { value: arguments[0], configurable: true });
            document.dispatchEvent(new Event("visibilitychange"));"""
        self.browser.run("performance.setResourceTimingBufferSize(100000)")
        self.browser.run(hide, True)
        before = self.browser.run(asked)
        looks = json.loads(self.look())["number"]
        self.soon(lambda: json.loads(self.look())["number"] >= looks + 3)
        self.assertEqual(self.browser.run(asked), before)
        self.browser.run(hide, False)
        self.soon(lambda: self.browser.run(asked) > before)
        self.browser.run("delete document.hidden")

    def look(self):
        with urllib.request.urlopen(f"http://{self.server.page}/api/server") as answer:
            return answer.read()


class ProxyTest(PageTest):
    """The page behind nginx, as the manual has it: under a path, with a password, packed."""

    def expected(self, complaint):
        return "/calls/api/look" in complaint and "502" in complaint

    @browser.unittest.skipUnless(proxies.NGINX, proxies.NO_NGINX)
    def test_the_page_works_behind_a_proxy_and_says_when_the_server_behind_it_went(self):
        flow = self.load(1, 5)
        host, port = self.server.page.split(":")
        nginx = proxies.Nginx((host, int(port)))
        self.addCleanup(nginx.remove)
        user = ":".join(proxies.USER)
        place = "{}:{}".format(*nginx.address)
        with self.client("worker").permit(flow, count=2):
            self.browser.driver.get(f"http://{user}@{place}/calls/#/flow/{flow}")
            self.soon(lambda: len(self.browser.table("Holders")) == 1)
            self.assertEqual(self.browser.text(".level"), "2 / 5")
            self.assertEqual(self.browser.driver.title, f"r1, flow – nowcalls {place}/calls")
        self.soon(lambda: self.browser.text(".level") == "0 / 5")
        self.server.kill()
        self.soon(lambda: "502" in self.browser.text("#banner"))
        self.server.start()
        self.soon(lambda: self.browser.text("#state").startswith("live"))


class SignedOutTest(PageTest):
    NAME = "watcher"

    @classmethod
    def setUpClass(cls):
        directory = tempfile.mkdtemp(prefix="nowcalls-access-")
        cls.addClassCleanup(shutil.rmtree, directory)
        cls.access = os.path.join(directory, "access.toml")
        os.close(os.open(cls.access, os.O_CREAT, 0o600))
        cls.secret = cls.add(cls.NAME)
        cls.server = browser.PageServer("--access", cls.access)
        cls.addClassCleanup(cls.server.remove)
        cls.browser = browser.Browser()
        cls.addClassCleanup(cls.browser.driver.quit)

    @classmethod
    def add(cls, name):
        """The secret of a new observer."""
        admin = os.path.join(support.BIN_DIR, "nowcalls-admin")
        arguments = ["access", "add", name, "--role", "observer", "--access", cls.access]
        return subprocess.check_output([admin, *arguments], text=True).strip()

    def expected(self, complaint):
        return "401" in complaint

    def test_who_loses_access_is_told(self):
        page = self.server.page
        self.browser.driver.get(f"http://{self.NAME}:{self.secret}@{page}/#/flows")
        self.soon(lambda: self.browser.text("#state").startswith("live"))
        os.remove(self.access)
        os.close(os.open(self.access, os.O_CREAT, 0o600))
        self.add("another")
        self.soon(lambda: self.browser.text("#state") == "signed out")
        self.assertIn("reload the page to sign in", self.browser.text("#banner"))
        self.assertNotIn(self.secret, self.browser.run("return document.body.innerHTML"))
