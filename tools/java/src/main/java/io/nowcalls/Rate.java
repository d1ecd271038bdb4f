package io.nowcalls;

import java.time.Duration;

/** The answer to a request for calls a second that passed. */
public final class Rate {
    private final long remaining;
    private final Duration wait;

    Rate(long remaining, long waitMicros) {
        this.remaining = remaining;
        this.wait = Duration.ofNanos(waitMicros * 1000);
    }

    /**
     * Calls that are left now.
     *
     * @return -1 if nobody can tell
     */
    public long remaining() {
        return remaining;
    }

    /**
     * How long to sleep before the call. Above zero only if the request was told not to sleep, or
     * if the wait goes beyond its timeout.
     *
     * @return the time to sleep
     */
    public Duration waitTime() {
        return wait;
    }

    @Override
    public String toString() {
        return "Rate(remaining=" + remaining + ", wait=" + wait + ")";
    }
}
