"""The Java client: it, its tests, examples and benchmark compile without a warning; its tests."""

import glob
import os
import tempfile
import unittest

from running import ROOT, Commands

LIBRARY = "/usr/share/java/msgpack-core.jar"
JUNIT = "/usr/share/java/junit4.jar:/usr/share/java/hamcrest.jar"


class JavaTest(Commands):
    directory = "tools/java"

    def compile(self, out: str, path: str, *patterns: str, documented: bool = False) -> None:
        files = []
        for pattern in patterns:
            files += glob.glob(os.path.join(ROOT, self.directory, pattern))
        self.run_command(
            *("javac", "--release", "11", "-Xlint:all", "-Werror", "-cp", path, "-d", out),
            *(["-Xdoclint:all/protected"] if documented else []),
            *files,
        )

    def test_all_compiles_without_a_warning_and_the_tests_pass(self) -> None:
        with tempfile.TemporaryDirectory(prefix="nowcalls-java-") as out:
            main, test = f"{out}/main", f"{out}/test"
            path = f"{main}:{LIBRARY}:{JUNIT}"
            self.compile(main, LIBRARY, "src/main/java/io/nowcalls/*.java", documented=True)
            self.compile(f"{out}/programs", main, "examples/*.java", "bench/*.java")
            self.compile(test, path, "src/test/java/io/nowcalls/*.java")
            tests = os.environ.get("NOWCALLS_JAVA_TESTS", "").split()
            self.run_command(
                *("java", "-cp", f"{test}:{path}", "io.nowcalls.AllTests", *tests),
                NOWCALLS_ROOT=ROOT,
            )


if __name__ == "__main__":
    unittest.main()
