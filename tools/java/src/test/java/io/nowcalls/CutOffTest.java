package io.nowcalls;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.Test;

/** Holders that are cut off: lost by their own clock before another is granted. */
public class CutOffTest extends Served {
    private static final long HOLD_MS = 600; // The server holds twice the rule's resourceTimeout.
    private static final Options WAITS = new Options().waitUpTo(Duration.ofSeconds(20));

    private interface Cut {
        void now(TcpProxy proxy, Client holder) throws Exception;
    }

    private void check(String reason, Map<String, Object> config, Cut cut) throws Exception {
        long flow;
        synchronized (this) {
            flow = load(1, config);
        }
        try (TcpProxy proxy = new TcpProxy(server.port());
                Client holder = settings(proxy.address()).timeout(Duration.ofSeconds(2)).build();
                Client next = settings(server.address()).build()) {
            Permit permit = holder.acquire(flow);
            cut.now(proxy, holder);
            Permit granted = next.acquire(Item.of(flow), WAITS);
            assertTrue("the holder does not know", permit.isLost());
            assertEquals(reason, permit.lostReason());
            assertEquals(Duration.ZERO, permit.validFor());
            Throwable error = new Task<>(permit::release).end();
            assertTrue("" + error, error instanceof NowcallsException);
            assertEquals(1, server.nowCalls(flow));
            granted.close();
        }
    }

    private static void blackHole(TcpProxy proxy) {
        proxy.answers = false;
        proxy.requests = false;
    }

    private static void awaitKeep(Client holder) {
        long before = (Long) holder.stats().get("kept");
        Wait.until("it is kept", () -> (Long) holder.stats().get("kept") > before);
    }

    @Test
    public void theHolderKnowsBeforeAnotherIsGranted() throws Exception {
        Map<String, Object> config =
                Map.of("resourceTimeout", HOLD_MS / 2, "clientOfflineTime", 20_000L);
        List<Cut> cuts =
                List.of(
                        (proxy, holder) -> blackHole(proxy),
                        (proxy, holder) -> {
                            awaitKeep(holder);
                            blackHole(proxy);
                        },
                        (proxy, holder) -> {
                            awaitKeep(holder);
                            proxy.answers = false;
                        });
        List<Task<Void>> tasks = new ArrayList<>();
        for (Cut cut : cuts) { // Side by side, since most of it is waiting.
            tasks.add(
                    new Task<>(
                            () -> {
                                check("resource_timeout", config, cut);
                                return null;
                            }));
        }
        for (Task<Void> task : tasks) {
            task.get();
        }
    }

    @Test
    public void aHolderWhoseServerCountsItOfflineKnowsIt() throws Exception {
        Map<String, Object> config =
                Map.of("resourceTimeout", 60_000L, "clientOfflineTime", HOLD_MS);
        check("client_offline", config, (proxy, holder) -> proxy.cutServerSide());
    }

    @Test
    public void aConnectionThatBreaksLosesNothing() throws Exception {
        long flow = load(1, Map.of());
        TcpProxy proxy = open(new TcpProxy(server.port()));
        Client holder = open(settings(proxy.address()).build());
        try (Permit permit = holder.acquire(flow)) {
            for (int i = 2; i <= 4; i++) {
                long connects = i;
                proxy.cut();
                Wait.until("again", () -> holder.stats().get("connects").equals(connects));
            }
            assertTrue(permit.keep());
        }
        assertEquals(0, server.nowCalls(flow));
    }

    @Test
    public void anAcquireWhoseAnswerIsSwallowedLeavesNothing() throws Exception {
        long flow = load(1, Map.of());
        TcpProxy proxy = open(new TcpProxy(server.port()));
        Client client = open(settings(proxy.address()).timeout(Duration.ofSeconds(1)).build());
        client.ping();
        proxy.answers = false;
        thrown(OutcomeUnknownException.class, () -> client.acquire(flow));
        proxy.cut();
        proxy.answers = true;
        Wait.until("it is cancelled", () -> server.nowCalls(flow) == 0);
        Wait.until("all is settled", () -> client.stats().get("unsettled").equals(0L));
        assertEquals(0, server.nowCalls(flow));
        client.acquire(flow).close();
    }
}
