package io.nowcalls;

import java.io.File;
import java.net.URL;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.junit.runner.Description;
import org.junit.runner.JUnitCore;
import org.junit.runner.Result;
import org.junit.runner.notification.Failure;
import org.junit.runner.notification.RunListener;

/** Runs the tests of this package, or those that are named, and tells how long each class takes. */
public final class AllTests {
    private AllTests() {}

    public static void main(String[] names) throws Exception {
        List<String> chosen = new ArrayList<>(List.of(names));
        if (chosen.isEmpty()) {
            URL where = AllTests.class.getProtectionDomain().getCodeSource().getLocation();
            Path here = Path.of(where.toURI());
            for (File file : here.resolve("io/nowcalls").toFile().listFiles()) {
                if (file.getName().endsWith("Test.class")) {
                    chosen.add(file.getName().replace(".class", ""));
                }
            }
        }
        String[] sorted = chosen.toArray(new String[0]);
        Arrays.sort(sorted);
        int run = 0;
        int failed = 0;
        for (String name : sorted) {
            JUnitCore core = new JUnitCore();
            core.addListener(new Listener());
            Result result = core.run(Class.forName("io.nowcalls." + name));
            run += result.getRunCount();
            failed += result.getFailureCount();
            System.out.printf(
                    "%s: %d tests, %d failed, %d skipped, %.1f s%n",
                    name,
                    result.getRunCount(),
                    result.getFailureCount(),
                    result.getAssumptionFailureCount(),
                    result.getRunTime() / 1000.0);
        }
        System.out.println(run + " tests, " + failed + " failed");
        System.exit(failed == 0 ? 0 : 1);
    }

    private static final class Listener extends RunListener {
        private static final double SLOW_S = 2;

        private long begin;

        @Override
        public void testStarted(Description test) {
            begin = System.nanoTime();
        }

        @Override
        public void testFinished(Description test) {
            double seconds = (System.nanoTime() - begin) / 1e9;
            if (seconds > SLOW_S) {
                System.out.printf("  %s took %.1f s%n", test.getMethodName(), seconds);
            }
        }

        @Override
        public void testFailure(Failure failure) {
            System.out.println("FAILED: " + failure.getDescription());
            System.out.println(failure.getTrimmedTrace());
        }

        @Override
        public void testAssumptionFailure(Failure failure) {
            System.out.println("  " + failure.getDescription() + ": " + failure.getMessage());
        }
    }
}
