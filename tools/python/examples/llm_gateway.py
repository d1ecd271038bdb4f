#!/usr/bin/env python3
"""A gateway to a language model that limits the calls of each API key, over all gateways together.

    tools/dev run                       # serves data/rules/api-keys.json among others
    PYTHONPATH=tools/python tools/python/examples/llm_gateway.py
    curl -H 'Authorization: Bearer key-acme' -d 'Hello' http://127.0.0.1:8000/

Rule 4001 limits the calls in progress of a key, rule 4002 those a second. One decision takes both
or none, so a call that is refused by the one uses up nothing of the other. A refused call gets 429.
"""

import argparse
import http.server
import time

import nowcalls

IN_PROGRESS, A_SECOND = 4001, 4002
WAIT_S = 2.0


def call_model(prompt: str, seconds: float) -> str:
    """Stands for the call to the model."""
    time.sleep(seconds)
    return prompt.upper()


class Gateway(http.server.BaseHTTPRequestHandler):
    client: nowcalls.Client
    model_seconds: float

    def do_POST(self) -> None:
        key = self.headers.get("Authorization", "").removeprefix("Bearer ")
        prompt = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        if not key:
            self._answer(401, "no API key")
            return
        try:
            asked = [(IN_PROGRESS, 1, key), nowcalls.rate(A_SECOND, 1, key)]
            permit, _ = self.client.acquire_all(asked, wait=WAIT_S)
            with permit:
                text = call_model(prompt, self.model_seconds)
            self._answer(200, text)
        except nowcalls.Refused as refused:
            self._answer(429, f"too many calls of this key: {refused.refused_by}")
        except (nowcalls.Unavailable, nowcalls.OutcomeUnknown):
            # With fallback="fail" alone. By default each gateway then limits its keys by itself.
            self._answer(503, "the limits cannot be checked")

    def log_message(self, *_: object) -> None:
        pass

    def _answer(self, status: int, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        if status == 429:
            self.send_header("Retry-After", "1")
        self.end_headers()
        self.wfile.write(body)


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128


def main() -> None:
    parser = argparse.ArgumentParser(description="A gateway with limits for each API key.")
    parser.add_argument("--server", default="127.0.0.1:18730", help="address of nowcalls-server")
    parser.add_argument("--port", type=int, default=8000, help="of the gateway; 0: a free one")
    parser.add_argument("--model-seconds", type=float, default=1.0, help="time of the model")
    chosen = parser.parse_args()
    Gateway.model_seconds = chosen.model_seconds
    with nowcalls.Client(chosen.server, namespace="llm-gateway") as Gateway.client:
        with Server(("127.0.0.1", chosen.port), Gateway) as gateway:
            print(f"http://127.0.0.1:{gateway.server_port}/", flush=True)
            gateway.serve_forever()


if __name__ == "__main__":
    main()
