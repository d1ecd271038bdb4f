package io.nowcalls;

import java.util.function.LongSupplier;

/**
 * What a session has heard of its server, and when it must ask for a sign of life.
 *
 * <p>A ping is due after 10 s of silence. While tokens are held, it is also due when no answer has
 * confirmed the session for a third of the smallest clientOfflineTime.
 *
 * <p>Thread: the session's; {@code at} may be read on any.
 */
final class Contact {
    private static final long PING_AFTER = 10 * Moments.SECOND;
    private static final long PING_PAUSE_MS = 10; // Whatever clientOfflineTime a server tells.

    /** When the latest request that was answered had been sent, by the clock. */
    volatile long at;

    final LongSupplier clock;
    long heardAt;
    private long pingedAt; // Or the connection began.
    private long probedAt = Moments.NEVER; // Of a ping that has met silence so far.

    Contact(long now, LongSupplier clock) {
        this.at = now;
        this.clock = clock;
        this.heardAt = now;
        this.pingedAt = now;
    }

    /** A connection stands. */
    void begin(long now) {
        heard(now);
        pingedAt = now;
    }

    /** Any byte of the server counts. */
    void heard(long now) {
        heardAt = now;
        probedAt = Moments.NEVER;
    }

    void pinged(long now) {
        pingedAt = now;
        if (!probes()) {
            probedAt = now;
        }
    }

    void answered(long sentAt) {
        at = Math.max(at, sentAt);
    }

    boolean probes() {
        return probedAt != Moments.NEVER;
    }

    /** When the silence has lasted too long. */
    long silentAt(long timeout) {
        return Moments.after(probedAt, timeout);
    }

    /** offlineMs: the smallest clientOfflineTime of a token, or negative. */
    long pingAt(long offlineMs) {
        long due = probes() ? Moments.NEVER : Moments.after(heardAt, PING_AFTER);
        if (offlineMs < 0) {
            return due;
        }
        long pause = Math.max(offlineMs / 3, PING_PAUSE_MS) * Moments.MS;
        return Math.min(due, Moments.after(Math.max(at, pingedAt), pause));
    }
}
