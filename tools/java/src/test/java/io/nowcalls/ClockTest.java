package io.nowcalls;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;

import java.util.OptionalLong;
import org.junit.Test;

/** The clock of tokens, on a machine whose sleeps are scripted. */
public class ClockTest {
    private static final long SECOND = Moments.SECOND;

    private long monotonic = 5_000 * SECOND;
    private long wall = 1_700_000_000 * SECOND;
    private long slept = 777 * SECOND;
    private boolean hasUptime = true;

    private Clock clock() {
        return new Clock(
                () -> monotonic * 1000,
                () -> wall / 1000,
                () ->
                        hasUptime
                                // In hundredths of a second.
                                ? OptionalLong.of((monotonic + slept) / 10_000 * 10_000)
                                : OptionalLong.empty());
    }

    private void pass(long micros) {
        monotonic += micros;
        wall += micros;
    }

    private void sleep(long micros) {
        slept += micros;
        wall += micros;
    }

    @Test
    public void itGoesOnWithTheMachine() {
        Clock clock = clock();
        long before = clock.getAsLong();
        pass(1234);
        assertEquals(before + 1234, clock.getAsLong());
        pass(90 * SECOND + 7);
        assertEquals(before + 90 * SECOND + 1241, clock.getAsLong());
    }

    @Test
    public void itCountsTheTimeInWhichTheMachineSleeps() {
        Clock clock = clock();
        long before = clock.getAsLong();
        for (int i = 1; i <= 100; i++) {
            sleep(3 * SECOND + 3333);
            pass(1111);
            long error = clock.getAsLong() - before - i * (3 * SECOND + 4444);
            // Ahead by a step of /proc/uptime, and never behind by more than its slack.
            assertTrue("" + error, -20_000 <= error && error <= 20_000);
        }
    }

    @Test
    public void aSleepThatTheWallClockHidesIsFoundASecondLater() {
        Clock clock = clock();
        long before = clock.getAsLong();
        slept += 60 * SECOND; // The wall clock was set back by as much meanwhile.
        pass(SECOND + 1);
        assertTrue(clock.getAsLong() - before >= 61 * SECOND);
    }

    @Test
    public void aWallClockThatIsSetMovesNothing() {
        Clock clock = clock();
        long before = clock.getAsLong();
        wall += 3600 * SECOND;
        pass(1000);
        assertEquals(before + 1000, clock.getAsLong());
        wall -= 7200 * SECOND;
        pass(1000);
        assertEquals(before + 2000, clock.getAsLong());
    }

    @Test
    public void withoutUptimeAWallClockThatLeapsIsASleep() {
        hasUptime = false;
        Clock clock = clock();
        long before = clock.getAsLong();
        sleep(60 * SECOND);
        assertEquals(before + 60 * SECOND, clock.getAsLong());
        wall -= 60 * SECOND;
        assertEquals(before + 60 * SECOND, clock.getAsLong());
    }

    @Test
    public void theSystemsClockIsThatOfTheKernel() throws Exception {
        long now = Clock.system().getAsLong();
        String uptime = java.nio.file.Files.readString(java.nio.file.Path.of("/proc/uptime"));
        double seconds = Double.parseDouble(uptime.split(" ")[0]);
        assertEquals(seconds, now / 1e6, 0.2);
    }
}
