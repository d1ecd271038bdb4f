"""Clients whose connection breaks, whose server is killed, or that have none."""

import contextlib
import gc
import json
import os
import threading
import time
import unittest
from unittest import mock

import nowcalls
from support import PATIENCE_S, Proxy, ServerTest, rule


def start(function, *args, **kwargs):
    """Runs a function in a thread. Returns a function that waits for the outcome."""
    outcome = []

    def run():
        try:
            outcome.append((function(*args, **kwargs), None))
        except BaseException as error:
            outcome.append((None, error))

    thread = threading.Thread(target=run)
    thread.start()

    def finish():
        thread.join()
        value, error = outcome[0]
        if error is not None:
            raise error
        return value

    return finish


class BrokenConnectionTest(ServerTest):
    def test_permits_survive_a_broken_connection(self):
        flow = self.load(rule, 2)
        proxy = self.proxy()
        client = self.client(proxy.address)
        permit = client.acquire(flow)
        proxy.cut()
        client.ping()
        self.assertFalse(permit.lost)
        self.assertTrue(permit.release())
        self.assertEqual(self.server.now_calls(flow), 0)

    def test_an_acquire_whose_answer_was_lost_is_asked_again_and_gives_one_token(self):
        flow = self.load(rule, 5)
        proxy = self.proxy()
        client = self.client(proxy.address, timeout=PATIENCE_S)
        client.ping()
        proxy.answers = False
        finish = start(client.acquire, flow)
        self.assert_soon(lambda: self.server.now_calls(flow) == 1)
        token_id = next(iter(self.server.call("tokens", {"flow_id": flow})[0]))["token_id"]
        proxy.answers = True
        proxy.cut()
        permit = finish()
        self.assertEqual(permit.token_id, token_id)
        self.assertEqual(self.server.call("flow", flow)["counters"]["granted"], 1)
        permit.release()

    def test_a_waiting_acquire_is_granted_on_the_next_connection(self):
        flow = self.load(rule, 1)
        proxy = self.proxy()
        client = self.client(proxy.address)
        first = client.acquire(flow)
        finish = start(client.acquire, flow, wait=30)
        self.assert_soon(lambda: self.server.waiters(flow) == 1)
        proxy.cut()
        first.release()
        second = finish()
        self.assertGreater(second.fence, first.fence)
        second.release()

    def test_a_release_whose_answer_was_lost_is_a_release(self):
        flow = self.load(rule, 1)
        proxy = self.proxy()
        client = self.client(proxy.address, timeout=PATIENCE_S)
        permit = client.acquire(flow)
        proxy.answers = False
        finish = start(permit.release)
        self.assert_soon(lambda: self.server.now_calls(flow) == 0)
        proxy.answers = True
        proxy.cut()
        self.assertTrue(finish())
        self.assertFalse(permit.lost)

    def test_an_acquire_that_got_no_answer_is_unknown_and_cancelled_on_the_same_connection(self):
        flow = self.load(rule, 1)
        proxy = self.proxy()
        client = self.client(proxy.address)
        client.ping()
        proxy.answers = False
        with self.assertRaises(nowcalls.OutcomeUnknown):
            client.acquire(flow, timeout=0.3)
        self.assert_soon(lambda: self.server.now_calls(flow) == 0)
        self.assertEqual(self.server.call("flow", flow)["counters"]["ended"]["cancelled"], 1)
        proxy.answers = True
        proxy.cut()

    def test_an_acquire_that_got_no_answer_is_cancelled_once_there_is_a_connection(self):
        flow = self.load(rule, 1)
        proxy = self.proxy()
        client = self.client(proxy.address)
        client.ping()
        proxy.answers = False
        finish = start(client.acquire, flow, timeout=0.8)
        self.assert_soon(lambda: self.server.now_calls(flow) == 1)
        proxy.accepts = False
        proxy.cut()
        with self.assertRaises(nowcalls.OutcomeUnknown):
            finish()
        self.assertEqual(self.server.now_calls(flow), 1)
        proxy.answers = proxy.accepts = True
        self.assert_soon(lambda: self.server.now_calls(flow) == 0)
        self.assert_soon(lambda: client.stats()["unsettled"] == 0)

    def test_a_request_for_calls_a_second_is_not_asked_twice(self):
        flow = self.load(rule, 1000)
        proxy = self.proxy()
        client = self.client(proxy.address, timeout=PATIENCE_S)
        client.ping()
        proxy.answers = False
        finish = start(client.request, flow)
        self.assert_soon(lambda: self.server.call("flow", flow).get("rate", {}).get("passed") == 1)
        proxy.answers = True
        proxy.cut()
        with self.assertRaises(nowcalls.OutcomeUnknown):
            finish()
        client.ping()
        self.assertEqual(self.server.call("flow", flow)["rate"]["passed"], 1)

    def test_the_end_of_a_block_does_not_wait_for_a_server_that_is_gone(self):
        flow = self.load(rule, 1)
        proxy = self.proxy()
        client = self.client(proxy.address, timeout=PATIENCE_S)
        with self.assertLogs("nowcalls", "WARNING") as logged, client.permit(flow) as permit:
            proxy.accepts = False
            proxy.cut()
            self.assert_soon(lambda: not client.stats()["connected"])
            began = time.monotonic()
        self.assertLess(time.monotonic() - began, PATIENCE_S / 2)
        self.assertIn("released in the background", logged.output[-1])
        self.assertEqual(self.server.now_calls(flow), 1)
        proxy.accepts = True
        self.assert_soon(lambda: self.server.now_calls(flow) == 0)
        self.assertTrue(permit.released)

    def test_two_hundred_reconnects_leave_no_thread_and_no_descriptor(self):
        flow = self.load(rule, 1)
        proxy = self.proxy()
        with mock.patch("nowcalls._dialing.PAUSE_MIN_S", 0.001):
            client = self.client(proxy.address)
            permit = client.acquire(flow)

            def usage():
                gc.collect()
                return threading.active_count(), len(os.listdir("/proc/self/fd"))

            before = usage()
            for _ in range(200):
                proxy.cut()
                client.ping(timeout=PATIENCE_S)
            self.assert_soon(lambda: usage() == before, f"{before} before, {usage()} after")
        self.assertGreaterEqual(client.stats()["connects"], 150)
        self.assertFalse(permit.lost)
        self.assertTrue(permit.release())
        client.close()
        self.assert_soon(lambda: usage()[0] < before[0] and usage()[1] < before[1])

    def test_a_session_that_lost_its_tokens_while_it_was_cut_off_tells_so(self):
        flow = self.load(rule, 2, clientOfflineTime=200)
        proxy = self.proxy()
        told = []
        client = self.client(proxy.address, on_lost=told.append)
        kept, unkept = client.acquire(flow), client.acquire(flow, keep=False)
        proxy.accepts = False
        proxy.cut()
        self.assert_soon(lambda: self.server.now_calls(flow) == 0)
        proxy.accepts = True
        self.assert_soon(lambda: len(told) == 2)
        self.assertTrue(kept.lost and unkept.lost)
        self.assertFalse(kept.release())


class UnreachableTest(ServerTest):
    def unreachable(self):
        """An address at which nobody listens."""
        proxy = Proxy(self.server.address)
        proxy.close()
        return proxy.address

    def test_without_a_server_calls_are_unavailable_after_the_timeout(self):
        client = self.client(self.unreachable(), timeout=0.2)
        with self.assertRaises(nowcalls.Unavailable) as caught:
            client.acquire(1)
        self.assertIn("Connection refused", str(caught.exception))
        with self.assertRaises(nowcalls.Unavailable):
            client.ping()

    def test_addresses_are_tried_in_turn(self):
        flow = self.load(rule, 1)
        client = self.client([self.unreachable(), self.unreachable(), self.server.address])
        with client.permit(flow):
            self.assertEqual(client.stats()["address"], self.server.address)

    def test_a_client_moves_to_the_next_address_and_keeps_its_permits(self):
        flow = self.load(rule, 1)
        first, second = self.proxy(), self.proxy()
        client = self.client([first.address, second.address])
        permit = client.acquire(flow)
        first.accepts = False
        first.cut()
        client.ping()
        self.assertEqual(client.stats()["address"], second.address)
        self.assertTrue(permit.release())

    def test_a_name_with_several_addresses_is_dialled(self):
        port = self.server.address.split(":")[1]
        self.client(f"localhost:{port}").ping()

    def test_closing_ends_an_attempt_to_connect(self):
        # A full listen queue: connections to it stay in progress.
        import socket

        with socket.socket() as listener, socket.socket() as first, socket.socket() as second:
            listener.bind(("127.0.0.1", 0))
            listener.listen(0)
            for sock in (first, second):
                sock.setblocking(False)
                sock.connect_ex(listener.getsockname())
            client = self.client("127.0.0.1:%d" % listener.getsockname()[1], timeout=PATIENCE_S)
            time.sleep(0.05)
            began = time.monotonic()
            client.close()
            self.assertLess(time.monotonic() - began, 1.5)

    def test_a_peer_that_does_not_speak_the_protocol_is_named(self):
        import socket

        with socket.create_server(("127.0.0.1", 0)) as listener:

            def answer():
                while True:
                    try:
                        sock, _ = listener.accept()
                    except OSError:
                        return
                    with sock:
                        sock.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

            thread = threading.Thread(target=answer)
            thread.start()
            client = self.client("127.0.0.1:%d" % listener.getsockname()[1], timeout=0.5)
            with self.assertRaises(nowcalls.Unavailable) as caught:
                client.ping()
            self.assertIn("does not speak nowcalls", str(caught.exception))
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


class KilledServerTest(ServerTest):
    def make_server(self):
        return self.own_server()

    def test_a_permit_outlives_kill_9_and_is_released_afterwards(self):
        flow = self.load(rule, 1, resourceTimeout=10_000)
        client = self.client(client_id="worker-1", timeout=PATIENCE_S)
        permit = client.acquire(flow)
        self.server.kill()
        self.server.start()
        # The client returns by itself and keeps the permit, which is valid for 20 s.
        self.assert_soon(lambda: client.stats()["kept"] >= 1)
        self.assertFalse(permit.lost)
        self.assertEqual([row["token_id"] for row in client.tokens()], [permit.token_id])
        self.assertTrue(permit.release())
        self.assertEqual(self.server.now_calls(flow), 0)

    def test_cut_connections_and_kill_9_under_load_neither_exceed_the_level_nor_leave_tokens(self):
        flow = self.load(rule, 3)
        proxy = self.proxy()
        client = self.client(proxy.address, timeout=PATIENCE_S)
        lock = threading.Lock()
        end = threading.Event()
        held, most, done = 0, 0, 0

        def work():
            nonlocal held, most, done
            while not end.is_set():
                with client.permit(flow, wait=PATIENCE_S) as permit:
                    with lock:
                        held += 1
                        most = max(most, held)
                        done += 1
                    end.wait(0.002)
                    with lock:
                        held -= 1
                    self.assertFalse(permit.lost)

        workers = [start(work) for _ in range(8)]
        for life in range(2):
            for _ in range(10):
                end.wait(0.03)
                proxy.cut()
            if life == 0:
                self.server.kill()
                self.server.start()
        end.set()
        for finish in workers:
            finish()
        self.assertLessEqual(most, 3)
        self.assertGreater(done, 5)
        self.assertGreater(client.stats()["asked_again"], 0)
        self.assert_soon(lambda: self.server.now_calls(flow) == 0)

    def test_calls_that_wait_go_on_after_an_orderly_restart(self):
        flow = self.load(rule, 1)
        client = self.client(timeout=PATIENCE_S)
        permit = client.acquire(flow)
        finish = start(client.acquire, flow, wait=60)
        self.assert_soon(lambda: self.server.waiters(flow) == 1)
        self.server.terminate()
        self.server.start()
        self.assertTrue(permit.release())
        self.assertTrue(finish().release())


class FallbackTest(ServerTest):
    def down(self, client, proxy):
        proxy.accepts = False
        proxy.cut()
        self.assert_soon(lambda: not client.stats()["connected"])

    def test_a_local_share_of_the_last_known_level_admits_while_no_server_is_reached(self):
        flow = self.load(rule, 7)
        proxy = self.proxy()
        self.client().ping()
        client = self.client(proxy.address, fallback="local", timeout=PATIENCE_S)
        with client.permit(flow):
            self.assertEqual(client.stats()["sessions_online"], 2)
        with self.assertLogs("nowcalls", "WARNING"):
            self.down(client, proxy)
            began = time.monotonic()
            permits = [client.acquire(flow) for _ in range(3)]
        self.assertTrue(all(permit.local and permit.token_id == 0 for permit in permits))
        with self.assertRaises(nowcalls.Refused) as caught:
            client.acquire(flow)
        self.assertTrue(caught.exception.local)
        self.assertEqual((caught.exception.now_calls, caught.exception.level), (3, 3))
        permits.pop().release()
        with client.permit(flow) as permit:
            self.assertTrue(permit.local and permit.keep())
        self.assertLess(time.monotonic() - began, PATIENCE_S / 2)  # Nothing waited for the timeout.
        stats = client.stats()
        self.assertEqual((stats["local_granted"], stats["local_refused"]), (4, 1))
        # Back to the server by itself, which never hears of local permits.
        proxy.accepts = True
        self.assert_soon(lambda: client.stats()["connected"])
        with client.permit(flow) as permit:
            self.assertGreater(permit.token_id, 0)
            for local in permits:
                self.assertTrue(local.release())
            self.assertEqual(self.server.now_calls(flow), 1)
        self.assertEqual(self.server.call("flow", flow)["counters"]["granted"], 2)

    def test_with_the_server_gone_each_kind_of_rule_limits_as_its_field_says(self):
        server = self.own_server()
        config = {"thresholdType": 1, "resourceTimeoutStrategy": 2}
        flow_rule = {"resource": "a", "grade": 0, "count": 3, "clusterMode": True}
        of_keys = {**flow_rule, "paramIdx": 0}
        hotspot = {"resource": "a", "metricType": 0, "paramIndex": 0, "threshold": 3}
        hotspot["clusterMode"] = True
        kinds = {  # And what a rule says that leaves the field out.
            **{1: (flow_rule, {}, True), 2: (flow_rule, {"fallbackToLocalWhenFail": False}, False)},
            **{3: (of_keys, {}, False), 4: (of_keys, {"fallbackToLocalWhenFail": True}, True)},
            **{5: (hotspot, {}, True), 6: (hotspot, {"fallbackToLocalWhenFail": False}, False)},
        }
        rules = [
            {**kind, "clusterConfig": {**config, **own, "flowId": flow_id}}
            for flow_id, (kind, own, _) in kinds.items()
        ]
        server.call("rules_load", "kinds", json.dumps(rules))
        client = nowcalls.Client(server.address, namespace="kinds", timeout=PATIENCE_S)
        self.addCleanup(client.close)
        for flow_id in kinds:  # Rules are known once they were asked under.
            client.acquire(flow_id, param=None if flow_id < 3 else "seen").release()
        client.ping()
        server.kill()
        with self.assertLogs("nowcalls", "WARNING"):
            self.assert_soon(lambda: client.acquire(1).local)
            for flow_id, (_, _, limits) in kinds.items():
                admitted, permits = 0, []
                with contextlib.suppress(nowcalls.Refused):
                    for _ in range(10):
                        param = None if flow_id < 3 else "never seen"
                        permits.append(client.acquire(flow_id, param=param))
                        admitted += 1
                self.assertEqual(admitted, 3 if limits else 10, kinds[flow_id])
                for permit in permits:
                    permit.release()

    def test_a_flow_of_unknown_level_is_unavailable_unless_a_level_is_configured(self):
        client = self.client("127.0.0.1:1", fallback="local", local_levels={5: 1}, timeout=1.0)
        with client.permit(5) as permit:
            self.assertTrue(permit.local)
            with self.assertRaises(nowcalls.Refused):
                client.acquire(5)
        with self.assertRaises(nowcalls.Unavailable):
            client.acquire(6)

    def test_pass_lets_calls_and_requests_through_and_counts_them(self):
        client = self.client("127.0.0.1:1", fallback="pass", timeout=1.0)
        with client.permit(5), client.permit(5, 100):
            self.assertEqual(client.request(5), nowcalls.Rate(-1, 0.0))
        self.assertEqual(client.stats()["local_passed"], 3)

    def test_an_acquire_that_got_no_answer_falls_back_and_is_cancelled(self):
        flow = self.load(rule, 5)
        proxy = self.proxy()
        client = self.client(proxy.address, fallback="local")
        client.acquire(flow).release()
        proxy.answers = False
        with client.permit(flow, timeout=0.3) as permit:
            self.assertTrue(permit.local)
            self.assert_soon(lambda: self.server.now_calls(flow) == 0)
        proxy.answers = True
        proxy.cut()


if __name__ == "__main__":
    unittest.main()
