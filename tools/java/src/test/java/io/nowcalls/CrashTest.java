package io.nowcalls;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.Test;

/** A server that is killed and comes back, while many threads hold its tokens. */
public class CrashTest extends Served {
    private static final int THREADS = 50;
    private static final int EACH = 20;
    private static final int LEVEL = 10;

    @Override
    ServerProcess makeServer() throws Exception {
        return open(new ServerProcess());
    }

    @Test
    public void noPermitIsLostAndNoneIsLeftAcrossKill9() throws Exception {
        long flow = load(LEVEL, Map.of());
        Client client = open(settings(server.address()).timeout(Duration.ofSeconds(20)).build());
        AtomicInteger held = new AtomicInteger();
        AtomicInteger most = new AtomicInteger();
        AtomicInteger done = new AtomicInteger();
        List<Task<Void>> tasks = new ArrayList<>();
        for (int i = 0; i < THREADS; i++) {
            tasks.add(new Task<>(() -> hold(client, flow, held, most, done)));
        }
        for (int kill = 1; kill <= 2; kill++) {
            int until = kill * THREADS * EACH / 3;
            Wait.until("some are done", () -> done.get() >= until);
            server.kill();
            server.start();
        }
        for (Task<Void> task : tasks) {
            task.get();
        }
        assertEquals(THREADS * EACH, done.get());
        assertTrue("at once: " + most, most.get() <= LEVEL);
        assertEquals(0, server.nowCalls(flow));
        assertEquals(0L, client.stats().get("held"));
        assertTrue(client.stats().toString(), (Long) client.stats().get("connects") >= 3);
        Wait.until("all is settled", () -> client.stats().get("unsettled").equals(0L));
        assertEquals(0, server.nowCalls(flow));
    }

    private static Void hold(
            Client client, long flow, AtomicInteger held, AtomicInteger most, AtomicInteger done)
            throws InterruptedException {
        Options waits = new Options().waitUpTo(Duration.ofSeconds(60));
        for (int i = 0; i < EACH; i++) {
            Permit permit = client.acquire(Item.of(flow), waits);
            most.accumulateAndGet(held.incrementAndGet(), Math::max);
            Thread.yield();
            assertTrue("" + permit, !permit.isLost());
            held.decrementAndGet();
            permit.release();
            done.incrementAndGet();
        }
        return null;
    }

    @Test
    public void aPermitOutlivesARestart() throws Exception {
        long flow = load(1, Map.of());
        Client client = client();
        try (Permit permit = client.acquire(flow)) {
            server.kill();
            server.start();
            Wait.until("again", () -> client.stats().get("connects").equals(2L));
            assertTrue(permit.keep());
            assertEquals(1, server.nowCalls(flow));
            assertTrue(permit.release());
        }
        assertEquals(0, server.nowCalls(flow));
    }
}
