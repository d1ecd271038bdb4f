package io.nowcalls;

import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;

/** Waits for states that another process comes to. */
final class Wait {
    private static final long PATIENCE_NS = 20_000_000_000L;
    private static final long PAUSE_NS = 5_000_000;

    private Wait() {}

    static void until(String what, BooleanSupplier isTrue) {
        long end = System.nanoTime() + PATIENCE_NS;
        while (!isTrue.getAsBoolean()) {
            if (System.nanoTime() > end) {
                throw new AssertionError("it did not come true: " + what);
            }
            LockSupport.parkNanos(PAUSE_NS);
        }
    }
}
