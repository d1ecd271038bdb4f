package io.nowcalls;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import org.junit.Test;

/** Who the client is: the secret that it shows, and servers that refuse it. */
public class IdentityTest extends Served {
    private static final String SECRET = "nc-0123456789abcdef";

    private Path dir;
    private String operator;
    private String checkout;

    @Override
    ServerProcess makeServer() throws Exception {
        dir = Files.createTempDirectory("nowcalls-java-access-");
        open(() -> Authority.run(List.of("rm", "-r", dir.toString())));
        operator = add("operator", "administrator");
        checkout = add("checkout", "client", "--namespace", "shop");
        return open(new ServerProcess("--access", access().toString()));
    }

    private Path access() {
        return dir.resolve("access.toml");
    }

    private String add(String name, String role, String... more) throws Exception {
        List<String> command = new ArrayList<>();
        command.add(ServerProcess.program("nowcalls-admin").toString());
        command.addAll(List.of("access", "add", name, "--role", role));
        command.addAll(List.of("--access", access().toString()));
        command.addAll(List.of(more));
        Process process =
                new ProcessBuilder(command)
                        .redirectError(ProcessBuilder.Redirect.DISCARD)
                        .start();
        String secret = new String(process.getInputStream().readAllBytes()).trim();
        assertEquals(0, process.waitFor());
        return secret;
    }

    private ClientBuilder shop(String secret) {
        return settings(server.address()).namespace("shop").secret(secret);
    }

    private void loadRules() throws Exception {
        try (Client client = settings(server.address()).secret(operator).build()) {
            for (String namespace : List.of("shop", "bank")) {
                long flow = namespace.equals("shop") ? 1 : 2;
                List<Object> rules = List.of(ServerProcess.rule(flow, 5, Map.of()));
                Call load =
                        new Call("rules_load", namespace, rules) {};
                client.await(load, new Options(), value -> value);
            }
        }
    }

    @Test
    public void aSecretLetsInToItsNamespaces() throws Exception {
        loadRules();
        try (Client client = shop(checkout).fallback(FallbackMode.PASS).build();
                Logged logged = new Logged()) {
            try (Permit permit = client.acquire(1)) {
                assertFalse(permit.isLocal());
            }
            assertTrue(logged.lines().toString(), logged.has(" as 'checkout', session "));
            PermissionDeniedException denied =
                    thrown(PermissionDeniedException.class, () -> client.acquire(2));
            assertEquals(9, denied.code());
            assertFalse(logged.lines().toString().contains(checkout));
        }
    }

    @Test
    public void whoIsNotLetInGetsNoCallPastTheServer() throws Exception {
        ClientBuilder wrong = shop(SECRET).fallback(FallbackMode.PASS).localLevel(1, 5);
        try (Client client = wrong.timeout(Duration.ofSeconds(5)).build();
                Logged logged = new Logged()) {
            PermissionDeniedException denied =
                    thrown(PermissionDeniedException.class, () -> client.acquire(1));
            String begin = server.address() + ": identify refused: PERMISSION: ";
            assertTrue(denied.toString(), denied.getMessage().startsWith(begin));
            assertFalse(denied.getMessage().contains(SECRET));
            thrown(
                    PermissionDeniedException.class,
                    () -> client.request(Item.of(1), new Options()));
            assertTrue(logged.has("not let in, so calls end at once"));
            assertFalse(logged.lines().toString().contains(SECRET));
        }
        ClientBuilder nobody = settings(server.address()).fallback(FallbackMode.PASS);
        try (Client client = nobody.build()) {
            thrown(PermissionDeniedException.class, () -> client.acquire(1));
        }
    }

    @Test
    public void aSecretMayBeToldForEachConnection() throws Exception {
        loadRules();
        List<String> secrets = new ArrayList<>(List.of(SECRET, checkout));
        Supplier<String> source = () -> secrets.size() > 1 ? secrets.remove(0) : secrets.get(0);
        ClientBuilder builder = settings(server.address()).namespace("shop").secret(source);
        try (Client client = builder.timeout(Duration.ofSeconds(20)).build()) {
            Wait.until("the second is right", () -> isLetIn(client));
        }
        ClientBuilder failing =
                settings(server.address())
                        .secret(
                                () -> {
                                    throw new IllegalStateException(SECRET);
                                });
        try (Client client = failing.build()) {
            assertThrown(
                    BadRequestException.class,
                    server.address() + ": secret: its function raised IllegalStateException",
                    () -> client.acquire(1));
        }
    }

    private static boolean isLetIn(Client client) {
        try {
            client.acquire(1).close();
            return true;
        } catch (NowcallsException | InterruptedException error) {
            return false;
        }
    }

    @Test
    public void theSecretOfAFileIsItsFirstLine() throws Exception {
        loadRules();
        Path file = Files.writeString(dir.resolve("secret"), checkout + "\r\nand more\n");
        Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rw-------"));
        Map<String, String> environment = Map.of("NOWCALLS_SECRET_FILE", file.toString());
        ClientBuilder builder =
                settings(server.address()).namespace("shop").environment(environment);
        try (Client client = builder.build()) {
            client.acquire(1).close();
        }
        Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rw-r--r--"));
        String open = thrown(BadRequestException.class, builder::build).getMessage();
        assertTrue(open, open.endsWith("run: chmod 600 " + file));
        Files.writeString(file, "\n");
        Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rw-------"));
        assertThrown(
                BadRequestException.class,
                "NOWCALLS_SECRET_FILE: " + file + " has no secret in its first line",
                builder::build);
        Files.delete(file);
        assertThrown(
                BadRequestException.class,
                "NOWCALLS_SECRET_FILE: cannot read " + file + ": No such file or directory",
                builder::build);
        assertTrue(SecretFile.isPrivate(0100440 & 0777 & 0440, 0, 7, List.of("7")));
        assertFalse(SecretFile.isPrivate(0440, 0, 7, List.of("8")));
        assertFalse(SecretFile.isPrivate(0440, 5, 7, List.of("7")));
        assertFalse(SecretFile.isPrivate(0460, 0, 7, List.of("7")));
    }

    @Test
    public void aSecretDoesNotLeaveInTheClear() {
        Config config = Client.builder("a:1").environment(Map.of()).secret(SECRET).config();
        Surroundings outside = new Surroundings();
        outside.uniform = (low, high) -> low;
        outside.clock = () -> 1;
        Session session = new Session(config, outside, 1);
        String why = session.connected(1, false);
        assertEquals(Secret.PLAIN, why);
        assertTrue(session.output().isEmpty());
        session.disconnected(1, why);
        assertEquals(null, session.connected(2, true));
        String sent = new String(session.output().take());
        assertTrue(sent, sent.contains(SECRET));
        assertFalse(config.secret.toString().contains(SECRET));
    }
}
