"""The Go client: format, vet, and its tests with the race detector, without a network."""

import unittest

from running import Commands


class GoTest(Commands):
    directory = "tools/go"

    def test_the_code_has_gofmts_format(self) -> None:
        self.assertEqual(self.run_command("gofmt", "-l", "."), "")

    def test_vet_and_tests_pass(self) -> None:
        self.run_command("go", "vet", "./...", GOFLAGS="-modfile=debian.mod")
        self.run_command("go", "test", "-race", "-count=1", "./...", GOFLAGS="-modfile=debian.mod")


if __name__ == "__main__":
    unittest.main()
