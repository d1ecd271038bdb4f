package io.nowcalls;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;
import static org.junit.Assume.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.BeforeClass;
import org.junit.Test;

/** The vectors of data/golden/sessions, written by the session of C++: Java's does the same. */
public class VectorTest {
    @BeforeClass
    public static void quiet() {
        Logged.silence();
    }

    private static List<Path> files() throws IOException {
        return filesOf(Trees.ROOT.resolve("data/golden/sessions"));
    }

    private static List<Path> filesOf(Path directory) throws IOException {
        try (Stream<Path> found = Files.list(directory)) {
            return found.filter(file -> file.toString().endsWith(".json"))
                    .sorted()
                    .collect(Collectors.toList());
        }
    }

    @Test
    public void eachVectorIsWhatTheSessionDoes() throws IOException {
        playAll(files());
    }

    /** As unit_client writes them. */
    @Test
    public void randomLivesAreWhatTheSessionDoes() throws Exception {
        String writer = System.getenv("NOWCALLS_UNIT_CLIENT");
        assumeTrue("skipped: no NOWCALLS_UNIT_CLIENT writes lives", writer != null);
        Path lives = Files.createTempDirectory("nowcalls-java-lives-");
        try {
            ProcessBuilder writes = new ProcessBuilder(writer, "--test-case=random lives*");
            writes.environment().put("NOWCALLS_LIVES_DIR", lives.toString());
            writes.redirectErrorStream(true);
            Process process = writes.start();
            String said = new String(process.getInputStream().readAllBytes());
            assertEquals(said, 0, process.waitFor());
            List<Path> files = filesOf(lives);
            assertTrue("lives: " + files.size(), files.size() > 99);
            playAll(files);
        } finally {
            Authority.run(List.of("rm", "-r", lives.toString()));
        }
    }

    private static void playAll(List<Path> files) throws IOException {
        List<String> failures = new ArrayList<>();
        for (Path file : files) {
            try {
                play(Player.map(Json.read(Files.readString(file))));
            } catch (AssertionError | RuntimeException error) {
                failures.add(file.getFileName() + ": " + error);
            }
        }
        assertEquals(String.join("\n", failures), 0, failures.size());
        assertTrue("there are vectors", !files.isEmpty());
    }

    @Test
    public void thereAreVectors() throws IOException {
        assertTrue(files().size() >= 72);
    }

    private static void play(Map<String, Object> script) {
        Player player = new Player(script);
        int number = 0;
        for (Object one : (List<?>) script.get("steps")) {
            Map<String, Object> step = Player.map(one);
            String where = "step " + number++ + ": " + step.get("do") + " at " + step.get("at_ms");
            if (step.containsKey("due")) {
                long due = Player.ms(player.session.wakeup());
                assertEquals(where + ": due", step.get("at_ms"), due);
            }
            Map<String, Object> came = player.play(step);
            String sent = (String) step.getOrDefault("sent", "");
            if (!came.get("sent").equals(sent)) {
                assertEquals(where, Player.shown(sent), Player.shown((String) came.get("sent")));
            }
            assertEquals(where, sent, came.get("sent"));
            assertEquals(where, step.containsKey("hangs_up"), came.get("hangs_up"));
            assertEquals(
                    where + ": answers",
                    comparable(step.getOrDefault("answers", List.of())),
                    comparable(came.get("answers")));
            assertEquals(where + ": lost", step.getOrDefault("lost", List.of()), came.get("lost"));
            assertEquals(
                    where + ": valid_until_ms",
                    new TreeMap<>(Player.map(step.getOrDefault("valid_until_ms", Map.of()))),
                    came.get("valid_until_ms"));
            assertEquals(where + ": dials", step.get("dials"), came.get("dials"));
            assertEquals(where, step.getOrDefault("settled", false), came.get("settled"));
        }
    }

    /**
     * Without what this client does not tell: of a group of rates alone, that it is local; and
     * without the calls in progress where they limit nothing.
     */
    private static List<Object> comparable(Object answers) {
        List<Object> told = new ArrayList<>();
        for (Object one : (List<?>) answers) {
            Map<String, Object> answer = new TreeMap<>(Player.map(one));
            List<?> tokens = (List<?>) answer.getOrDefault("tokens", List.of(0L));
            if (tokens.stream().allMatch(token -> token == null)) {
                answer.remove("local");
            }
            if (Long.valueOf(0).equals(answer.get("level"))) {
                answer.remove("now_calls");
            }
            told.add(answer);
        }
        return told;
    }

    /** A session and its owner, who does what the steps say. */
    static final class Player {
        private static final Map<String, Keep> KEEPS =
                Map.of("rule", Keep.RULE, "always", Keep.ALWAYS, "off", Keep.OFF);

        final Session session;
        private long now;
        private final Map<String, Permit> permits = new HashMap<>();
        private final Map<String, Object> told = new HashMap<>();
        private List<Object> answers = new ArrayList<>();
        private boolean hangsUp;
        private Object pauseMs;
        private String dials;
        private boolean closed;

        Player(Map<String, Object> script) {
            Map<String, Object> client = map(script.get("client"));
            Config config = new Config();
            config.addresses =
                    ((List<?>) client.get("addresses"))
                            .stream()
                                    .map(address -> Address.parse((String) address))
                                    .collect(Collectors.toList());
            config.namespace = (String) client.get("namespace");
            config.clientId = (String) client.get("client_id");
            config.timeout = number(client.get("timeout_ms")) * Moments.MS;
            config.keep = Keep.RULE;
            String fallback = (String) client.get("fallback");
            config.fallback = FallbackMode.valueOf(fallback.toUpperCase());
            config.localLevels = new HashMap<>();
            map(client.get("local_levels"))
                    .forEach((flow, level) -> config.localLevels.put(flow(flow), number(level)));
            config.exclusive = (Boolean) client.get("exclusive");
            Object secret = client.get("secret");
            config.secret = secret == null ? null : Secret.of((String) secret);
            Surroundings outside = new Surroundings();
            outside.makePermit = held -> new Permit(held, null);
            outside.uniform = this::pause;
            List<Object> ids = new ArrayList<>((List<?>) script.get("request_ids"));
            outside.requestIds = () -> number(ids.remove(0));
            outside.clock = () -> now;
            outside.instance = number(client.get("instance"));
            session = new Session(config, outside, 0);
            dials = session.dialing.name();
        }

        /** A session draws what the step has. */
        private long pause(long low, long high) {
            if (pauseMs == null) {
                return low;
            }
            long pause = number(pauseMs) * Moments.MS;
            assertTrue("a pause of " + low + " to " + high, low <= pause && pause <= high);
            return pause;
        }

        /** Rounded, as the vectors have moments. */
        static long ms(long moment) {
            return Math.floorDiv(moment + Moments.MS / 2, Moments.MS);
        }

        static Object flow(String flow) {
            return flow.matches("[0-9]+") ? (Object) Long.valueOf(flow) : flow;
        }

        @SuppressWarnings("unchecked")
        static Map<String, Object> map(Object value) {
            return (Map<String, Object>) value;
        }

        static long number(Object value) {
            return (Long) value;
        }

        static String shown(String hex) {
            List<Object> messages = new ArrayList<>();
            byte[] data = bytes(hex);
            try {
                for (int at = 0; at < data.length; ) {
                    int size = new Boundary().find(data, at, data.length);
                    messages.add(Values.read(data, at, size));
                    at += size;
                }
            } catch (WrongAnswer wrong) {
                messages.add(wrong);
            }
            return messages.toString();
        }

        static byte[] bytes(String hex) {
            byte[] data = new byte[hex.length() / 2];
            for (int i = 0; i < data.length; i++) {
                data[i] = (byte) Integer.parseInt(hex.substring(2 * i, 2 * i + 2), 16);
            }
            return data;
        }

        static String hex(byte[] data) {
            StringBuilder text = new StringBuilder();
            for (byte one : data) {
                text.append(String.format("%02x", one));
            }
            return text.toString();
        }

        /** What came of it, as the step has it. */
        Map<String, Object> play(Map<String, Object> step) {
            now = number(step.get("at_ms")) * Moments.MS;
            answers = new ArrayList<>();
            hangsUp = false;
            pauseMs = step.get("pause_ms");
            act(step);
            Map<String, Object> came = new HashMap<>();
            came.put("sent", hex(session.output().take()));
            came.put("answers", answers);
            came.put("hangs_up", hangsUp);
            List<Object> lost = new ArrayList<>();
            for (Held held : session.takeLost()) {
                String reason = held.lostReason == null ? "" : held.lostReason;
                lost.add(Map.of("permit", nameOf(held), "reason", reason));
            }
            came.put("lost", lost);
            came.put("valid_until_ms", changedValidity());
            String before = dials;
            dials = session.dialing.name();
            came.put("dials", dials.equals(before) ? null : dials);
            boolean settled = closed && session.isSettled();
            came.put("settled", settled);
            closed = closed && !settled;
            return came;
        }

        private void act(Map<String, Object> step) {
            String reason = (String) step.get("reason");
            switch ((String) step.get("do")) {
                case "dial":
                    session.dialing.begin();
                    return;
                case "denied":
                    session.denied(now, reason);
                    return;
                case "connected":
                    session.connected(now, true);
                    return;
                case "dial_failed":
                    session.connectFailed(now, reason);
                    return;
                case "disconnected":
                    session.disconnected(now, reason);
                    return;
                case "received":
                    byte[] data = bytes((String) step.get("bytes"));
                    hangsUp = session.received(data, data.length, now) != null;
                    return;
                case "tick":
                    hangsUp = session.tick(now) != null;
                    return;
                case "close":
                    session.close(now);
                    closed = true;
                    return;
                case "release":
                    Outcome outcome =
                            Outcome.valueOf(((String) step.get("outcome")).toUpperCase());
                    Calls.Release release = new Calls.Release(permit(step).held, outcome, false);
                    release.notify = () -> answered("release " + step.get("permit"), release);
                    session.release(release, now, session.config.timeout);
                    return;
                case "keep":
                    Calls.KeepCall keep = new Calls.KeepCall(permit(step).held);
                    keep.notify = () -> answered("keep " + step.get("permit"), keep);
                    session.ask(keep, now);
                    return;
                default:
                    ask(step);
            }
        }

        private void ask(Map<String, Object> step) {
            Call call = call(step);
            if (call instanceof AcquireCall) {
                ((AcquireCall) call).keep = KEEPS.get(step.get("keep"));
            }
            call.notify = () -> answered((String) step.get("call"), call);
            Object timeout = step.get("timeout_ms");
            session.ask(
                    call,
                    now,
                    timeout == null ? session.config.timeout : number(timeout) * Moments.MS);
        }

        private static Call call(Map<String, Object> step) {
            Object waitMs = step.get("wait_ms");
            long wait = waitMs == null ? AcquireCall.BY_RULE : number(waitMs) * Moments.MS;
            boolean prioritized = Boolean.TRUE.equals(step.get("prioritized"));
            boolean sleep = Boolean.TRUE.equals(step.get("sleep"));
            switch ((String) step.get("do")) {
                case "acquire":
                    Object param = step.get("param");
                    Item asked = item(step.get("flow"), step.get("count"), param, false);
                    long holdMs = number(step.get("hold_ms"));
                    return new AcquireCall(asked, wait, prioritized, holdMs);
                case "acquire_all":
                    List<Item> items = new ArrayList<>();
                    for (Object one : (List<?>) step.get("items")) {
                        List<?> i = (List<?>) one;
                        boolean isRate = Long.valueOf(1).equals(i.get(3));
                        items.add(item(i.get(0), i.get(1), i.get(2), isRate));
                    }
                    return new AcquireAllCall(
                            items, wait, prioritized, sleep, number(step.get("hold_ms")));
                case "request":
                    Item rate = item(step.get("flow"), step.get("count"), null, true);
                    return new Calls.RateRequest(rate, null, prioritized, sleep);
                case "request_param":
                    Item each = item(step.get("flow"), step.get("count"), null, true);
                    List<?> values = (List<?>) step.get("values");
                    return new Calls.RateRequest(each, values, false, sleep);
                default:
                    throw new IllegalArgumentException("a step does " + step.get("do"));
            }
        }

        private static Item item(Object flow, Object count, Object param, boolean rate) {
            return new Item(flow, number(count), param, rate);
        }

        private Permit permit(Map<String, Object> step) {
            return permits.get(step.get("permit"));
        }

        // What came of it.

        private void answered(String name, Call call) {
            Map<String, Object> told = new HashMap<>();
            String outcome = outcomeOf(call.error);
            told.put("call", name);
            told.put("outcome", outcome);
            if (call.error instanceof RefusedException) {
                RefusedException refused = (RefusedException) call.error;
                if (outcome.equals("refused") && refused.refusedBy() != null) {
                    told.put("flow", refused.flow);
                    told.put("refused_by", refused.refusedBy());
                    told.put("now_calls", refused.nowCalls());
                    told.put("level", refused.level());
                }
                if (refused.isLocal()) {
                    told.put("local", true);
                }
            } else if (call instanceof Calls.Release) {
                Held held = ((Calls.Release) call).held;
                told.put("lost", held.isLost());
                if (held.local) {
                    told.put("local", true);
                }
            }
            if (call instanceof Calls.KeepCall && outcome.equals("ok") && call.value == null) {
                told.put("outcome", "refused");
            } else if (outcome.equals("ok")) {
                addValue(told, name, call);
            }
            answers.add(told);
        }

        private static String outcomeOf(NowcallsException error) {
            // The most exact first.
            return error == null ? "ok"
                    : error instanceof NoRuleException ? "no_rule"
                    : error instanceof RefusedException ? "refused"
                    : error instanceof PermissionDeniedException ? "permission_denied"
                    : error instanceof BadRequestException ? "bad_request"
                    : error instanceof UnavailableException ? "unavailable"
                    : "unknown";
        }

        private void addValue(Map<String, Object> told, String name, Call call) {
            if (call instanceof Calls.RateRequest) {
                Rate rate = (Rate) call.value;
                told.put("remaining", rate.remaining());
                told.put("wait_ms", rate.waitTime().toMillis());
                if (((Calls.RateRequest) call).passed == null) {
                    told.put("local", true);
                }
            } else if (call instanceof Calls.KeepCall) {
                told.put("hold_ms", ((Calls.KeepCall.Kept) call.value).holdMs);
            } else if (call instanceof AcquireCall) {
                addPermits(told, name, (AcquireCall) call);
            }
        }

        private void addPermits(Map<String, Object> told, String name, AcquireCall call) {
            boolean isGroup = call instanceof AcquireAllCall;
            List<?> got = isGroup ? (List<?>) call.value : List.of(call.value);
            List<Object> tokens = new ArrayList<>();
            for (int i = 0; i < got.size(); i++) {
                Permit permit = (Permit) got.get(i);
                tokens.add(permit == null ? null : permit.tokenId());
                if (permit != null) {
                    permits.put(isGroup ? name + "/" + i : name, permit);
                    if (permit.isLocal()) {
                        told.put("local", true);
                    }
                }
            }
            Permit first = (Permit) got.get(0);
            told.put("tokens", tokens);
            told.put("now_calls", first == null ? 0L : first.nowCalls());
            told.put("level", first == null ? 0L : first.level());
            if (isGroup) {
                boolean isLocal = told.containsKey("local");
                long wait = isLocal ? 0 : (call.waitUntil - now) / Moments.MS;
                told.put("wait_ms", Math.max(0, wait));
            }
        }

        private String nameOf(Held held) {
            return permits.entrySet().stream()
                    .filter(entry -> entry.getValue().held == held)
                    .map(Map.Entry::getKey)
                    .findFirst()
                    .orElseThrow();
        }

        private Map<String, Object> changedValidity() {
            Map<String, Object> changed = new TreeMap<>();
            permits.forEach(
                    (name, permit) -> {
                        Held held = permit.held;
                        if (held.local || held.state != Held.State.HELD) {
                            return;
                        }
                        Object at = (Object) ms(held.validUntil());
                        if (!at.equals(told.put(name, at))) {
                            changed.put(name, at);
                        }
                    });
            return changed;
        }
    }
}
