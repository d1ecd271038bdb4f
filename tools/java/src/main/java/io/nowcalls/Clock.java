package io.nowcalls;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.util.OptionalLong;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.LongSupplier;
import java.util.function.Supplier;

/**
 * Microseconds that go on while the machine sleeps, as CLOCK_BOOTTIME does.
 *
 * <p>System.nanoTime stands still in a suspend of Linux, and /proc/uptime does not. It is read when
 * the wall clock has moved otherwise than nanoTime, and once a second. It has hundredths of a
 * second, so behind a suspend this clock is up to 10 ms ahead: a token is lost too early, never too
 * late. Without /proc/uptime a wall clock that leaps ahead counts as a suspend.
 *
 * <p>Thread: any.
 */
final class Clock implements LongSupplier {
    private static final Clock SYSTEM =
            new Clock(System::nanoTime, System::currentTimeMillis, uptime());
    private static final long WALL_SLACK_US = 20_000;
    private static final long UPTIME_STEP_US = 10_000;
    private static final long UPTIME_SLACK_US = 3 * UPTIME_STEP_US;
    private static final long LEAP_US = 1_000_000; // Of a wall clock alone.
    private static final long CHECK_US = 1_000_000;

    private final LongSupplier nanos;
    private final LongSupplier wallMs;
    private final Supplier<OptionalLong> uptimeUs;
    private final ReentrantLock lock = new ReentrantLock();
    private volatile long ahead; // Of nanoTime.
    private volatile long wallAhead; // The wall clock of nanoTime.
    private volatile long checkedAt;

    Clock(LongSupplier nanos, LongSupplier wallMs, Supplier<OptionalLong> uptimeUs) {
        this.nanos = nanos;
        this.wallMs = wallMs;
        this.uptimeUs = uptimeUs;
        long nano = nanos.getAsLong() / 1000;
        OptionalLong uptime = uptimeUs.get();
        // Moments are above zero, whatever nanoTime begins with.
        ahead = uptime.isPresent() ? uptime.getAsLong() + UPTIME_STEP_US - nano : 1 - nano;
        wallAhead = wallMs.getAsLong() * 1000 - nano;
        checkedAt = nano;
    }

    static Clock system() {
        return SYSTEM;
    }

    @Override
    public long getAsLong() {
        long nano = nanos.getAsLong() / 1000;
        long moved = wallMs.getAsLong() * 1000 - nano - wallAhead;
        if (Math.abs(moved) > WALL_SLACK_US || nano - checkedAt > CHECK_US) {
            check();
        }
        return nano + ahead;
    }

    private void check() {
        lock.lock();
        try {
            OptionalLong uptime = uptimeUs.get();
            long nano = nanos.getAsLong() / 1000;
            long wall = wallMs.getAsLong() * 1000 - nano;
            if (uptime.isPresent()) {
                long now = uptime.getAsLong() + UPTIME_STEP_US - nano;
                ahead = now > ahead + UPTIME_SLACK_US ? now : ahead;
            } else if (wall > wallAhead + LEAP_US) {
                ahead += wall - wallAhead;
            }
            wallAhead = wall;
            checkedAt = nano;
        } finally {
            lock.unlock();
        }
    }

    /** Reads the file again and again, which stays open. */
    private static Supplier<OptionalLong> uptime() {
        try {
            RandomAccessFile file = new RandomAccessFile("/proc/uptime", "r");
            return () -> readUptime(file);
        } catch (IOException noLinux) {
            return OptionalLong::empty;
        }
    }

    private static OptionalLong readUptime(RandomAccessFile file) {
        byte[] data = new byte[64];
        try {
            file.seek(0);
            int size = file.read(data);
            String seconds = new String(data, 0, Math.max(size, 0)).split(" ")[0];
            return OptionalLong.of((long) (Double.parseDouble(seconds) * 1_000_000));
        } catch (IOException | NumberFormatException error) {
            return OptionalLong.empty();
        }
    }
}
