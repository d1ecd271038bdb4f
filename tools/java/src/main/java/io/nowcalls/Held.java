package io.nowcalls;

import static io.nowcalls.Moments.MS;
import static io.nowcalls.Moments.NEVER;
import static io.nowcalls.Moments.after;

import java.lang.ref.WeakReference;
import java.util.function.Consumer;

/**
 * A token of a session, or a local stand-in.
 *
 * <p>A token is surely the client's until {@code validUntil}, by the client's own clock:
 *
 * <pre>
 * min(sent time of the last confirmed grant or keep + hold,
 *     sent time of the latest request that was answered + clientOfflineTime), less a margin
 * </pre>
 *
 * <p>Thread: the session's. Other threads may read.
 */
final class Held {
    /** LOST: by this client's own clock, so the server is still to be told of the release. */
    enum State {
        HELD,
        LOST,
        RELEASING,
        ENDED
    }

    private static final long KEEP_PAUSE_MS = 10; // Between keeps, whatever hold a server tells.
    private static final long MARGIN_MS = 2; // And a hundredth of the span.
    private static final long RELEASE_MARGIN_MS = 50; // So that no release counts as late.

    final Item item;
    final Contact contact;
    long tokenId;
    long fence;
    long nowCalls;
    long level;
    boolean local;
    Keep keep = Keep.OFF;
    Consumer<Permit> onLost;
    Stray stray;
    long grantedAt;
    long keepAt = NEVER;
    long dueAt = NEVER; // When to look after it, unless contact ends before.
    WeakReference<Permit> grip;
    boolean dropped; // Its program forgot the permit, rather than to release it.
    volatile boolean handedOver; // A caller has the permit.
    volatile State state = State.HELD;
    volatile boolean toldLost; // By the session.
    volatile boolean foundLost; // By the thread that asked first.
    volatile String lostReason;
    private volatile Terms terms;
    private volatile long holdMs;
    private volatile long holdUntil = NEVER;
    private long confirmedAt;

    Held(Item item, Contact contact) {
        this.item = item;
        this.contact = contact;
    }

    /** The part of a time of the server that a client counts on. */
    static long span(long ms) {
        return (ms - ms / 100 - MARGIN_MS) * MS;
    }

    Permit permit() {
        WeakReference<Permit> held = grip;
        return held == null ? null : held.get();
    }

    Terms terms() {
        return terms;
    }

    void setTerms(Terms terms) {
        this.terms = terms;
    }

    long holdMs() {
        return holdMs;
    }

    /** A grant or a keep that was sent at this moment was answered. */
    void confirm(long ms, long sentAt) {
        holdMs = ms;
        confirmedAt = sentAt;
        holdUntil = after(sentAt, span(ms));
    }

    long confirmedAt() {
        return confirmedAt;
    }

    long contactUntil() {
        Terms now = terms;
        return local || now == null ? NEVER : after(contact.at, span(now.offlineMs));
    }

    long validUntil() {
        return Math.min(holdUntil, contactUntil());
    }

    /** Final: once it has been true, no answer of the server makes it false. */
    boolean isLost() {
        if (state == State.HELD && contact.clock.getAsLong() >= validUntil()) {
            foundLost = true;
        }
        return toldLost || foundLost;
    }

    String reason() {
        if (toldLost || local) {
            return lostReason;
        }
        return holdUntil <= contactUntil() ? "resource_timeout" : "client_offline";
    }

    /** Whether the server, or the fallback, is still to be told that its owner let go. */
    boolean isOpen() {
        return state == State.HELD || state == State.LOST;
    }

    boolean isKept() {
        if (keep == Keep.RULE) {
            return terms == null || terms.strategy == Terms.KEEPS;
        }
        return keep == Keep.ALWAYS;
    }

    /** When the client is to release it: a little before the rule's resourceTimeout. */
    long releaseAt() {
        if (keep != Keep.RULE || terms == null || terms.strategy != Terms.RELEASES) {
            return NEVER;
        }
        long timeoutMs = terms.resourceTimeoutMs;
        timeoutMs -= Math.min(RELEASE_MARGIN_MS, timeoutMs / 10);
        return after(grantedAt, timeoutMs * MS);
    }

    void planKeep(long since) {
        keepAt = isKept() ? after(since, Math.max(holdMs / 3 + 1, KEEP_PAUSE_MS) * MS) : NEVER;
    }

    void planDue() {
        dueAt = Math.min(keepAt, Math.min(releaseAt(), holdUntil));
    }

    /** A token whose rule ended it as strategy 0 has it, for the words of the log. */
    boolean endedByRule() {
        boolean byRule = keep == Keep.RULE && terms != null && terms.strategy == 0;
        return byRule && "resource_timeout".equals(lostReason);
    }
}
