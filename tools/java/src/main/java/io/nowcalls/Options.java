package io.nowcalls;

import java.time.Duration;
import java.util.function.Consumer;

/** How a call is asked. Immutable: each method returns a changed copy. */
public final class Options {
    static final Duration WAIT_MAX = Duration.ofHours(1);

    long wait = AcquireCall.BY_RULE; // Microseconds.
    long timeout = -1; // The client's.
    boolean prioritized;
    boolean sleep = true;
    Keep keep; // null: the client's.
    Consumer<Permit> onLost;

    /** The client's settings, no wait. */
    public Options() {}

    private Options(Options from) {
        wait = from.wait;
        timeout = from.timeout;
        prioritized = from.prioritized;
        sleep = from.sleep;
        keep = from.keep;
        onLost = from.onLost;
    }

    /**
     * How long to wait for room. Without it: not at all, unless the rule queues prioritized calls.
     *
     * @param longest at most an hour
     * @return a changed copy
     */
    public Options waitUpTo(Duration longest) {
        Options changed = new Options(this);
        changed.wait = micros("waitUpTo", longest);
        return changed;
    }

    /**
     * What the call may take besides its wait, instead of the client's timeout.
     *
     * @param longest at most an hour
     * @return a changed copy
     */
    public Options timeout(Duration longest) {
        Options changed = new Options(this);
        changed.timeout = micros("timeout", longest);
        return changed;
    }

    /**
     * Waits before those that are not.
     *
     * @param isPrioritized whether it is
     * @return a changed copy
     */
    public Options prioritized(boolean isPrioritized) {
        Options changed = new Options(this);
        changed.prioritized = isPrioritized;
        return changed;
    }

    /**
     * Whether to wait until the calls of a rate may be made. Without it: yes.
     *
     * @param sleeps whether it does
     * @return a changed copy
     */
    public Options sleep(boolean sleeps) {
        Options changed = new Options(this);
        changed.sleep = sleeps;
        return changed;
    }

    /**
     * Whether the permit is kept, instead of the client's setting.
     *
     * @param mode whether it is
     * @return a changed copy
     */
    public Options keep(Keep mode) {
        Options changed = new Options(this);
        changed.keep = mode;
        return changed;
    }

    /**
     * Called when the permit is lost, by the client's executor. The client's own callback is, too.
     *
     * @param callback must be short
     * @return a changed copy
     */
    public Options onLost(Consumer<Permit> callback) {
        Options changed = new Options(this);
        changed.onLost = callback;
        return changed;
    }

    static long micros(String what, Duration value) {
        if (value == null || value.isNegative() || value.compareTo(WAIT_MAX) > 0) {
            throw new BadRequestException(
                    what + " must be 0 to " + WAIT_MAX.getSeconds() + " seconds, not " + value);
        }
        return value.toNanos() / 1000;
    }
}
