package io.nowcalls;

import java.util.PriorityQueue;
import java.util.function.LongConsumer;

/**
 * What a session does later, by moment and then by order.
 *
 * <p>Thread: the session's.
 */
final class Timers {
    private static final class Timer implements Comparable<Timer> {
        final long at;
        final long number;
        final LongConsumer what;

        Timer(long at, long number, LongConsumer what) {
            this.at = at;
            this.number = number;
            this.what = what;
        }

        @Override
        public int compareTo(Timer other) {
            int byMoment = Long.compare(at, other.at);
            return byMoment != 0 ? byMoment : Long.compare(number, other.number);
        }
    }

    private final PriorityQueue<Timer> timers = new PriorityQueue<>();
    private long lastNumber;

    /** what: is told the moment when it runs. */
    void add(long at, LongConsumer what) {
        timers.add(new Timer(at, ++lastNumber, what));
    }

    long nextAt() {
        return timers.isEmpty() ? Moments.NEVER : timers.peek().at;
    }

    void run(long now) {
        while (nextAt() <= now) {
            timers.remove().what.accept(now);
        }
    }
}
