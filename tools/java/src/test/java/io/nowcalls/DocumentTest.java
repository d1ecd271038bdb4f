package io.nowcalls;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import javax.tools.JavaCompiler;
import javax.tools.StandardJavaFileManager;
import javax.tools.ToolProvider;
import org.junit.AfterClass;
import org.junit.BeforeClass;
import org.junit.Test;

/** The programs of the documents and of tools/java/examples, run as a reader would run them. */
public class DocumentTest {
    private static final Pattern BLOCK =
            Pattern.compile("^```java\n(.*?)^```", Pattern.MULTILINE | Pattern.DOTALL);
    private static final Pattern NAME = Pattern.compile("class (\\w+)");
    private static final String DEFAULT_ADDRESS = "127.0.0.1:18730";

    private static Path dir;
    private static ServerProcess server;
    private static final Map<String, String> OUTPUTS = new LinkedHashMap<>();

    @BeforeClass
    public static void runAll() throws Exception {
        dir = Files.createTempDirectory("nowcalls-java-documents-");
        server = new ServerProcess(sampleRules());
        List<Path> sources = new ArrayList<>();
        List<String> names = new ArrayList<>();
        for (String document : List.of("tools/manual/java.md", "tools/java/README.md")) {
            Matcher block = BLOCK.matcher(Files.readString(Trees.HERE.resolve(document)));
            while (block.find()) {
                String text = block.group(1).replace(DEFAULT_ADDRESS, server.address());
                Matcher named = NAME.matcher(text);
                assertTrue(text, named.find());
                names.add(named.group(1));
                sources.add(dir.resolve(named.group(1) + ".java"));
                Files.writeString(sources.get(sources.size() - 1), text);
            }
        }
        sources.add(Trees.HERE.resolve("tools/java/examples/LlmGateway.java"));
        compile(sources);
        for (String name : names) {
            OUTPUTS.put(name, run(name));
        }
    }

    @AfterClass
    public static void end() throws Exception {
        server.close();
        Authority.run(List.of("rm", "-r", dir.toString()));
    }

    /** As tools/dev run has them. */
    private static String[] sampleRules() throws IOException {
        List<String> arguments = new ArrayList<>();
        try (Stream<Path> files = Files.list(Trees.HERE.resolve("data/rules"))) {
            for (Path file : files.sorted().collect(Collectors.toList())) {
                String name = file.getFileName().toString();
                if (name.endsWith(".json")) {
                    arguments.add("--rules");
                    arguments.add(name.replace(".json", "") + "=" + file);
                }
            }
        }
        return arguments.toArray(new String[0]);
    }

    private static void compile(List<Path> sources) throws IOException {
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        try (StandardJavaFileManager files = compiler.getStandardFileManager(null, null, null)) {
            List<String> options =
                    List.of("--release", "11", "-cp", classPath(), "-d", dir.toString());
            boolean isRight =
                    compiler.getTask(
                                    null,
                                    files,
                                    null,
                                    options,
                                    null,
                                    files.getJavaFileObjectsFromFiles(
                                            sources.stream()
                                                    .map(Path::toFile)
                                                    .collect(Collectors.toList())))
                            .call();
            assertTrue("the programs of the documents compile", isRight);
        }
    }

    private static String classPath() {
        return dir + ":" + System.getProperty("java.class.path");
    }

    private static ProcessBuilder java(String... arguments) {
        List<String> command = new ArrayList<>();
        command.add(System.getProperty("java.home") + "/bin/java");
        command.addAll(List.of("-XX:TieredStopAtLevel=1", "-cp", classPath()));
        command.addAll(List.of(arguments));
        return new ProcessBuilder(command);
    }

    private static String run(String name) throws Exception {
        Process process = java(name).redirectErrorStream(true).start();
        String output = new String(process.getInputStream().readAllBytes());
        assertEquals(name + ": " + output, 0, process.waitFor());
        // The log goes to stderr.
        return output.lines()
                .filter(line -> !line.matches("[A-Z][a-z]{2} \\d.*|[A-Z]+: .*"))
                .collect(Collectors.joining("\n"));
    }

    private static void assertPrints(String name, String pattern) {
        String output = OUTPUTS.get(name);
        assertTrue(name + " printed " + output, output != null && output.matches(pattern));
    }

    @Test
    public void theProgramsOfTheManualPrintWhatTheySay() {
        assertPrints("First", "\\d+ of 10000 calls in progress");
        assertPrints("OnePermit", "token \\d+, fence \\d+\n\\d+ of 10000 calls in progress");
        assertPrints("Errors", "");
        assertPrints("LongCall", "step 0\nstep 1\nstep 2");
        assertPrints("Group", "2 permits");
        assertPrints("Rates", "\\d+ calls left in this window");
        assertPrints("Futures", "");
        assertPrints("Alone", "1 of 3 by itself\n1");
        assertEquals(OUTPUTS.keySet().toString(), 8, OUTPUTS.size());
        assertEquals(0, server.nowCalls(1001L));
    }

    @Test
    public void theGatewayLimitsTheCallsOfEachApiKey() throws Exception {
        Process gateway =
                java("LlmGateway", "--server", server.address(), "--port", "0", "--model-ms", "50")
                        .redirectError(ProcessBuilder.Redirect.DISCARD)
                        .start();
        try (BufferedReader out =
                new BufferedReader(new InputStreamReader(gateway.getInputStream()))) {
            URI url = URI.create(out.readLine());
            List<Served.Task<HttpResponse<String>>> greedy = new ArrayList<>();
            for (int i = 0; i < 24; i++) {
                greedy.add(new Served.Task<>(() -> ask(url, "Bearer key-greedy")));
            }
            assertEquals("HELLO", ask(url, "Bearer key-other").body());
            assertEquals(401, ask(url, "").statusCode());
            Map<Integer, Integer> statuses = new TreeMap<>();
            for (Served.Task<HttpResponse<String>> task : greedy) {
                HttpResponse<String> answer = task.get();
                statuses.merge(answer.statusCode(), 1, Integer::sum);
                if (answer.statusCode() == 429) {
                    assertEquals("too many calls of this key: param", answer.body());
                }
            }
            assertEquals(statuses.toString(), List.of(200, 429), List.copyOf(statuses.keySet()));
            // Rule 4002 lets 5 calls a second pass; asking takes some seconds at most.
            assertTrue(statuses.toString(), statuses.get(200) >= 5 && statuses.get(200) < 20);
            Wait.until("nothing is held", () -> server.nowCalls(4001L) == 0);
        } finally {
            gateway.destroy();
            gateway.waitFor();
        }
    }

    private static HttpResponse<String> ask(URI url, String authorization)
            throws IOException, InterruptedException {
        HttpRequest request =
                HttpRequest.newBuilder(url)
                        .header("Authorization", authorization)
                        .POST(HttpRequest.BodyPublishers.ofString("hello"))
                        .build();
        return HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString());
    }
}
