package io.nowcalls;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Stream;
import org.junit.Test;

/** Callers that give up at any moment, clients that are closed in any state, and what is left. */
public class CancelTest extends Served {
    private static final Options WAITS = new Options().waitUpTo(Duration.ofSeconds(60));

    private void assertNothingLeft(Client client, long flow) {
        Wait.until("all is settled", () -> client.stats().get("unsettled").equals(0L));
        Wait.until("nobody waits", () -> server.figure(flow, "waiters") == 0);
        Wait.until("nothing is held", () -> server.nowCalls(flow) == 0);
        assertEquals(0L, client.stats().get("held"));
        assertEquals(0L, client.stats().get("waiting"));
    }

    @Test
    public void anInterruptedCallerHoldsNothing() throws Exception {
        long flow = load(1, Map.of());
        Client client = client();
        Permit first = client.acquire(flow);
        List<Task<?>> waiting =
                List.of(
                        new Task<>(() -> client.acquire(Item.of(flow), WAITS)),
                        new Task<>(() -> client.acquireAll(List.of(Item.of(flow)), WAITS)),
                        new Task<>(() -> client.call(Item.of(flow), WAITS, () -> "never")));
        Wait.until("they wait", () -> server.figure(flow, "waiters") == 3);
        for (Task<?> task : waiting) {
            task.thread.interrupt();
            assertTrue("" + task.end(), task.end() instanceof InterruptedException);
        }
        Wait.until("nobody waits", () -> server.figure(flow, "waiters") == 0);
        first.close();
        assertNothingLeft(client, flow);
    }

    @Test
    public void aFutureThatIsCancelledHoldsNothing() throws Exception {
        long flow = load(1, Map.of());
        Client client = client();
        Permit first = client.acquire(flow);
        CompletableFuture<?> one = client.acquireAsync(Item.of(flow), WAITS);
        CompletableFuture<?> two = client.acquireAllAsync(List.of(Item.of(flow)), WAITS);
        CompletableFuture<?> three =
                client.acquireAsync(Item.of(flow), WAITS).orTimeout(1, TimeUnit.MILLISECONDS);
        thrown(Exception.class, three::get);
        Wait.until("they wait", () -> server.figure(flow, "waiters") == 2);
        assertTrue(one.cancel(true));
        assertTrue(two.cancel(false));
        Wait.until("nobody waits", () -> server.figure(flow, "waiters") == 0);
        first.close();
        assertNothingLeft(client, flow);
    }

    @Test
    public void whoGivesUpAtAnyMomentHoldsNothing() throws Exception {
        long flow = load(2, Map.of());
        Client client = client();
        client.ping();
        Random random = new Random(7);
        int given = 0;
        for (int i = 0; i < 150; i++) {
            long pause = random.nextInt(1_500_000);
            if (i % 3 == 0) {
                CompletableFuture<Permit> future = client.acquireAsync(Item.of(flow), WAITS);
                LockSupport.parkNanos(pause);
                if (!future.cancel(true)) {
                    future.join().close();
                    given++;
                }
                continue;
            }
            Task<Boolean> task = new Task<>(() -> client.acquire(Item.of(flow), WAITS).release());
            LockSupport.parkNanos(pause);
            task.thread.interrupt();
            Throwable error = task.end();
            assertTrue("" + error, error == null || error instanceof InterruptedException);
            given += error == null ? 1 : 0;
        }
        assertTrue("granted " + given, given < 150);
        assertNothingLeft(client, flow);
    }

    @Test
    public void aReleaseGoesOnWithoutItsCaller() throws Exception {
        long flow = load(4, Map.of());
        Client client = client();
        Permit one = client.acquire(flow);
        Permit two = client.acquire(flow);
        Permit three = client.acquire(flow);
        Task<Boolean> closes =
                new Task<>(
                        () -> {
                            Thread.currentThread().interrupt();
                            one.close();
                            return Thread.interrupted();
                        });
        assertTrue(closes.get());
        Task<Boolean> releases =
                new Task<>(
                        () -> {
                            Thread.currentThread().interrupt();
                            return two.release();
                        });
        assertTrue("" + releases.end(), releases.end() instanceof InterruptedException);
        three.releaseAsync(Outcome.OK).cancel(true);
        assertNothingLeft(client, flow);
        assertFalse(one.isLost() || two.isLost() || three.isLost());
    }

    /** States in which a client is closed, and the calls that it has then. */
    private List<ScriptedServer> silentServers() throws IOException {
        return List.of(
                open(new ScriptedServer((msgid, method, params) -> null)),
                open(
                        new ScriptedServer(
                                (msgid, method, params) ->
                                        method.equals("hello")
                                                ? ScriptedServer.usual(msgid, method)
                                                : null)),
                open(
                        new ScriptedServer(
                                (msgid, method, params) ->
                                        method.equals("release")
                                                ? null
                                                : ScriptedServer.usual(msgid, method))));
    }

    @Test
    public void aClientThatIsClosedInAnyStateEndsItsCalls() throws Exception {
        List<String> addresses = new ArrayList<>(List.of("127.0.0.1:1", "192.0.2.1:1"));
        for (ScriptedServer one : silentServers()) {
            addresses.add(one.address());
        }
        for (String address : addresses) {
            for (FallbackMode mode : List.of(FallbackMode.FAIL, FallbackMode.RULE)) {
                closeAmidCalls(address, mode);
            }
        }
    }

    private void closeAmidCalls(String address, FallbackMode mode) throws Exception {
        Client client =
                settings(address).fallback(mode).timeout(Duration.ofMillis(400)).build();
        List<Task<?>> tasks =
                List.of(
                        new Task<>(() -> client.acquire(Item.of(1), WAITS).release()),
                        new Task<>(() -> client.acquire(1).release()),
                        new Task<>(() -> client.request(Item.of(1), new Options())),
                        new Task<>(client::ping),
                        new Task<>(() -> client.flows().iterator().hasNext()));
        CompletableFuture<Permit> future = client.acquireAsync(Item.of(1), WAITS);
        Task<Void> closes =
                new Task<>(
                        () -> {
                            client.close();
                            return null;
                        });
        closes.get();
        for (Task<?> task : tasks) {
            Throwable error = task.end();
            boolean isExpected = error == null || error instanceof NowcallsException;
            assertTrue(address + ": " + error, isExpected);
        }
        Wait.until("the future ends", future::isDone);
        client.worker.thread.join(20_000);
        assertFalse(client.worker.thread.isAlive());
    }

    @Test
    public void closeWaitsForReleasesOnTheirWay() throws Exception {
        long flow = load(100, Map.of());
        Client client = client();
        List<Permit> permits = new ArrayList<>();
        for (int i = 0; i < 100; i++) {
            permits.add(client.acquire(flow));
        }
        List<CompletableFuture<Boolean>> releases = new ArrayList<>();
        permits.forEach(permit -> releases.add(permit.releaseAsync(Outcome.OK)));
        client.close();
        assertEquals(0, server.nowCalls(flow));
        for (CompletableFuture<Boolean> release : releases) {
            assertTrue(release.get(20, TimeUnit.SECONDS));
        }
    }

    private static long descriptors() {
        try (Stream<Path> open = Files.list(Path.of("/proc/self/fd"))) {
            return open.count();
        } catch (IOException error) {
            throw new AssertionError(error);
        }
    }

    private static long threads() {
        return Thread.getAllStackTraces().keySet().stream()
                .filter(thread -> thread.getName().startsWith("nowcalls"))
                .count();
    }

    @Test
    public void clientsThatAreClosedLeaveNoThreadAndNoDescriptor() throws Exception {
        long flow = load(100, Map.of());
        use(flow);
        long descriptors = descriptors();
        long threads = threads();
        for (int i = 0; i < 20; i++) {
            use(flow);
        }
        Wait.until("threads: " + threads(), () -> threads() <= threads);
        // Sockets of the test's own calls may be gone, too.
        Wait.until("descriptors: " + descriptors, () -> descriptors() <= descriptors);
        assertEquals(0, server.nowCalls(flow));
    }

    private void use(long flow) throws Exception {
        try (Client client = settings(server.address()).build();
                Client dials = settings("127.0.0.1:1").build();
                Client names = settings("no-such-host.invalid:1").build()) {
            client.acquire(flow).close();
            assertFalse((Boolean) dials.stats().get("connected"));
            assertFalse((Boolean) names.stats().get("connected"));
        }
    }
}
