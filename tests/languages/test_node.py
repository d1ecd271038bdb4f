"""The Node client: its one package as package-lock.json has it, and its tests."""

import unittest

from running import Commands


class NodeTest(Commands):
    directory = "tools/node"

    def test_the_tests_pass(self) -> None:
        self.run_command("npm", "ci", "--no-audit", "--no-fund", "--prefer-offline")
        self.run_command("node", "--test")


if __name__ == "__main__":
    unittest.main()
