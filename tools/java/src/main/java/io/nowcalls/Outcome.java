package io.nowcalls;

import java.io.InterruptedIOException;
import java.util.concurrent.CancellationException;
import java.util.concurrent.TimeoutException;

/** How a call ended, for the server's counters. */
public enum Outcome {
    /** As it should. */
    OK,
    /** With an error. */
    FAILED,
    /** The caller gave it up. */
    TIMEOUT;

    String word() {
        return name().toLowerCase(java.util.Locale.ROOT);
    }

    /** What code that ended with this exception tells the server of its call. */
    static Outcome of(Throwable error) {
        boolean gaveUp =
                error instanceof TimeoutException
                        || error instanceof CancellationException
                        || error instanceof InterruptedException
                        || error instanceof InterruptedIOException;
        return gaveUp ? TIMEOUT : FAILED;
    }
}
