"""The examples of the documents and of tools/python/examples, run as a reader would run them."""

import concurrent.futures
import glob
import os
import re
import subprocess
import sys
import unittest
import urllib.error
import urllib.request

from support import Server

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DEFAULT_ADDRESS = "127.0.0.1:18730"


def sample_rules():
    """As tools/dev run has them."""
    for file in sorted(glob.glob(os.path.join(ROOT, "data", "rules", "*.json"))):
        yield from ("--rules", f"{os.path.basename(file)[:-5]}={file}")


def snippets(document):
    with open(os.path.join(ROOT, document)) as file:
        return re.findall(r"^```python\n(.*?)^```", file.read(), re.MULTILINE | re.DOTALL)


class DocumentTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(*sample_rules())
        cls.addClassCleanup(cls.server.remove)

    def run_snippet(self, text):
        program = text.replace(DEFAULT_ADDRESS, self.server.address)
        done = subprocess.run(
            [sys.executable, "-B", "-W", "error", "-c", program],
            capture_output=True,
            text=True,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("Traceback", done.stderr)  # Also of warnings in a destructor.
        return done.stdout

    def test_the_examples_of_the_manual_run_and_leave_no_token_behind(self):
        texts = snippets("tools/manual/python.md")
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            outputs = list(pool.map(self.run_snippet, texts))
        self.assertEqual(len(texts), 7)
        self.assertRegex(outputs[0], r"token \d+, fence \d+\n\d+ of 10000 calls in progress\n")
        self.assertEqual(outputs[1], "")
        self.assertEqual(outputs[3], "")
        self.assertRegex(outputs[4], r"\d+ calls left in this window\n")
        self.assertRegex(outputs[5], r"\d+ of 10000 calls in progress\n")
        self.assertEqual(outputs[6], "local: True, 1 of 3\n1\n")
        self.assertEqual(self.server.now_calls(1001), 0)

    def test_the_example_of_the_package_runs(self):
        (text,) = snippets("tools/python/README.md")
        self.assertRegex(self.run_snippet(text), r"\d+ of 10000 calls in progress\n")

    def test_the_gateway_limits_the_calls_of_each_api_key(self):
        gateway = subprocess.Popen(
            [
                *(sys.executable, "-B", os.path.join(ROOT, "tools/python/examples/llm_gateway.py")),
                *("--server", self.server.address, "--port", "0", "--model-seconds", "0.05"),
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            url = gateway.stdout.readline().strip()

            def ask(key):
                headers = {"Authorization": f"Bearer {key}"}
                request = urllib.request.Request(url, data=b"hello", headers=headers)
                try:
                    with urllib.request.urlopen(request) as answer:
                        return answer.status, answer.read()
                except urllib.error.HTTPError as error:
                    with error:
                        return error.code, error.read()

            with concurrent.futures.ThreadPoolExecutor(16) as pool:
                greedy = list(pool.map(ask, ["key-greedy"] * 24))
                other = ask("key-other")
            self.assertEqual(ask("")[0], 401)
            self.assertEqual(other, (200, b"HELLO"))
            self.assertEqual({status for status, _ in greedy}, {200, 429})
            self.assertIn(b"param", dict(greedy)[429])
            # Rule 4002 lets 5 calls a second pass; asking takes two seconds more at most.
            self.assertIn(sum(status == 200 for status, _ in greedy), range(5, 16))
        finally:
            gateway.terminate()
            gateway.wait()
            gateway.stdout.close()
        self.assertEqual(self.server.now_calls(4001), 0)


if __name__ == "__main__":
    unittest.main()
