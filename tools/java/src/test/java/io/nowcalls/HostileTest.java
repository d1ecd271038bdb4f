package io.nowcalls;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertTrue;

import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BiFunction;
import org.junit.Test;

/** Servers that answer wrong, or not at all. */
public class HostileTest extends Served {
    private static final int MUTANTS = 150;
    private static final int AT_ONCE = 8;

    @Override
    ServerProcess makeServer() {
        return null; // They are scripted.
    }

    private static byte[] bytes(int... values) {
        byte[] data = new byte[values.length];
        for (int i = 0; i < values.length; i++) {
            data[i] = (byte) values[i];
        }
        return data;
    }

    private static byte[] nested(int depth) {
        byte[] data = new byte[depth];
        Arrays.fill(data, (byte) 0x91);
        return data;
    }

    /** Answers that are no answers, with the reason that the client gives. */
    private static Map<String, byte[]> garbage() {
        Map<String, byte[]> cases = new LinkedHashMap<>();
        cases.put("a value begins with the byte 0xc1", bytes(0xc1, 1, 2, 3));
        cases.put("a value begins with the byte 0xc4", bytes(0x94, 1, 1, 0xc0, 0xc4, 1, 0));
        cases.put("a value begins with the byte 0xd6", bytes(0xd6, 0xff, 0, 0, 0, 0));
        cases.put("a message is 5", bytes(5));
        cases.put("a message is []", bytes(0x90));
        cases.put("a message is [3, 1]", bytes(0x92, 3, 1));
        cases.put("it sends requests back", bytes(0x94, 0, 1, 0xa1, 'x', 0x90));
        cases.put("a message is nested too deeply", nested(1000));
        cases.put("an array or a map has 4294967295 elements", bytes(0xdd, 255, 255, 255, 255));
        cases.put("an array or a map has 65535 elements", bytes(0xdf, 0, 0, 255, 255));
        cases.put("a message of more than 8388608 bytes", bytes(0xdb, 0x7f, 0xff, 0xff, 0xff));
        cases.put("a key is 1", bytes(0x94, 1, 1, 0xc0, 0x81, 1, 1));
        cases.put(
                "MessageStringCodingException", bytes(0x94, 1, 1, 0xc0, 0xa2, 0xff, 0xfe));
        cases.put(
                "it answers a request 999 that awaits no answer",
                ScriptedServer.ok(999, List.of(0L)));
        cases.put("it speaks HTTP", "HTTP/1.1 400 Bad Request\r\n".getBytes());
        cases.put("it speaks SSH", "SSH-2.0-OpenSSH".getBytes());
        cases.put("msgid is -1", bytes(0x94, 1, 0xff, 0xc0, 0xc0));
        cases.put("token_id is x", Values.pack(Arrays.asList(2L, "lost", List.of("x", 1L, "y"))));
        return cases;
    }

    /** Waits for a machine that is busy, yet not for long. */
    private Client impatient(ScriptedServer one) {
        return open(settings(one.address()).timeout(Duration.ofSeconds(1)).build());
    }

    @Test
    public void garbageIsAClearError() throws Exception {
        List<Task<Void>> tasks = new ArrayList<>();
        for (Map.Entry<String, byte[]> one : garbage().entrySet()) {
            tasks.add(new Task<>(() -> meetGarbage(one.getKey(), one.getValue())));
        }
        for (Task<Void> task : tasks) {
            task.get();
        }
    }

    private Void meetGarbage(String why, byte[] data) throws Exception {
        try (ScriptedServer one = new ScriptedServer((msgid, method, params) -> data);
                Client client =
                        settings(one.address()).timeout(Duration.ofSeconds(2)).build()) {
            NowcallsException error = thrown(NowcallsException.class, client::ping);
            assertTrue(why + ": " + error, error.getMessage().contains(why));
            assertNull(client.worker.ended);
        }
        return null;
    }

    @Test
    public void aSilentServerIsAClearError() throws Exception {
        ScriptedServer one = open(new ScriptedServer((msgid, method, params) -> null));
        assertThrown(
                UnavailableException.class,
                "ping: not carried out: " + one.address() + ": no answer to hello; is that a"
                        + " nowcalls-server? the token port of a nowcalls-server is usually 18730;"
                        + " or does it speak TLS only?",
                impatient(one)::ping);
    }

    @Test
    public void halfAnAnswerIsNone() throws Exception {
        ScriptedServer one =
                open(
                        new ScriptedServer(
                                (msgid, method, params) -> {
                                    byte[] whole = ScriptedServer.usual(msgid, method);
                                    boolean isHalf = method.equals("acquire");
                                    return isHalf ? Arrays.copyOf(whole, whole.length / 2) : whole;
                                }));
        Client client = impatient(one);
        client.ping();
        assertThrown(
                OutcomeUnknownException.class,
                "acquire: no answer, perhaps it was carried out: the server did not answer in time",
                () -> client.acquire(1));
        Wait.until("it asks to cancel", () -> one.asked.contains("cancel"));
    }

    @Test
    public void anAnswerThatComesInPiecesIsRead() throws Exception {
        String text = "x".repeat(300_000) + "é".repeat(10);
        byte[] whole = ScriptedServer.ok(2, Map.of("name", text));
        ScriptedServer one =
                open(
                        new ScriptedServer(
                                (msgid, method, params) ->
                                        method.equals("hello")
                                                ? ScriptedServer.usual(msgid, method)
                                                : Arrays.copyOf(whole, whole.length - 3)));
        Client client = open(settings(one.address()).build());
        Task<Map<String, Object>> row = new Task<>(() -> client.flow(1));
        Wait.until("it is asked", () -> one.asked.contains("flow"));
        one.send(Arrays.copyOfRange(whole, whole.length - 3, whole.length));
        assertEquals(text, row.get().get("name"));
    }

    @Test
    public void anAnswerThatComesTwiceEndsTheConnection() throws Exception {
        ScriptedServer one =
                open(
                        new ScriptedServer(
                                (msgid, method, params) -> {
                                    byte[] answer = ScriptedServer.usual(msgid, method);
                                    return method.equals("ping")
                                            ? ScriptedServer.join(answer, answer)
                                            : answer;
                                }));
        Client client = open(settings(one.address()).build());
        assertEquals(5, client.ping());
        Wait.until("it ends", () -> client.stats().get("disconnects").equals(1L));
    }

    /** Each answer with one byte that is another. */
    @Test
    public void noWrongByteIsMoreThanAnError() throws Exception {
        Random random = new Random(51);
        ExecutorService pool = Executors.newFixedThreadPool(AT_ONCE);
        List<Future<?>> runs = new ArrayList<>();
        try (Logged logged = new Logged()) {
            for (int i = 0; i < MUTANTS; i++) {
                long seed = random.nextLong();
                runs.add(pool.submit(() -> meetMutant(seed)));
            }
            for (Future<?> run : runs) {
                run.get(30, TimeUnit.SECONDS);
            }
            String severe =
                    logged.lines().stream()
                            .filter(line -> line.startsWith("SEVERE"))
                            .reduce("", String::concat);
            assertEquals("", severe);
        } finally {
            pool.shutdownNow();
        }
    }

    private Void meetMutant(long seed) throws IOException, InterruptedException {
        Random random = new Random(seed);
        String[] methods = {"hello", "acquire", "keep", "release", "request", "ping"};
        String victim = methods[random.nextInt(methods.length)];
        ScriptedServer.Script script =
                (msgid, method, params) -> {
                    byte[] answer = ScriptedServer.usual(msgid, method);
                    if (method.equals(victim)) {
                        answer[random.nextInt(answer.length)] = (byte) random.nextInt(256);
                    }
                    return answer;
                };
        try (ScriptedServer one = new ScriptedServer(script);
                Client client =
                        settings(one.address()).timeout(Duration.ofMillis(200)).build()) {
            List<Code> calls =
                    List.of(
                            client::ping,
                            () -> client.request(Item.of(1), new Options().sleep(false)),
                            () -> {
                                Permit permit = client.acquire(1);
                                permit.keep();
                                permit.release(Outcome.FAILED);
                            });
            for (Code call : calls) {
                try {
                    call.run();
                } catch (NowcallsException expected) {
                    continue;
                } catch (Exception other) {
                    throw new AssertionError("seed " + seed + ": " + other, other);
                }
            }
            assertNull("seed " + seed, client.worker.ended);
        }
        return null;
    }

    @Test
    public void pagesThatDoNotEndAreAnError() throws Exception {
        ScriptedServer one =
                open(
                        new ScriptedServer(
                                (msgid, method, params) ->
                                        method.equals("flows")
                                                ? ScriptedServer.ok(
                                                        msgid, Arrays.asList(List.of(), 7L))
                                                : ScriptedServer.usual(msgid, method)));
        Client client = open(settings(one.address()).build());
        assertThrown(
                NowcallsException.class,
                "flows: the server's pages do not end",
                () -> client.flows().forEach(row -> {}));
        long asked = one.asked.stream().filter(method -> method.equals("flows")).count();
        assertEquals(2, asked);
    }

    /** Pages: a row, then no row twice, then a row. */
    @Test
    public void theTimeOfTheProgramIsNotThatOfAListing() throws Exception {
        AtomicLong now = new AtomicLong(1);
        AtomicLong perPage = new AtomicLong();
        ScriptedServer.Script script =
                (msgid, method, params) -> {
                    if (method.equals("hello")) {
                        return ScriptedServer.usual(msgid, method);
                    }
                    now.addAndGet(perPage.get());
                    long page = params.get(1) == null ? 0 : (Long) params.get(1);
                    List<Object> rows =
                            page % 3 == 0 ? List.of(Map.of("page", page)) : List.of();
                    return ScriptedServer.ok(
                            msgid, Arrays.asList(rows, page == 3 ? null : (Object) (page + 1)));
                };
        ScriptedServer one = open(new ScriptedServer(script));
        Client client = open(settings(one.address()).build());
        Rows slow = new Rows(client, 100, now::get, "flows");
        now.addAndGet(101);
        assertEquals(0L, slow.next().get("page"));
        now.addAndGet(101);
        assertEquals(3L, slow.next().get("page"));
        assertFalse(slow.hasNext());
        perPage.set(60);
        Rows late = new Rows(client, 100, now::get, "flows");
        assertEquals(0L, late.next().get("page"));
        assertThrown(
                NowcallsException.class,
                "flows: the server's pages do not end",
                late::hasNext);
    }

    @Test
    public void noErrorHasTheSecretThatAServerSendsBack() throws Exception {
        Map<String, Long> codes = Map.of("identify", 1L, "hello", 9L, "ping", 3L);
        for (String method : codes.keySet()) {
            assertHidden(method, (msgid, text) ->
                    ScriptedServer.error(msgid, codes.get(method), "WORD", text));
        }
        assertHidden("identify", (msgid, text) ->
                Values.pack(Arrays.asList(1L, msgid, text, null)));
    }

    private void assertHidden(String victim, BiFunction<Long, String, byte[]> answer)
            throws Exception {
        String secret = "nc-0123456789";
        ScriptedServer.Script script =
                (msgid, method, params) -> {
                    if (method.equals(victim)) {
                        return answer.apply(msgid, "no " + secret + " here");
                    }
                    boolean isFirst = method.equals("identify");
                    return isFirst
                            ? ScriptedServer.ok(msgid, List.of("me", List.of(), List.of()))
                            : ScriptedServer.usual(msgid, method);
                };
        try (Logged logged = new Logged();
                ScriptedServer one = new ScriptedServer(script);
                Client client =
                        settings(one.address())
                                .secret(secret)
                                .timeout(Duration.ofSeconds(1))
                                .build()) {
            String error = thrown(NowcallsException.class, client::ping).getMessage();
            assertTrue(error, error.contains("no ... here"));
            assertFalse(error, error.contains(secret));
            assertFalse(victim, logged.has(secret));
        }
    }

    /** While the flag is set the thread does not sleep. */
    @Test
    public void anInterruptOfTheClientsThreadDoesNotLast() throws Exception {
        ScriptedServer one =
                open(new ScriptedServer((msgid, method, params) ->
                        ScriptedServer.usual(msgid, method)));
        Client client = open(settings(one.address()).build());
        client.ping();
        Thread thread = client.worker.thread;
        thread.interrupt();
        Wait.until("the flag is cleared", () -> !thread.isInterrupted());
        assertEquals(5, client.ping());
        assertEquals(0L, client.stats().get("disconnects"));
    }

    @Test
    public void anyBytesAreAValueOrAnError() {
        Random random = new Random(3);
        for (int i = 0; i < 200_000; i++) {
            byte[] data = new byte[random.nextInt(24)];
            random.nextBytes(data);
            try {
                int size = new Boundary().find(data, 0, data.length);
                if (size > 0) {
                    Values.read(data, 0, size);
                }
            } catch (WrongAnswer expected) {
                continue;
            }
        }
    }

    /** Whatever pieces a value comes in, its end is the same. */
    @Test
    public void theEndOfAValueIsFoundInPieces() throws Exception {
        List<Object> value = new ArrayList<>();
        long[] numbers = {0, 127, 128, 255, 65535, 1L << 32, Long.MAX_VALUE, -1, -33};
        for (long number : numbers) {
            value.add(Map.of("n", number, "list", Arrays.asList(number, null, true, 0.5, 0.5f)));
        }
        value.add("x".repeat(31));
        value.add("é".repeat(200));
        value.add("y".repeat(70_000));
        value.add(Arrays.asList(new Object[100]));
        byte[] data = Values.pack(value);
        for (int step : new int[] {1, 2, 7, 1000, data.length}) {
            Boundary boundary = new Boundary();
            int size = 0;
            for (int end = Math.min(step, data.length); size == 0; end += step) {
                size = boundary.find(data, 0, Math.min(end, data.length));
                assertTrue(size == 0 || end >= data.length);
            }
            assertEquals(data.length, size);
        }
        List<?> read = (List<?>) Values.read(data, 0, data.length);
        assertEquals(value.size(), read.size());
        assertEquals(value.get(11), read.get(11));
    }
}
