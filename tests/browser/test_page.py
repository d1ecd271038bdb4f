"""The page shows what is: holders, waiters, keys, clients, history, and a server that went."""

import json
import os
import threading
import time
import unittest

import browser
import nowcalls
import support
from browser import Keys, PageTest
from support import rule_of_keys

HOSTILE = "<img src=x onerror=alert(1)>"

setUpModule = browser.setUpModuleOrSkip


class LiveTest(PageTest):
    # The server is looked at once a second. A busy machine takes its time to look and to show.
    SHOWN_S = 5

    def test_a_token_appears_with_its_holder_and_goes_when_it_is_released(self):
        flow = self.load(1, 3)
        client = self.client("worker-1")
        self.open(f"flow/{flow}")
        self.soon(lambda: "Nobody holds a token" in self.browser.text())
        with client.permit(flow, count=2) as permit:
            self.soon(lambda: self.browser.table("Holders") != [], self.SHOWN_S)
            (holder,) = self.browser.table("Holders")
            self.assertEqual(holder[0:2], ["worker-1", "2"])
            self.assertIn(str(permit.fence), holder)
            self.assertIn(str(permit.token_id), holder)
            self.assertEqual(self.browser.text(".level"), "2 / 3")
        self.soon(lambda: self.browser.table("Holders") == [], self.SHOWN_S)
        self.assertEqual(self.browser.text(".level"), "0 / 3")

    def test_a_waiter_is_seen_waiting_and_then_holding(self):
        flow = self.load(2, 1)
        first, second = self.client("first"), self.client("second")
        self.open(f"flow/{flow}")
        got = threading.Event()
        done = threading.Event()

        def wait():
            with second.permit(flow, wait=20):
                got.set()
                done.wait(20)

        waiting = threading.Thread(target=wait)
        with first.permit(flow):
            waiting.start()
            self.soon(lambda: self.browser.table("Waiters") != [])
            (waiter,) = self.browser.table("Waiters")
            self.assertEqual(waiter[0:3], ["1", "second", "1"])
            self.assertEqual([row[0] for row in self.browser.table("Holders")], ["first"])
            self.soon(lambda: self.browser.figure("waiting").startswith("1, "))
        got.wait(20)
        self.soon(lambda: [row[0] for row in self.browser.table("Holders")] == ["second"])
        self.assertEqual(self.browser.table("Waiters"), [])
        done.set()
        waiting.join()

    def test_keys_are_shown_with_the_fullest_first(self):
        flow = self.load(3, 4, make=rule_of_keys)
        client = self.client("worker-3")
        with client.permit(flow, param="alice", count=3), client.permit(flow, param="bob"):
            self.open(f"flow/{flow}")
            self.soon(lambda: len(self.browser.table("Keys")) == 2)
            keys = self.browser.table("Keys")
            self.assertEqual([row[0:2] for row in keys], [["alice", "3 / 4"], ["bob", "1 / 4"]])
            self.assertEqual({row[5] for row in self.browser.table("Holders")}, {"alice", "bob"})

    def test_refusals_are_shown_with_their_reason(self):
        flow = self.load(4, 1)
        client = self.client("worker-4")
        with client.permit(flow):
            self.open("flows?filter=r4")

            def refused():
                with self.assertRaises(nowcalls.Refused):
                    client.acquire(flow)
                return any("level" in row[5] for row in self.browser.table("Flows"))

            self.assertTrue(support.poll_until(refused))

    def test_clients_are_listed_with_what_they_hold(self):
        flow = self.load(5, 9)
        client = self.client("worker-5")
        with client.permit(flow, count=4):
            self.open("clients?filter=worker-5")
            self.soon(lambda: len(self.browser.table("Clients")) == 1)
            (row,) = self.browser.table("Clients")
            self.assertEqual(row[1:5], ["online", "4", "1", "0"])

    def test_a_client_is_shown_with_its_tokens_and_what_it_waits_for(self):
        first, second = self.load(51, 1), self.load(52, 9)
        client, other = self.client("worker-51"), self.client("worker-52")
        with client.permit(second, count=2) as permit, other.permit(first):
            self.open("clients?filter=worker-51")
            self.soon(lambda: len(self.browser.table("Clients")) == 1)
            self.browser.run("document.querySelector('td.name a').click()")
            self.soon(lambda: len(self.browser.table("Tokens")) == 1)
            (token,) = self.browser.table("Tokens")
            self.assertEqual(token[0:2], ["r52", "2"])
            self.assertIn(str(permit.token_id), token)
            self.assertEqual(self.browser.text("h1"), "worker-51")

            def wait():
                with client.permit(first, wait=20):
                    pass

            waiting = threading.Thread(target=wait)
            waiting.start()
            self.soon(lambda: self.browser.table("It waits for") != [])
            (waiter,) = self.browser.table("It waits for")
            self.assertEqual(waiter[0:3], ["1", "r51", "1"])
        waiting.join()
        self.soon(lambda: "It holds no token" in self.browser.text())
        self.open("client/4711")
        self.soon(lambda: "There is no such session" in self.browser.text())

    def test_what_was_taken_back_is_shown_with_why(self):
        flow = self.load(6, 1)
        permit = self.client("worker-6").acquire(flow)
        self.server.admin("reclaim", str(permit.token_id), "--reason", "by a test")
        self.open("history?filter=worker-6")
        self.soon(lambda: len(self.browser.table("Tokens")) == 1)
        (row,) = self.browser.table("Tokens")
        self.assertIn("admin\nby a test", row[1])
        self.assertEqual(row[3], "r6")

    def test_the_server_is_shown_with_its_limits(self):
        self.open("server")
        self.soon(lambda: self.browser.figure("state") == "serving")
        self.assertTrue(self.browser.figure("disk free").endswith("iB"))
        limits = dict(self.browser.table("How near"))
        self.assertEqual(limits["connections"].split(" / ")[1], "10,000")

    def test_names_are_shown_as_they_are_and_run_nothing(self):
        flow = self.load(7, 1)
        with self.client(HOSTILE).permit(flow):
            self.open(f"flow/{flow}")
            self.soon(lambda: self.browser.table("Holders") != [])
            self.assertEqual(self.browser.table("Holders")[0][0], HOSTILE)
            self.assertEqual(self.browser.run("return document.images.length"), 0)

    def test_an_unknown_flow_is_told(self):
        self.open("flow/4711")
        self.soon(lambda: "There is no such flow" in self.browser.text())

    def test_what_the_page_says_agrees_with_nowcalls_admin(self):
        flow = self.load(8, 20)
        client = self.client("worker-8")
        permits = [client.acquire(flow) for _ in range(7)]
        self.open("flows?filter=r8")
        self.soon(lambda: [row[1] for row in self.browser.table("Flows")] == ["7 / 20"])
        listed = support.json.loads(self.server.admin("flow", str(flow)))
        self.assertEqual((listed["now_calls"], listed["level"]), (7, 20))
        for permit in permits:
            permit.release()


class KeyboardTest(PageTest):
    def press(self, *keys):
        self.browser.driver.switch_to.active_element.send_keys(*keys)

    def focused(self):
        return self.browser.run("return document.activeElement.textContent")

    def test_all_is_reached_and_done_by_keyboard(self):
        self.load(1, 1)
        self.load(2, 1)
        self.open("flows")
        self.soon(lambda: len(self.browser.table("Flows")) >= 2)
        reached = []
        for _ in range(20):
            self.press(Keys.TAB)
            reached.append(self.focused())
            if reached[-1] == "Waiting":
                break
        self.assertEqual(reached[:5], ["nowcalls", "Flows", "Clients", "History", "Server"])
        self.assertEqual(reached[-1], "Waiting")
        self.press(Keys.ENTER)
        sorted_by = "return document.querySelector('[data-sort=waiting]').parentNode.ariaSort"
        self.soon(lambda: self.browser.run(sorted_by) == "descending")
        self.assertIn("sort=waiting", self.browser.driver.current_url)
        # Figures come in, the focus stays; and it can be seen.
        at = self.browser.text("#state")
        self.soon(lambda: self.browser.text("#state") != at)
        self.assertEqual(self.focused(), "Waiting")
        outline = "return getComputedStyle(document.activeElement).outlineStyle"
        self.assertEqual(self.browser.run(outline), "solid")

    def test_the_focus_stays_on_its_flow_while_figures_change(self):
        self.load(3, 10)
        self.load(4, 10)
        client = self.client("worker")
        self.open("flows?sort=now_calls&filter=r")
        with client.permit(4):
            self.soon(lambda: self.first_flow().startswith("r4"))
            self.browser.run(
                "[...document.querySelectorAll('td a')].find((a) => a.text === 'r3').focus()"
            )
            with client.permit(3, count=2):
                shown = "return document.querySelector('#main').innerText"
                self.soon(lambda: "2 / 10" in self.browser.run(shown))
                self.assertEqual(self.focused(), "r3")
        self.press(Keys.ENTER)
        self.soon(lambda: self.browser.text("h1") == "r3")

    def test_the_focus_is_in_the_view_that_a_link_opens(self):
        self.load(6, 1)
        self.open("flows?filter=r6")
        self.soon(lambda: self.first_flow().startswith("r6"))
        self.browser.run("document.querySelector('td a').focus()")
        self.press(Keys.ENTER)
        self.soon(lambda: self.browser.text(".place .copy") == "copy flow")
        self.press(Keys.TAB)
        self.assertEqual(self.focused(), "KeyboardTest")  # The namespace, the view's first link.

    def test_a_command_is_copied_and_shown(self):
        flow = self.load(5, 1)
        self.open("flows?filter=r5")
        self.soon(lambda: len(self.browser.table("Flows")) == 1)
        self.browser.run("document.querySelector('td .copy').focus()")
        self.press(Keys.ENTER)
        command = f"nowcalls-admin flow {flow} --server {self.server.address}"
        self.soon(lambda: self.browser.text("#toast code") == command)

    def test_a_word_of_the_language_is_no_view(self):
        for word in ("constructor", "__proto__", "toString"):
            self.open(word)
            self.soon(lambda: self.browser.text("nav a[aria-current=page]") == "Flows")

    def test_a_copied_address_is_one_word_for_a_shell(self):
        self.open("flows")
        self.browser.run(
            "window.copied = '';"
            "import('/dom.js').then((dom) => {"
            "  dom.setServer('a$(id).example:18730');"
            "  window.copied = dom.command('info').title;"
            "});"
        )
        line = "nowcalls-admin info --server 'a$(id).example:18730'"
        self.soon(lambda: self.browser.run("return window.copied") == line)


class RestartTest(PageTest):
    # From when the server serves until the page agrees with it.
    AGREES_S = 2.0

    def expected(self, complaint):
        # Attempts to reach a server that is not there.
        return "/api/look" in complaint and "net::ERR_" in complaint

    def test_the_page_says_that_the_server_went_and_comes_back_by_itself(self):
        flow = self.load(1, 5)
        client = self.client("worker")
        permit = client.acquire(flow, count=3)
        self.open("flows")
        self.soon(lambda: [row[1] for row in self.browser.table("Flows")] == ["3 / 5"])
        self.server.kill()
        self.soon(lambda: self.browser.text("#state") == "no connection")
        self.assertIn("No connection since", self.browser.text("#banner"))
        self.server.start()
        began = time.monotonic()
        self.soon(
            lambda: self.browser.text("#state").startswith("live")
            and not self.browser.text("#banner")
            and [row[1] for row in self.browser.table("Flows")] == ["3 / 5"],
            self.AGREES_S,
        )
        print(f"browser: the page agreed {time.monotonic() - began:.2f} s after the restart")
        self.assertEqual(self.server.now_calls(flow), 3)
        permit.release()


class CrowdTest(PageTest):
    FLOWS = 10_000
    ROWS = 50

    def test_ten_thousand_flows_are_filtered_sorted_and_paged_without_lag(self):
        for first in range(1, self.FLOWS + 1, 200):
            rules = [support.rule(flow, 10) for flow in range(first, first + 200)]
            self.server.call("rules_load", f"crowd-{first}", json.dumps(rules))
        self.open("flows")
        self.soon(lambda: f"of {self.FLOWS:,} flows" in self.browser.text(".told"))
        self.assertEqual(len(self.browser.table("Flows")), self.ROWS)
        began = time.monotonic()
        field = self.browser.driver.find_element("name", "filter")
        field.send_keys("r9876")
        self.soon(lambda: self.browser.text(".told") == "1 flow", 1.0)
        print(f"browser: 10,000 flows were filtered in {time.monotonic() - began:.2f} s")
        field.send_keys(Keys.BACKSPACE * 5)
        self.soon(lambda: f"of {self.FLOWS:,} flows" in self.browser.text(".told"))
        with self.client("worker").permit(4711):
            self.soon(lambda: self.first_flow().startswith("r4711"))
        self.browser.run("document.querySelector('.pages button:last-child').click()")
        self.soon(lambda: self.browser.text(".told").startswith("51–100 of"))


class GrowthTest(PageTest):
    """An hour of the page, with its figures as fast as it can show them."""

    MINUTES = 60
    EVENTS_A_MINUTE = 12  # Each shows five seconds at once.

    # Shows `events` snapshots on the view that is open, each as the server would answer it.
    SHOW = """
        const [events, secondsEach, done] = arguments;
        (async () => {
          const { FlowView } = await import("/flow.js");
          const json = await (await fetch("/api/flow?id=1")).json();
          const view = new FlowView();
          document.getElementById("main").replaceChildren(view.root);
          view.take(["1"]);
          const start = Math.floor(Date.now() / 1000);
          for (let event = 0; event < events; event++) {
            const now = start + event * secondsEach;
            const points = { unix_s: [] };
            for (let at = 299; at >= 0; at--) points.unix_s.push(now - at);
            for (const name of Object.keys(json.points)) {
              if (name === "unix_s") continue;
              points[name] = points.unix_s.map((second) => (second * 7919) % 100);
            }
            const tokens = Array.from({ length: 50 }, (_, i) => ({
              ...json.detail?.tokens[0], token_id: String(event * 50 + i), client_id: `w${i}`,
              issued_ms: now * 1000, issued_age_ms: event, deadline_in_ms: 1000 - event,
            }));
            view.show({ ...json, unix_ms: now * 1000, points,
                        detail: { tokens, more_tokens: true, waiters: [], params: [] } });
            if (event % 20 === 0) await new Promise((shown) => setTimeout(shown, 0));
          }
          view.close();
        })().then(() => done(""), (error) => done(String(error)));"""

    def measure(self):
        self.browser.command("HeapProfiler.collectGarbage", {})
        metrics = self.browser.command("Performance.getMetrics", {})["metrics"]
        found = {metric["name"]: metric["value"] for metric in metrics}
        return {name: found[name] for name in ("JSHeapUsedSize", "Nodes", "JSEventListeners")}

    def show(self, minutes):
        self.browser.driver.set_script_timeout(300)
        events = minutes * self.EVENTS_A_MINUTE
        error = self.browser.driver.execute_async_script(
            self.SHOW, events, 60 // self.EVENTS_A_MINUTE
        )
        self.assertEqual(error, "")

    def test_an_open_page_does_not_grow(self):
        self.load(1, 5)
        with self.client("worker").permit(1):
            self.open("flow/1")
            self.soon(lambda: self.browser.table("Holders") != [])
            self.browser.command("Performance.enable", {})
            self.browser.command("HeapProfiler.enable", {})
            self.show(5)
            before = self.measure()
            self.show(self.MINUTES)
            after = self.measure()
            print(f"browser: an hour of the page: {before} -> {after}")
            self.assertLess(after["JSHeapUsedSize"], before["JSHeapUsedSize"] + 2_000_000)
            self.assertLess(after["Nodes"], before["Nodes"] + 500)
            self.assertLess(after["JSEventListeners"], before["JSEventListeners"] + 50)


class PictureTest(PageTest):
    """Every view in all widths and schemes; the pictures are for people to look at."""

    VIEWS = ("flows", "flow/1", "flow/2", "clients", "client/N", "history", "server")

    def scene(self):
        """A few flows as they may be; what is returned ends it."""
        words = ("checkout", "render-report", "chat completions with a name that is long", "batch")
        for i, word in enumerate(words, 1):
            self._rules.append({**support.rule(i, i * 5), "resource": word})
        self.server.call("rules_load", self.namespace, support.json.dumps(self._rules))
        self.load(5, 6, make=rule_of_keys)
        clients = [self.client(f"worker-{i}") for i in range(4)]
        permits = []
        for i, client in enumerate(clients):
            permits.append(client.acquire(1, count=2 if i == 0 else 1))
            permits.append(client.acquire(2, count=i + 1))
            permits.append(client.acquire(5, param=f"user-{i}", count=i + 1))
        taken = clients[0].acquire(4)
        self.server.admin("reclaim", str(taken.token_id), "--reason", "stuck since noon")
        over = threading.Event()

        def wait(client):
            while not over.is_set():
                try:
                    client.acquire(1, wait=1).release()
                except nowcalls.Error:
                    pass

        threads = [threading.Thread(target=wait, args=(client,)) for client in clients[:2]]
        for thread in threads:
            thread.start()

        def end():
            over.set()
            for thread in threads:
                thread.join()
            for permit in permits:
                permit.release()

        return end

    def test_every_view_fits_its_width_in_light_dark_and_forced_colours(self):
        self.addCleanup(self.scene())
        worker = support.json.loads(self.server.admin("sessions", "--client", "worker-0"))
        for width, height, scheme in (
            (1280, 900, "light"),
            (1280, 900, "dark"),
            (1280, 900, "forced"),
            (390, 844, "light"),
            (390, 844, "dark"),
            (320, 640, "light"),
            (320, 640, "forced"),
        ):
            tab = browser.Browser(width, height, scheme)
            self.addCleanup(tab.driver.quit)
            for view in self.VIEWS:
                with self.subTest(width=width, scheme=scheme, view=view):
                    self.open(view.replace("N", str(worker["session"])), tab)
                    first = tab.text("#state")
                    self.soon(lambda: tab.text("#state") != first)  # Charts have a line.
                    wide = tab.run("return document.documentElement.scrollWidth")
                    self.assertLessEqual(wide, width)
                    self.assertEqual(tab.console(), [])
                    if browser.SCREENSHOTS:
                        name = f"{view.replace('/', '-')}-{width}-{scheme}.png"
                        tab.driver.save_screenshot(os.path.join(browser.SCREENSHOTS, name))


if __name__ == "__main__":
    unittest.main()
