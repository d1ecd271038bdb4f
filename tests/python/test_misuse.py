"""What programs do wrong, and what a client then says or mends."""

import asyncio
import contextlib
import gc
import math
import os
import socket
import subprocess
import sys
import threading
import unittest
import warnings
from unittest import mock

import nowcalls
from support import PATIENCE_S, ServerTest, rule


class BlackHole:
    """An address that takes no connection and refuses none."""

    def __init__(self, host="127.0.0.1", port=0):
        self._listener = socket.socket()
        self._listener.bind((host, port))
        self._listener.listen(0)
        self._fill = []
        for _ in range(2):
            sock = socket.socket()
            sock.setblocking(False)
            sock.connect_ex(self._listener.getsockname())
            self._fill.append(sock)

    def close(self):
        for sock in (self._listener, *self._fill):
            sock.close()


@contextlib.contextmanager
def warned():
    """The warnings of what happens within, those of destructors too."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield caught
        gc.collect()


class AsyncMisuseTest(ServerTest):
    def make_client(self, address=None, **settings):
        settings.setdefault("fallback", "fail")
        address = address or self.server.address
        return nowcalls.aio.Client(address, namespace=self.namespace, **settings)

    def test_a_client_on_another_event_loop_asks_nothing_and_says_so(self):
        flow = self.load(rule, 5)
        client = self.make_client()

        async def first():
            await (await client.acquire(flow)).release()

        async def second():
            with self.assertRaisesRegex(nowcalls.BadRequest, "another event loop"):
                await client.acquire(flow)
            with self.assertRaisesRegex(nowcalls.BadRequest, "another event loop"):
                await client.close()

        loop = asyncio.new_event_loop()
        loop.run_until_complete(first())
        for _ in range(5):
            asyncio.run(second())
        self.assertEqual(self.server.call("flow", flow)["counters"]["granted"], 1)
        loop.run_until_complete(client.close())
        loop.close()

    def test_a_timeout_that_is_no_number_of_seconds_is_refused_before_anything_is_sent(self):
        flow = self.load(rule, 5)
        wrong = ("2", math.nan, math.inf, -1, True, [])

        async def use():
            async with self.make_client() as client:
                for timeout in wrong:
                    with self.assertRaisesRegex(nowcalls.BadRequest, "timeout must be"):
                        await client.acquire(flow, timeout=timeout)
                    with self.assertRaisesRegex(nowcalls.BadRequest, "timeout must be"):
                        self.make_client(timeout=timeout)

        asyncio.run(use())
        client = self.client()
        for timeout in wrong:
            with self.assertRaisesRegex(nowcalls.BadRequest, "timeout must be"):
                client.acquire(flow, timeout=timeout)
            with self.assertRaisesRegex(nowcalls.BadRequest, "timeout must be"):
                self.client(timeout=timeout)
        self.assertEqual(self.server.now_calls(flow), 0)

    def test_a_dead_first_address_of_a_name_leaves_time_for_the_second(self):
        hole = BlackHole()
        self.addCleanup(hole.close)
        port = int(self.server.address.split(":")[1])
        dead = (socket.AF_INET, socket.SOCK_STREAM, 6, "", hole._listener.getsockname())
        alive = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))

        def find(*_, **__):
            return [dead, alive]

        async def use():
            async with self.make_client("name.test:1", timeout=1.5) as client:
                await client.ping(timeout=PATIENCE_S)

        with mock.patch("socket.getaddrinfo", find):
            asyncio.run(use())
            self.client("name.test:1", timeout=1.5).ping(timeout=PATIENCE_S)

    def test_a_coroutine_that_is_told_of_a_loss_and_fails_harms_nobody(self):
        flow = self.load(rule, 2)

        async def fail(permit):
            raise SystemExit(3)

        def fail_at_once(permit):
            raise KeyboardInterrupt

        async def use():
            async with self.make_client(on_lost=fail) as client:
                permit = await client.acquire(flow, on_lost=fail_at_once)
                self.server.call("reclaim", permit.token_id, "the test")
                while not permit.lost:
                    await asyncio.sleep(0.01)
                await client.ping()

        with self.assertLogs("nowcalls", "ERROR") as logged:
            asyncio.run(use())
        self.assertEqual(len([line for line in logged.output if "on_lost of" in line]), 2)

    def test_a_dropped_async_permit_is_warned_of_and_released(self):
        flow = self.load(rule, 1)

        async def use():
            async with self.make_client() as client:
                with warned() as caught:
                    await client.acquire(flow)
                self.assertIn(ResourceWarning, [warning.category for warning in caught])
                async with client.permit(flow, wait=PATIENCE_S):
                    pass

        asyncio.run(use())

    def test_an_unclosed_async_client_is_warned_of_and_ends(self):
        async def use():
            client = self.make_client(client_id="unclosed")
            await client.ping()
            with warned() as caught:
                del client
            self.assertIn(ResourceWarning, [warning.category for warning in caught])
            while len(asyncio.all_tasks()) > 1:
                await asyncio.sleep(0.01)

        asyncio.run(use())
        self.assert_soon(lambda: "unclosed" not in str(self.server.call("sessions", 1000)))

    def test_a_plain_function_under_the_async_decorator_is_refused(self):
        client = self.make_client()
        with self.assertRaisesRegex(nowcalls.BadRequest, "write async def"):
            client.permit(1)(lambda: None)

    def test_a_coroutine_function_under_the_async_decorator_is_limited(self):
        flow = self.load(rule, 1)

        async def use():
            async with self.make_client() as client:

                @client.permit(flow)
                async def call():
                    return self.server.now_calls(flow)

                self.assertEqual([await call(), await call()], [1, 1])

        asyncio.run(use())
        self.assertEqual(self.server.now_calls(flow), 0)


class MisuseTest(ServerTest):
    def test_a_coroutine_function_under_the_blocking_decorator_is_refused_with_what_to_use(self):
        client = self.client()

        async def call():
            pass

        async def pages():
            yield 1

        def numbers():
            yield 1

        for function, words in (
            (call, "permit of a nowcalls.aio.Client"),
            (pages, "permit of a nowcalls.aio.Client"),
            (numbers, "with client.permit"),
        ):
            with self.assertRaisesRegex(nowcalls.BadRequest, words):
                client.permit(5)(function)

    def test_a_callback_that_raises_whatever_it_likes_leaves_the_client_alive(self):
        flow = self.load(rule, 4)
        client = self.client()
        for error in (SystemExit(1), KeyboardInterrupt(), GeneratorExit(), ValueError("no")):

            def fail(permit, error=error):
                raise error

            permit = client.acquire(flow, on_lost=fail)
            other = client.acquire(flow)
            with self.assertLogs("nowcalls", "ERROR"):
                self.server.call("reclaim", permit.token_id, "the test")
                self.assert_soon(lambda: permit.lost)
                client.ping()
            self.assertTrue(other.keep())
            self.assertTrue(other.release())

    def test_if_the_thread_dies_all_permits_are_lost_and_calls_say_why(self):
        flow = self.load(rule, 4)
        told = []
        client = self.client(on_lost=told.append)
        permit = client.acquire(flow)
        with self.assertLogs("nowcalls", "CRITICAL"):
            with mock.patch.object(client._worker._session, "tick", side_effect=MemoryError("no")):
                with self.assertRaises(nowcalls.Error):
                    client.ping()
                self.assert_soon(lambda: told == [permit])
        self.assertTrue(permit.lost)
        with self.assertRaisesRegex(nowcalls.BadRequest, "thread ended: MemoryError"):
            client.acquire(flow)

    def test_a_dropped_permit_is_warned_of_and_released(self):
        flow = self.load(rule, 1)
        client = self.client()
        with self.assertLogs("nowcalls", "WARNING") as logged, warned() as caught:
            client.acquire(flow)
            self.assert_soon(lambda: self.server.now_calls(flow) == 0)
        self.assertEqual([warning.category for warning in caught], [ResourceWarning])
        self.assertIn("was dropped", logged.output[0])
        client.acquire(flow).release()

    def test_a_permit_dropped_within_a_cycle_is_released_when_the_cycle_is_collected(self):
        flow = self.load(rule, 1)
        client = self.client()
        with warned():
            cycle = [client.acquire(flow)]
            cycle.append(cycle)
            del cycle
        self.assert_soon(lambda: self.server.now_calls(flow) == 0)

    def test_a_dropped_local_permit_gives_its_share_back(self):
        client = self.client("127.0.0.1:1", fallback="local", local_levels={5: 1}, timeout=1.0)
        for _ in range(3):
            with warned():
                self.assertTrue(client.acquire(5).local)

    def test_unclosed_clients_are_warned_of_and_leave_no_thread(self):
        before = threading.active_count()
        with warned() as caught:
            clients = [self.unclosed() for _ in range(60)]
            self.assertEqual(threading.active_count(), before + 60)
            del clients
        categories = [warning.category for warning in caught]
        self.assertEqual(categories, [ResourceWarning] * 60)
        self.assertIn("unclosed", str(caught[0].message))
        self.assert_soon(lambda: threading.active_count() == before)

    def unclosed(self):
        client = nowcalls.Client(self.server.address, namespace=self.namespace)
        client.ping()
        return client

    def test_the_port_of_a_web_page_is_told_as_such(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            address = "127.0.0.1:%d" % listener.getsockname()[1]

            def serve():
                while True:
                    try:
                        sock, _ = listener.accept()
                    except OSError:
                        return
                    with sock:
                        sock.recv(100)
                        sock.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

            thread = threading.Thread(target=serve)
            thread.start()
            client = self.client(address, timeout=0.5)
            with self.assertRaisesRegex(nowcalls.Unavailable, "speaks HTTP; the token port"):
                client.ping()
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()

    def test_the_port_of_the_servers_own_page_is_told_as_such(self):
        server = self.own_server("--http", "127.0.0.1:0")
        self.assert_soon(lambda: "health on http://" in server.log())
        address = server.log().split("health on http://")[1].split("/")[0]
        client = self.client(address, timeout=0.3)
        with self.assertRaisesRegex(nowcalls.Unavailable, "is that a nowcalls-server"):
            client.ping()

    def test_a_peer_that_ends_the_connection_is_told_as_such(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            client = self.client("127.0.0.1:%d" % listener.getsockname()[1], timeout=0.3)
            threading.Thread(target=lambda: listener.accept()[0].close()).start()
            with self.assertRaisesRegex(
                nowcalls.Unavailable, "before hello was answered; is that a nowcalls-server"
            ):
                client.ping()

    def test_a_peer_that_says_nothing_is_told_as_such(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            client = self.client("127.0.0.1:%d" % listener.getsockname()[1], timeout=0.3)
            with self.assertRaisesRegex(nowcalls.Unavailable, "is that a nowcalls-server"):
                client.ping(timeout=0.2)

    def test_an_address_is_no_url(self):
        for address in ("http://x:1", "x:1/path", "a:b:1", "::1:x", "tcp://1.2.3.4"):
            with self.assertRaisesRegex(nowcalls.BadRequest, "HOST:PORT"):
                self.client(address)
        for address in ("::1", "[::1]:5", "fe80::1%lo"):
            nowcalls.Client(address).close()

    def test_names_are_looked_up_by_position_as_eventlet_has_it(self):
        asked = []
        real = socket.getaddrinfo

        def find(host, port, family=0, socktype=0, proto=0, flags=0, /):
            asked.append((host, port))
            return real(host, port, family, socktype, proto, flags)

        with mock.patch("socket.getaddrinfo", find):
            self.client(f"localhost:{self.server.address.split(':')[1]}").ping()
        self.assertTrue(asked)

    def test_a_name_that_is_looked_up_for_ever_holds_up_nobody(self):
        end = threading.Event()
        self.addCleanup(end.set)

        def find(host, port, family, kind, protocol, flags):
            if not flags & socket.AI_NUMERICHOST:
                end.wait(PATIENCE_S)
            raise socket.gaierror("not found")

        with mock.patch("socket.getaddrinfo", find):
            client = self.client("name.test:1", timeout=0.2)
            with self.assertRaises(nowcalls.Unavailable):
                client.ping()
            client.close()

    def test_the_package_is_typed_strictly(self):
        root = os.path.dirname(os.path.dirname(nowcalls.__file__))
        command = ["mypy", "--strict", "--cache-dir", os.devnull, "nowcalls"]
        try:
            done = subprocess.run(command, cwd=root, capture_output=True, text=True)
        except FileNotFoundError:
            self.skipTest("mypy is not installed")
        self.assertEqual(done.returncode, 0, done.stdout)


class OutcomeTest(ServerTest):
    def outcomes(self, flow):
        return self.server.call("flow", flow)["counters"].get("outcomes", {})

    def test_a_block_tells_the_server_how_its_call_ended(self):
        flow = self.load(rule, 9)
        client = self.client()
        for error in (None, ValueError, asyncio.TimeoutError, TimeoutError, asyncio.CancelledError):
            with contextlib.suppress(BaseException), client.permit(flow):
                if error is not None:
                    raise error
        with contextlib.suppress(ValueError), client.acquire(flow):
            raise ValueError
        client.acquire(flow).release("failed")
        client.acquire(flow).release()
        self.assertEqual(self.outcomes(flow), {"failed": 3, "timeout": 3})

    def test_an_async_block_does_so_too(self):
        flow = self.load(rule, 9)

        async def use():
            address = self.server.address
            async with nowcalls.aio.Client(address, namespace=self.namespace) as client:
                for error in (None, ValueError, asyncio.TimeoutError, asyncio.CancelledError):
                    with contextlib.suppress(BaseException):
                        async with client.permit(flow):
                            if error is not None:
                                raise error
                await (await client.acquire(flow)).release("timeout")

        asyncio.run(use())
        self.assertEqual(self.outcomes(flow), {"failed": 1, "timeout": 3})


class InstanceTest(ServerTest):
    def test_a_restarted_worker_is_not_locked_out_by_its_ghost(self):
        flow = self.load(rule, 1, clientOfflineTime=300, resourceTimeout=600_000)
        program = (
            "import os, nowcalls\n"
            f"client = nowcalls.Client({self.server.address!r}, namespace={self.namespace!r},"
            " client_id='worker', fallback='fail')\n"
            f"permit = client.acquire({flow})\n"
            "os._exit(0)\n"
        )
        subprocess.run([sys.executable, "-B", "-c", program], check=True)
        client = self.client(client_id="worker")
        with client.permit(flow, wait=PATIENCE_S):
            pass

    def test_one_that_rejoins_has_the_tokens_of_the_process_before(self):
        flow = self.load(rule, 1)
        first = self.client(client_id="worker", rejoin=True)
        permit = first.acquire(flow)
        first.close()
        second = self.client(client_id="worker", rejoin=True)
        second.ping()
        self.assertTrue([row for row in second.tokens(flow_id=flow) if row["online"]])
        self.server.call("reclaim", permit.token_id, "the test is over")
        with self.assertRaises(nowcalls.Unavailable):
            permit.release()

    def test_all_clients_of_a_process_are_one_instance_and_a_child_is_another(self):
        from nowcalls._fork import instance

        own = instance()
        self.assertEqual(instance(), own)
        receive, send = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(send, str(instance()).encode())
            os._exit(0)
        os.waitpid(child, 0)
        self.assertNotEqual(int(os.read(receive, 100)), own)
        os.close(receive)
        os.close(send)

    def test_an_exclusive_client_refuses_a_second_process(self):
        self.client(client_id="only").ping()
        with mock.patch("nowcalls._fork.instance", lambda: 77):
            second = self.client(client_id="only", exclusive=True, timeout=0.5)
        with self.assertRaisesRegex(nowcalls.Unavailable, "CONFLICT"):
            second.ping()


if __name__ == "__main__":
    unittest.main()
