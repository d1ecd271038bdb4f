package io.nowcalls;

/** What a rule says of its tokens. */
final class Terms {
    /** Values of resourceTimeoutStrategy. */
    static final long RELEASES = 1;

    static final long KEEPS = 2;

    final long strategy;
    final long resourceTimeoutMs;
    final long offlineMs;

    Terms(long strategy, long resourceTimeoutMs, long offlineMs) {
        this.strategy = strategy;
        this.resourceTimeoutMs = resourceTimeoutMs;
        this.offlineMs = offlineMs;
    }
}
