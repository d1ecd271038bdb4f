"""HTTP through nginx, as the manual puts it before a server."""

from __future__ import annotations

import base64
import gzip
import http.client
import json
import unittest
import zlib
from typing import Any, Dict

import proxies
from support import PATIENCE_S, poll_until, rule
from test_http import Site

USER = "Basic " + base64.b64encode(":".join(proxies.USER).encode()).decode()


@unittest.skipUnless(proxies.NGINX, proxies.NO_NGINX)
class ProxyTest(unittest.TestCase):
    def setUp(self) -> None:
        self.site = Site(rule(7, 3))
        self.addCleanup(self.site.server.remove)

    def nginx(self, *arguments: Any, **replaced: str) -> proxies.Nginx:
        nginx = proxies.Nginx(self.site.address, *arguments, **replaced)
        self.addCleanup(nginx.remove)
        return nginx

    def ask(self, nginx: proxies.Nginx, path: str, **headers: str) -> http.client.HTTPResponse:
        connection = http.client.HTTPConnection(*nginx.address, timeout=PATIENCE_S)
        self.addCleanup(connection.close)
        connection.request("GET", path, headers={"Authorization": USER, **headers})
        return connection.getresponse()

    def test_the_manuals_location_serves_the_page_and_its_figures_under_a_prefix(self) -> None:
        nginx = self.nginx()
        self.assertEqual(self.ask(nginx, "/calls/", Authorization="").status, 401)
        moved = self.ask(nginx, "/calls")
        self.assertEqual((moved.status, moved.getheader("Location", "")[-7:]), (301, "/calls/"))
        for path in ("", "app.js", "style.css", "chart.min.js", "licences.txt", "metrics",
                     "healthz", "api/flows", "api/look?view=server"):
            self.assertEqual(self.ask(nginx, "/calls/" + path).status, 200, path)
        self.assertEqual(self.ask(nginx, "/calls/nothing").status, 404)

    def test_nothing_on_the_page_leaves_its_prefix(self) -> None:
        for name in ("", "app.js", "poll.js", "dom.js", "flow.js", "style.css"):
            text = self.site.ask("/" + name)[1]
            for word in ('src="/', 'href="/', "src='/", 'fetch("/', "fetch(`/", 'from "/', "url(/"):
                self.assertNotIn(word, text, name)

    def test_what_is_packed_is_still_not_modified(self) -> None:
        nginx = self.nginx()
        packed: Dict[str, str] = {"Accept-Encoding": "gzip"}
        page = self.ask(nginx, "/calls/app.js", **packed)
        self.assertEqual(page.getheader("Content-Encoding"), "gzip")
        weak = page.getheader("ETag", "")
        self.assertTrue(weak.startswith("W/"), weak)
        again = self.ask(nginx, "/calls/app.js", **packed, **{"If-None-Match": weak})
        self.assertEqual(again.status, 304)

        def is_known() -> bool:
            look = self.ask(nginx, "/calls/api/look?view=flows", **packed)
            self.assertEqual(look.getheader("Content-Encoding"), "gzip")
            self.assertIn("rows", json.loads(gzip.decompress(look.read())))
            known = {"If-None-Match": look.getheader("ETag", "")}
            return self.ask(nginx, "/calls/api/look?view=flows", **packed, **known).status == 304

        # A new look may come in between.
        self.assertTrue(poll_until(is_known))

    def test_events_pass_as_they_come_although_all_is_packed(self) -> None:
        nginx = self.nginx(**{"gzip_types text/css": "gzip_types text/event-stream text/css"})
        for headers in ({}, {"Accept-Encoding": "gzip"}):
            with self.subTest(headers=headers):
                stream = self.ask(nginx, "/calls/api/stream?view=flows", **headers)
                self.assertEqual(stream.status, 200)
                unpack = zlib.decompressobj(31) if headers else None
                self.assertEqual(stream.getheader("Content-Encoding") == "gzip", bool(headers))
                text = ""
                while text.count("\ndata: ") < 3:
                    piece = stream.read1(65536)
                    self.assertTrue(piece, "the stream ended")
                    text += (unpack.decompress(piece) if unpack else piece).decode()

    def test_events_pass_as_they_come_through_nginx_as_it_is_by_default(self) -> None:
        location = "location / { proxy_pass http://127.0.0.1:18731; gzip on; gzip_types *; }"
        stream = self.ask(self.nginx(location), "/api/stream?view=flows")
        text = b""
        while text.count(b"\ndata: ") < 3:
            text += stream.read1(65536)

    def test_another_host_is_refused_with_what_to_set(self) -> None:
        nginx = self.nginx(**{'Connection "";': 'Connection ""; proxy_set_header Host $host;'})
        refused = self.ask(nginx, "/calls/", Host="calls.example.com")
        self.assertEqual(refused.status, 421)
        self.assertIn(b"name the host in http-hosts", refused.read())

    def test_a_host_that_is_named_is_answered(self) -> None:
        self.site = Site(rule(7, 3), arguments=("--http-hosts", "calls.example.com"))
        self.addCleanup(self.site.server.remove)
        nginx = self.nginx(**{'Connection "";': 'Connection ""; proxy_set_header Host $host;'})
        self.assertEqual(self.ask(nginx, "/calls/", Host="calls.example.com").status, 200)


if __name__ == "__main__":
    unittest.main()
