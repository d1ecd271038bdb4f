"""The client of the page for authors of clients: the vectors that it names, and a real server."""

import unittest

from running import Commands


class SixthTest(Commands):
    directory = "tests/languages/sixth"

    def test_it_plays_its_vectors(self) -> None:
        self.run_command("ruby", "-w", "play.rb")

    def test_its_token_outlives_the_server(self) -> None:
        self.run_command("ruby", "-w", "server_test.rb")


if __name__ == "__main__":
    unittest.main()
