package io.nowcalls;

import java.time.Duration;
import java.util.concurrent.CompletableFuture;

/**
 * One token, or a local stand-in for it when no server answers. Any thread may use it.
 *
 * <p>{@link #close} gives it back. A permit that the program drops instead is released, with a
 * warning in the log.
 */
public final class Permit implements AutoCloseable {
    final Held held;
    private final Client client;
    private volatile long wait;
    private volatile Outcome outcome = Outcome.OK;

    Permit(Held held, Client client) {
        this.held = held;
        this.client = client;
    }

    void setWait(long micros) {
        wait = micros;
    }

    /**
     * What was asked for: the flow, the count and the value of the parameter.
     *
     * @return the item
     */
    public Item item() {
        return held.item;
    }

    /**
     * The server's id of the token.
     *
     * @return 0 for a local permit
     */
    public long tokenId() {
        return held.tokenId;
    }

    /**
     * Grows with each grant. A resource that remembers the highest fence can refuse stale holders.
     *
     * @return 0 for a local permit
     */
    public long fence() {
        return held.fence;
    }

    /**
     * After so many milliseconds without a keep the server takes the token back.
     *
     * @return 0 for a local permit
     */
    public long holdMs() {
        return held.holdMs();
    }

    /**
     * Calls in progress at the grant, this one included.
     *
     * @return the number of calls
     */
    public long nowCalls() {
        return held.nowCalls;
    }

    /**
     * The limit of these calls.
     *
     * @return 0 if there was none
     */
    public long level() {
        return held.level;
    }

    /**
     * Whether the fallback of this process granted it.
     *
     * @return true for the fallback
     */
    public boolean isLocal() {
        return held.local;
    }

    /**
     * Whether the token ended, and this client did not release it; or this client, by its own
     * clock, cannot be sure of it any more. Once true it stays so.
     *
     * @return whether it is lost
     */
    public boolean isLost() {
        return held.isLost();
    }

    /**
     * The server's word for the reason, such as "admin".
     *
     * @return null if it is not lost, or the reason is not known
     */
    public String lostReason() {
        return held.isLost() ? held.reason() : null;
    }

    /**
     * How long the token is surely this client's. Each keep and each answer of the server moves the
     * end on.
     *
     * @return zero once it is lost or released; 292 years for a local permit
     */
    public Duration validFor() {
        if (held.state != Held.State.HELD || held.isLost()) {
            return Duration.ZERO;
        }
        if (held.local) {
            return Duration.ofNanos(Long.MAX_VALUE); // Longer ones have no toNanos.
        }
        long left = held.validUntil() - held.contact.clock.getAsLong();
        return Duration.ofNanos(Math.max(0, left) * 1000);
    }

    /**
     * Whether release was called.
     *
     * @return whether it was
     */
    public boolean isReleased() {
        return held.state != Held.State.HELD && !held.isLost();
    }

    /**
     * How long to sleep before the call; above zero only in a group with rates whose calls were
     * told to wait, and that was not to sleep.
     *
     * @return the time to sleep
     */
    public Duration waitTime() {
        return Duration.ofNanos(wait * 1000);
    }

    /**
     * How the call ended, for {@link #close}. Without it: OK.
     *
     * @param how the outcome
     */
    public void setOutcome(Outcome how) {
        outcome = how;
    }

    /**
     * Gives the token back; a second time does nothing.
     *
     * @return false if the token had been lost
     * @throws InterruptedException the release goes on in the background
     * @throws UnavailableException no server answers in time: the client releases it in the
     *     background, as soon as it can; after close the server takes it back
     * @throws OutcomeUnknownException the same, after it was sent
     */
    public boolean release() throws InterruptedException {
        return release(outcome);
    }

    /**
     * Gives the token back; a second time does nothing.
     *
     * @param how how the call ended; the server counts them
     * @return false if the token had been lost
     * @throws InterruptedException the release goes on in the background
     */
    public boolean release(Outcome how) throws InterruptedException {
        return client.release(this, how, false);
    }

    /**
     * Gives the token back; a second time does nothing.
     *
     * @param how how the call ended; the server counts them
     * @return false if the token had been lost
     */
    public CompletableFuture<Boolean> releaseAsync(Outcome how) {
        return client.releaseAsync(this, how);
    }

    /**
     * Renews the hold now.
     *
     * @return false if the token is lost
     * @throws InterruptedException it may have been renewed
     */
    public boolean keep() throws InterruptedException {
        return client.keep(this);
    }

    /**
     * Gives the token back. It does not wait for a server that is not there, or on a thread that is
     * interrupted: the release then goes on in the background.
     */
    @Override
    public void close() {
        client.leave(this, outcome);
    }

    @Override
    public String toString() {
        String state =
                held.isLost() ? "lost" : held.local ? "local" : held.state.name().toLowerCase();
        return "Permit of flow " + Item.show(held.item.flow) + " token " + held.tokenId + " fence "
                + held.fence + ", " + state;
    }
}
