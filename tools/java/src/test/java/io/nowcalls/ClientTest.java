package io.nowcalls;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertTrue;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.junit.Test;

/** What a program does with a client, against a real server. */
public class ClientTest extends Served {
    private static final Options WAITS = new Options().waitUpTo(Duration.ofSeconds(20));

    @Test
    public void aPermitIsHeldUntilItIsClosed() throws Exception {
        long flow = load(2, Map.of());
        Client client = client();
        try (Permit permit = client.acquire(flow)) {
            assertEquals(1, server.nowCalls(flow));
            assertEquals(1, permit.nowCalls());
            assertEquals(2, permit.level());
            assertTrue(permit.tokenId() > 0 && permit.fence() > 0);
            assertEquals(60_000, permit.holdMs());
            assertFalse(permit.isLocal() || permit.isLost() || permit.isReleased());
            Duration valid = permit.validFor();
            assertTrue(valid.toString(), valid.compareTo(Duration.ofSeconds(30)) < 0);
            assertTrue(valid.toString(), valid.compareTo(Duration.ofSeconds(20)) > 0);
            assertTrue(permit.keep());
        }
        assertEquals(0, server.nowCalls(flow));
    }

    @Test
    public void aSecondReleaseDoesNothing() throws Exception {
        long flow = load(2, Map.of());
        Permit permit = client().acquire(flow);
        assertTrue(permit.release());
        assertTrue(permit.isReleased());
        assertTrue(permit.release());
        permit.close();
        assertFalse(permit.keep());
        assertEquals(Duration.ZERO, permit.validFor());
        assertEquals(0, server.nowCalls(flow));
    }

    @Test
    public void aRefusalSaysTheLimit() throws Exception {
        long flow = load(1, Map.of());
        Client client = client();
        try (Permit permit = client.acquire(flow)) {
            RefusedException refused =
                    thrown(RefusedException.class, () -> client.acquire(flow).close());
            assertEquals(
                    "flow " + flow + " refused by level: 1 of 1 in progress",
                    refused.getMessage());
            assertEquals("level", refused.refusedBy());
            assertEquals(String.valueOf(flow), refused.flow());
            assertEquals(1, refused.status());
            String trace = List.of(refused.getStackTrace()).toString();
            assertTrue(trace, trace.contains("aRefusalSaysTheLimit"));
            assertFalse(permit.isLost());
        }
        assertThrown(
                NoRuleException.class, "flow 987654 has no rule", () -> client.acquire(987_654));
    }

    @Test
    public void aCallTellsHowItEnded() throws Exception {
        long flow = load(5, Map.of());
        Client client = client();
        Options usual = new Options();
        assertEquals("done", client.call(Item.of(flow), usual, () -> "done"));
        Code failing =
                () ->
                        client.call(
                                Item.of(flow),
                                usual,
                                () -> {
                                    throw new IllegalStateException("it failed");
                                });
        assertThrown(IllegalStateException.class, "it failed", failing);
        Code late =
                () ->
                        client.call(
                                Item.of(flow),
                                usual,
                                () -> {
                                    throw new TimeoutException("too late");
                                });
        assertThrown(TimeoutException.class, "too late", late);
        Map<?, ?> counters = (Map<?, ?>) client.flow(flow).get("counters");
        Map<?, ?> outcomes = (Map<?, ?>) counters.get("outcomes");
        assertEquals(String.valueOf(counters), 1L, outcomes.get("failed"));
        assertEquals(1L, outcomes.get("timeout"));
        assertEquals(0, server.nowCalls(flow));
    }

    @Test
    public void aWaitingAcquireIsGrantedWhenThereIsRoom() throws Exception {
        long flow = load(1, Map.of());
        Client client = client();
        Permit first = client.acquire(flow);
        Task<Permit> second = new Task<>(() -> client.acquire(Item.of(flow), WAITS));
        Wait.until("it waits", () -> server.figure(flow, "waiters") == 1);
        first.close();
        second.get().close();
        assertEquals(0, server.nowCalls(flow));
    }

    @Test
    public void aGroupIsTakenAsAWhole() throws Exception {
        long one = load(1, Map.of());
        long two = load(3, Map.of());
        Client client = client();
        List<Item> items = List.of(Item.of(one), Item.of(two).count(2), Item.rate(two));
        List<Permit> permits = client.acquireAll(items, new Options());
        assertEquals(2, server.nowCalls(two));
        assertNull(permits.get(2));
        RefusedException refused =
                thrown(RefusedException.class, () -> client.acquireAll(items, new Options()));
        assertEquals(String.valueOf(one), refused.flow());
        permits.get(0).close();
        permits.get(1).close();
        assertEquals(0, server.nowCalls(two));
    }

    @Test
    public void callsASecondAreCounted() throws Exception {
        long flow = load(5, Map.of("windowIntervalMs", 60_000L, "countPerWindow", true));
        Client client = client();
        Rate rate = client.request(Item.of(flow).count(3), new Options());
        assertEquals(2, rate.remaining());
        assertEquals(Duration.ZERO, rate.waitTime());
        assertEquals(1, client.requestAsync(Item.of(flow), new Options()).get().remaining());
        RefusedException refused =
                thrown(
                        RefusedException.class,
                        () -> client.request(Item.of(flow).count(2), new Options()));
        assertEquals("rate", refused.refusedBy());
        assertThrown(
                BadRequestException.class,
                "request has no param; requestParam takes values",
                () -> client.request(Item.of(flow).param("x"), new Options()));
    }

    @Test
    public void valuesHaveLimitsOfTheirOwn() throws Exception {
        Map<String, Object> rule = ServerProcess.rule(77_301, 1, Map.of());
        rule.put("paramIdx", 0L);
        loadRule(rule);
        Client client = client();
        List<Object> values = List.of("a", 1, 2L, 0.5, true);
        List<Permit> permits = new ArrayList<>(); // So that none is dropped.
        for (Object value : values) {
            permits.add(client.acquire(Item.of(77_301).param(value), new Options()));
            Code again = () -> client.acquire(Item.of(77_301).param(value), new Options());
            assertEquals("param", thrown(RefusedException.class, again).refusedBy());
        }
        client.requestParam(Item.of(77_301), List.of("a", "b"), new Options());
        List<Object> tokens = new ArrayList<>();
        client.tokens(Item.of(77_301), null).forEach(row -> tokens.add(row.get("param")));
        assertEquals(List.of("a", 1L, 2L, 0.5, true), tokens);
        permits.forEach(Permit::close);
        assertFalse(client.tokens(Item.of(77_301), null).iterator().hasNext());
    }

    @Test
    public void futuresEndAsTheCallsDo() throws Exception {
        long flow = load(1, Map.of());
        Client client = client();
        CompletableFuture<Permit> first = client.acquireAsync(Item.of(flow), new Options());
        Permit permit = first.get(20, TimeUnit.SECONDS);
        ExecutionException failed =
                thrown(
                        ExecutionException.class,
                        () -> client.acquireAsync(Item.of(flow), new Options()).get());
        assertTrue(failed.getCause() instanceof RefusedException);
        assertTrue(permit.releaseAsync(Outcome.FAILED).get(20, TimeUnit.SECONDS));
        CompletableFuture<Permit> second =
                client.acquireAllAsync(List.of(Item.of(flow)), WAITS)
                        .thenApply(
                                permits -> {
                                    assertFalse(client.worker.isCurrent());
                                    permits.get(0).close(); // It may block there.
                                    return permits.get(0);
                                });
        assertTrue(second.get(20, TimeUnit.SECONDS).isReleased());
        assertEquals(0, server.nowCalls(flow));
    }

    @Test
    public void aTokenThatAnOperatorTakesIsLostAtOnce() throws Exception {
        long flow = load(1, Map.of());
        CompletableFuture<Permit> told = new CompletableFuture<>();
        Client client = open(settings(server.address()).onLost(told::complete).build());
        try (Permit permit = client.acquire(flow);
                Logged logged = new Logged()) {
            server.call("reclaim", permit.tokenId(), "a test");
            assertEquals(permit, told.get(20, TimeUnit.SECONDS));
            assertTrue(permit.isLost());
            assertEquals("admin", permit.lostReason());
            assertFalse(permit.release());
            String line = "lost token " + permit.tokenId() + " of flow " + flow + ": admin";
            assertTrue(logged.lines().toString(), logged.has("WARNING " + line));
        }
        assertEquals(1L, client.stats().get("lost"));
    }

    @Test
    public void aTokenIsKeptWhileItsCallGoesOn() throws Exception {
        Map<String, Object> brief = Map.of("resourceTimeout", 200L);
        long kept = load(1, brief);
        Client client = client();
        try (Permit permit = client.acquire(kept)) {
            Wait.until("it is kept", () -> (Long) client.stats().get("kept") >= 4);
            assertFalse(permit.isLost());
        }
        Options off = new Options().keep(Keep.OFF);
        try (Permit permit = client.acquire(Item.of(kept), off)) {
            Wait.until("it is lost", permit::isLost);
            assertEquals("resource_timeout", permit.lostReason());
        }
    }

    @Test
    public void aCallbackMustNotBlockTheClient() throws Exception {
        long flow = load(1, Map.of());
        Client client = open(settings(server.address()).executor(Runnable::run).build());
        CompletableFuture<Throwable> met = new CompletableFuture<>();
        client.acquireAsync(Item.of(flow), new Options())
                .thenAccept(
                        permit -> {
                            try {
                                client.ping();
                            } catch (Throwable error) {
                                met.complete(error);
                            }
                            permit.close(); // It does not wait there.
                        });
        Throwable error = met.get(20, TimeUnit.SECONDS);
        assertEquals("a callback must not call the client that calls it", error.getMessage());
        Wait.until("it is released", () -> server.nowCalls(flow) == 0);
    }

    @Test
    public void aPermitThatIsDroppedIsReleased() throws Exception {
        long flow = load(1, Map.of());
        Client client = client();
        try (Logged logged = new Logged()) {
            drop(client, flow);
            Wait.until(
                    "it is released",
                    () -> {
                        System.gc();
                        return server.nowCalls(flow) == 0;
                    });
            assertTrue(logged.lines().toString(), logged.has("was dropped, so it is released"));
        }
        assertEquals(0L, client.stats().get("held"));
    }

    private static void drop(Client client, long flow) throws InterruptedException {
        client.acquire(flow);
    }

    @Test
    public void aLocalPermitThatIsDroppedGivesItsShareBack() throws Exception {
        ClientBuilder builder = settings("127.0.0.1:1").fallback(FallbackMode.LOCAL);
        Client client = open(builder.localLevel(7, 1).build());
        drop(client, 7);
        Wait.until(
                "its share is free",
                () -> {
                    System.gc();
                    try {
                        client.acquire(7).close();
                        return true;
                    } catch (RefusedException | InterruptedException full) {
                        return false;
                    }
                });
    }

    @Test
    public void aClientThatIsDroppedEnds() throws Exception {
        long flow = load(1, Map.of());
        try (Logged logged = new Logged()) {
            Thread thread = dropClient(flow);
            Wait.until(
                    "its thread ends",
                    () -> {
                        System.gc();
                        return !thread.isAlive();
                    });
            assertTrue(logged.lines().toString(), logged.has("a client was dropped, not closed"));
        }
    }

    private Thread dropClient(long flow) throws InterruptedException {
        Client client = settings(server.address()).build();
        client.acquire(flow); // So that its thread looks again each second.
        return client.worker.thread;
    }

    @Test
    public void whatTheServerKnows() throws Exception {
        long flow = load(3, Map.of());
        Client client = client();
        assertTrue(client.ping() > 1_000_000_000_000L);
        List<Permit> permits = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            permits.add(client.acquire(flow));
        }
        assertEquals(3L, client.flow(flow).get("now_calls"));
        List<Object> tokens = new ArrayList<>();
        client.tokens(Item.of(flow), null).forEach(row -> tokens.add(row.get("token_id")));
        for (Permit permit : permits) {
            assertTrue(tokens.contains(permit.tokenId()));
            permit.close();
        }
        Object id = client.stats().get("client_id");
        List<Object> ids = new ArrayList<>();
        client.sessions().forEach(row -> ids.add(row.get("client_id")));
        assertTrue(ids.toString(), ids.contains(id));
        assertTrue(client.flows().iterator().hasNext());
        client.history().forEach(row -> assertTrue(row.containsKey("reason")));
    }

    @Test
    public void withoutAServerAClientFallsBack() throws Exception {
        Client client =
                open(Client.builder("127.0.0.1:1")
                        .environment(Map.of())
                        .fallback(FallbackMode.LOCAL)
                        .localLevel(7, 1)
                        .build());
        try (Permit permit = client.acquire(7)) {
            assertTrue(permit.isLocal());
            assertEquals(0, permit.tokenId());
            assertEquals(Long.MAX_VALUE, permit.validFor().toNanos());
            assertTrue(permit.validFor().toMillis() > 0);
            RefusedException refused = thrown(RefusedException.class, () -> client.acquire(7));
            assertTrue(refused.isLocal());
            String text = "flow 7 refused by the local share: 1 of 1 in progress";
            assertEquals(text, refused.getMessage());
            assertThrown(
                    UnavailableException.class,
                    "acquire: not carried out: 127.0.0.1:1: Connection refused",
                    () -> client.acquire(8));
        }
        assertEquals(1L, client.stats().get("local_granted"));
        client.acquire(7).close();
    }

    @Test
    public void afterCloseCallsAreRefused() throws Exception {
        long flow = load(1, Map.of());
        Client client = client();
        Permit permit = client.acquire(flow);
        client.close();
        assertThrown(
                BadRequestException.class, "the client is closed", () -> client.acquire(flow));
        assertThrown(
                UnavailableException.class,
                "release: not carried out: the client is closed",
                permit::release);
        assertEquals(false, client.stats().get("connected"));
        client.close();
    }

    @Test
    public void aClientThatRejoinsHasTheTokensOfItsPredecessor() throws Exception {
        long flow = load(1, Map.of());
        ClientBuilder builder = settings(server.address()).clientId("worker").rejoin(true);
        Client first = open(builder.build());
        Permit permit = first.acquire(flow);
        first.close();
        try (Logged logged = new Logged()) {
            Client second = open(builder.build());
            second.ping();
            assertTrue(logged.lines().toString(), logged.has(", 1 tokens"));
        }
        assertEquals(1, server.nowCalls(flow));
        server.call("reclaim", permit.tokenId(), "a test");
    }

    @Test
    public void anExecutorThatTakesNothingHoldsNobodyUp() throws Exception {
        long flow = load(1, Map.of());
        ClientBuilder builder =
                settings(server.address())
                        .executor(
                                task -> {
                                    throw new IllegalStateException("it is shut down");
                                });
        Client client = open(builder.build());
        client.acquireAsync(Item.of(flow), new Options()).get(20, TimeUnit.SECONDS).close();
        assertEquals(0, server.nowCalls(flow));
    }

    @Test
    public void anExclusiveClientIdIsNotShared() throws Exception {
        ClientBuilder builder = settings(server.address()).clientId("one").exclusive(true);
        Client first = open(builder.build());
        first.ping();
        List<Object> hello = new ArrayList<>(List.of(1L, namespace(), "one"));
        hello.add(Map.of("exclusive", true, "instance", 5L));
        AssertionError refused =
                thrown(AssertionError.class, () -> server.call("hello", hello.toArray()));
        assertTrue(refused.getMessage(), refused.getMessage().contains("CONFLICT"));
    }
}
