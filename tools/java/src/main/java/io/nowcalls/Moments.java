package io.nowcalls;

/** Moments and spans in microseconds of a {@link Clock}. Sums that overflow are never. */
final class Moments {
    static final long NEVER = Long.MAX_VALUE;
    static final long SECOND = 1_000_000;
    static final long MS = 1000;

    private Moments() {}

    static long after(long moment, long micros) {
        long sum = moment + micros;
        boolean overflows = micros > 0 && sum < moment;
        return moment == NEVER || micros == NEVER || overflows ? NEVER : sum;
    }
}
