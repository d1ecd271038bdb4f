package io.nowcalls;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** A real server with a ledger of its own, on a free port that it keeps over restarts. */
final class ServerProcess implements AutoCloseable {
    private static final Path BIN = bin();

    private final Path dir;
    private final List<String> arguments;
    private Process process;
    private int port;

    ServerProcess(String... arguments) throws Exception {
        this.dir = Files.createTempDirectory("nowcalls-java-");
        this.arguments = List.of(arguments);
        start();
    }

    private static Path bin() {
        String named = System.getenv("NOWCALLS_BIN_DIR");
        return named == null ? Trees.ROOT.resolve("build/bin") : Path.of(named).toAbsolutePath();
    }

    /** Of a directory with servers that know names of flows. */
    static boolean knowsNames() throws Exception {
        try (ServerProcess server = new ServerProcess()) {
            server.load("default", List.of(rule(1, 1, Map.of())));
            try {
                server.call("flow", "r1");
                return true;
            } catch (AssertionError error) {
                return false;
            }
        }
    }

    static Path program(String name) {
        return BIN.resolve(name);
    }

    void start() throws Exception {
        Path portFile = dir.resolve("port");
        Files.deleteIfExists(portFile);
        List<String> command = new ArrayList<>();
        command.add(program("nowcalls-server").toString());
        command.addAll(List.of("--listen", address(), "--port-file", portFile.toString()));
        command.addAll(List.of("--data-dir", dir.resolve("data").toString()));
        command.addAll(arguments);
        ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
        builder.redirectOutput(ProcessBuilder.Redirect.appendTo(dir.resolve("log").toFile()));
        process = builder.start();
        Wait.until("the server starts:\n" + log(), () -> size(portFile) > 0);
        port = Integer.parseInt(Files.readString(portFile).trim());
    }

    private static long size(Path file) {
        try {
            return Files.size(file);
        } catch (IOException absent) {
            return 0;
        }
    }

    String log() {
        try {
            return Files.readString(dir.resolve("log"));
        } catch (IOException absent) {
            return "";
        }
    }

    int port() {
        return port;
    }

    String address() {
        return "127.0.0.1:" + port;
    }

    Path dir() {
        return dir;
    }

    /** As kill -9 does. */
    void kill() {
        process.destroyForcibly().onExit().join();
    }

    void terminate() {
        process.destroy();
        process.onExit().orTimeout(20, TimeUnit.SECONDS).join();
    }

    @Override
    public void close() throws IOException {
        kill();
        try (Stream<Path> files = Files.walk(dir)) {
            for (Path file : files.sorted(Comparator.reverseOrder()).collect(Collectors.toList())) {
                Files.deleteIfExists(file);
            }
        }
    }

    /** One call by a client that is not the one under test. */
    Object call(String method, Object... params) throws Exception {
        try (Socket socket = new Socket("127.0.0.1", port)) {
            socket.setSoTimeout(20_000);
            List<Object> request = Arrays.asList(0L, 1L, method, Arrays.asList(params));
            socket.getOutputStream().write(Values.pack(request));
            Exchange exchange = new Exchange();
            byte[] data = new byte[65536];
            InputStream in = socket.getInputStream();
            while (true) {
                int size = in.read(data);
                if (size < 0) {
                    throw new AssertionError(method + ": the server closed the connection");
                }
                exchange.receive(data, size);
                List<Object> answer = exchange.next();
                if (answer != null) {
                    if (answer.get(2) != null) {
                        throw new AssertionError(method + ": " + answer.get(2));
                    }
                    return answer.get(3);
                }
            }
        }
    }

    void load(String namespace, List<Map<String, Object>> rules) throws Exception {
        call("rules_load", namespace, rules);
    }

    long figure(Object flow, String name) {
        try {
            return (Long) ((Map<?, ?>) call("flow", flow)).get(name);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        } catch (Exception error) {
            throw new AssertionError(error);
        }
    }

    long nowCalls(Object flow) {
        return figure(flow, "now_calls");
    }

    /** A rule of calls in progress whose tokens are kept, with a long hold. */
    static Map<String, Object> rule(long flowId, double count, Map<String, Object> config) {
        Map<String, Object> cluster = new LinkedHashMap<>();
        cluster.put("flowId", flowId);
        cluster.put("thresholdType", 1L);
        cluster.put("resourceTimeoutStrategy", 2L);
        cluster.put("resourceTimeout", 30_000L);
        cluster.put("clientOfflineTime", 30_000L);
        cluster.putAll(config);
        if (flowId == 0) { // By name.
            cluster.remove("flowId");
        }
        Map<String, Object> rule = new LinkedHashMap<>();
        rule.put("resource", "r" + flowId);
        rule.put("grade", 0L);
        rule.put("clusterMode", true);
        rule.put("count", count);
        rule.put("clusterConfig", cluster);
        return rule;
    }
}
