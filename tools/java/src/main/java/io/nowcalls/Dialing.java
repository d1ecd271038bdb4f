package io.nowcalls;

import java.util.List;
import java.util.function.LongBinaryOperator;

/**
 * Which address a session dials next, and when.
 *
 * <p>Addresses are tried in rows. Between rows, and after a connection that was of no use, comes a
 * random pause whose bound doubles. So clients that lose a server do not come back in step.
 */
final class Dialing {
    private static final long PAUSE_MIN = 50 * Moments.MS;
    private static final long PAUSE_MAX = 2 * Moments.SECOND;
    private static final int DOUBLINGS_MAX = 10;

    /** When to dial; never while the client dials or is connected. */
    long at;

    private final List<Address> addresses;
    private final LongBinaryOperator uniform;
    private int index;
    private int failures; // Attempts and useless connections since the last useful one.

    Dialing(List<Address> addresses, long now, LongBinaryOperator uniform) {
        this.addresses = addresses;
        this.uniform = uniform;
        this.at = now;
    }

    Address address() {
        return addresses.get(index);
    }

    String name() {
        return address().toString();
    }

    boolean allFailed() {
        return failures >= addresses.size();
    }

    void begin() {
        at = Moments.NEVER;
    }

    void failed(long now) {
        index = (index + 1) % addresses.size();
        failures += failures < Integer.MAX_VALUE ? 1 : 0;
        long bound = 0;
        if (failures % addresses.size() == 0) {
            int doublings = Math.min(failures / addresses.size(), DOUBLINGS_MAX);
            bound = Math.min(PAUSE_MAX, PAUSE_MIN << doublings);
        }
        at = Moments.after(now, uniform.applyAsLong(0, bound));
    }

    /** A useful connection ended: its address comes first again, after a short pause. */
    void ended(long now) {
        failures = 0;
        at = Moments.after(now, uniform.applyAsLong(0, PAUSE_MIN));
    }
}
