package io.nowcalls;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;

import java.io.FileInputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;
import org.junit.AfterClass;
import org.junit.BeforeClass;
import org.junit.Test;

/** Clients that speak TLS, with servers that are the right one, another one, or speak otherwise. */
public class TlsTest extends Served {
    private static Path dir;
    private static Authority authority;
    private static Authority stranger;
    private static Path[] serverPair;

    @BeforeClass
    public static void makeAuthorities() throws Exception {
        dir = Files.createTempDirectory("nowcalls-java-tls-");
        authority = new Authority(dir.resolve("ca"));
        stranger = new Authority(dir.resolve("stranger"));
        serverPair = authority.issue("IP:127.0.0.1,DNS:tokens.test");
    }

    @AfterClass
    public static void removeAuthorities() throws Exception {
        Authority.run(List.of("rm", "-r", dir.toString()));
    }

    @Override
    ServerProcess makeServer() throws Exception {
        return open(serve(serverPair));
    }

    private static ServerProcess serve(Path[] pair, String... more) throws Exception {
        String[] arguments = new String[4 + more.length];
        System.arraycopy(more, 0, arguments, 4, more.length);
        arguments[0] = "--tls-cert";
        arguments[1] = pair[0].toString();
        arguments[2] = "--tls-key";
        arguments[3] = pair[1].toString();
        return new ServerProcess(arguments);
    }

    private ClientBuilder secured() {
        return settings(server.address()).tls(authority.file).timeout(Duration.ofSeconds(3));
    }

    private static void assertFails(String why, ClientBuilder builder) {
        try (Logged logged = new Logged();
                Client client = builder.fallback(FallbackMode.PASS).build()) {
            Wait.until("a dial fails", () -> logged.has("no server is reached"));
            assertTrue(logged.lines().toString(), logged.has(why));
            assertEquals(false, client.stats().get("connected"));
        }
    }

    @Test
    public void aServerThatTheAuthorityVouchesForIsBelieved() throws Exception {
        long flow = load(2, Map.of());
        Client client = open(secured().build());
        for (int i = 0; i < 20; i++) {
            client.acquire(flow).close();
        }
        assertEquals(0, server.nowCalls(flow));
    }

    /** Some pages end with a record that TLS has read before the client asked for it. */
    @Test
    public void longAnswersAreReadToTheirEnd() throws Exception {
        Client client = open(secured().build());
        for (int padding = 280; padding <= 440; padding += 40) { // 64 KiB and more.
            for (int part = 0; part < 2; part++) { // One message would be too long.
                List<Map<String, Object>> rules = new ArrayList<>();
                for (int i = 0; i < 50; i++) {
                    long flow = 90_000 + 50 * part + i;
                    Map<String, Object> rule = ServerProcess.rule(flow, 1, Map.of());
                    rule.put("resource", "x".repeat(padding) + i);
                    rules.add(rule);
                }
                server.load(namespace() + part, rules);
            }
            List<Object> rows = new ArrayList<>();
            client.flows().forEach(rows::add);
            assertEquals(100, rows.size());
        }
    }

    @Test
    public void anotherServerIsNot() throws Exception {
        assertFails(
                "its certificate is not believed: unable to find valid certification path",
                settings(server.address()).tls(stranger.file));
        assertFails(
                "its certificate is not believed: unable to find valid certification path",
                settings(server.address()).tls(true));
        assertFails(
                "its certificate is not believed: No subject alternative DNS name matching"
                        + " other.test found",
                secured().tlsServerName("other.test"));
        try (Client client = secured().tlsServerName("tokens.test").build()) {
            client.ping();
        }
    }

    @Test
    public void aCommonNameCountsForNothing() throws Exception {
        ServerProcess other = open(serve(authority.issue("")));
        assertFails(
                "its certificate is not believed: No subject alternative name matching localhost",
                settings("localhost:" + other.port()).tls(authority.file));
    }

    @Test
    public void aFallbackBearsWhatIsNotBelieved() throws Exception {
        ClientBuilder builder = settings(server.address()).tls(stranger.file);
        try (Client client = builder.fallback(FallbackMode.PASS).build();
                Permit permit = client.acquire(1)) {
            assertTrue(permit.isLocal());
        }
    }

    @Test
    public void aServerThatAsksForACertificateGetsIt() throws Exception {
        server =
                open(
                        serve(
                                serverPair,
                                "--tls-client-ca",
                                authority.file.toString(),
                                "--tls-client",
                                "required"));
        Path[] own = authority.issue("DNS:worker.test");
        try (Client client = secured().tlsCertificate(own[0]).tlsKey(own[1]).build()) {
            client.ping();
        }
        ClientBuilder bare = secured().fallback(FallbackMode.PASS);
        try (Client client = bare.build()) {
            PermissionDeniedException denied =
                    thrown(PermissionDeniedException.class, () -> client.acquire(1));
            String why = "it asks for a client certificate, and none was shown";
            assertTrue(denied.toString(), denied.getMessage().contains(why));
        }
        Path[] strange = stranger.issue("DNS:worker.test");
        try (Client client =
                secured()
                        .fallback(FallbackMode.PASS)
                        .tlsCertificate(strange[0])
                        .tlsKey(strange[1])
                        .build()) {
            PermissionDeniedException denied =
                    thrown(PermissionDeniedException.class, () -> client.acquire(1));
            String why = "it refuses the client's certificate";
            assertTrue(denied.toString(), denied.getMessage().contains(why));
        }
    }

    @Test
    public void aServerWithoutTlsIsToldFromOthers() throws Exception {
        ScriptedServer plain =
                open(
                        new ScriptedServer(
                                (msgid, method, params) -> ScriptedServer.usual(msgid, method)));
        assertFails(
                "the server closed the connection in the TLS handshake; does it speak TLS?",
                settings(plain.address()).tls(authority.file));
        TcpProxy hole = open(new TcpProxy(server.port()));
        hole.requests = false;
        assertFails(
                "the TLS handshake timed out; does it speak TLS?",
                settings(hole.address()).tls(authority.file));
        java.net.ServerSocket talker = open(new java.net.ServerSocket(0));
        TcpProxy.start(
                () -> {
                    while (true) {
                        try (java.net.Socket socket = talker.accept()) {
                            socket.getOutputStream().write("220 mail\r\n".getBytes());
                        }
                    }
                });
        assertFails(
                "it does not speak TLS",
                settings("127.0.0.1:" + talker.getLocalPort()).tls(authority.file));
    }

    @Test
    public void aServerThatIsKilledIsConnectedAgain() throws Exception {
        long flow = load(1, Map.of());
        try (Client client = secured().timeout(Duration.ofSeconds(20)).build();
                Permit permit = client.acquire(flow)) {
            server.kill();
            server.start();
            Wait.until("again", () -> client.stats().get("connects").equals(2L));
            assertTrue(permit.keep());
        }
        assertEquals(0, server.nowCalls(flow));
    }

    @Test
    public void filesThatChangeAreReadAgain() throws Exception {
        Path ca = dir.resolve("changing.pem");
        Files.copy(stranger.file, ca, StandardCopyOption.REPLACE_EXISTING);
        ClientBuilder builder = settings(server.address()).tls(ca);
        try (Client client = builder.timeout(Duration.ofSeconds(20)).build()) {
            Wait.until("a dial fails", () -> !whyOffline(client).isEmpty());
            Path next = dir.resolve("next.pem");
            Files.copy(authority.file, next, StandardCopyOption.REPLACE_EXISTING);
            Files.move(next, ca, StandardCopyOption.ATOMIC_MOVE);
            client.ping();
        }
    }

    private static String whyOffline(Client client) {
        try {
            client.acquire(Item.of(1), new Options().timeout(Duration.ofMillis(100)));
            return "";
        } catch (NowcallsException | InterruptedException error) {
            return error.getMessage().contains("not believed") ? error.getMessage() : "";
        }
    }

    private static SSLContext context(String protocol) throws Exception {
        KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
        store.load(null, null);
        try (FileInputStream in = new FileInputStream(authority.file.toFile())) {
            store.setCertificateEntry(
                    "ca", CertificateFactory.getInstance("X.509").generateCertificate(in));
        }
        TrustManagerFactory trusted =
                TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trusted.init(store);
        SSLContext context = SSLContext.getInstance(protocol);
        context.init(null, trusted.getTrustManagers(), null);
        return context;
    }

    @Test
    public void anOlderVersionOfTlsIsSpoken() throws Exception {
        server = open(serve(serverPair, "--tls-min", "1.2"));
        long flow = load(2, Map.of());
        SSLContext old = context("TLSv1.2");
        try (Client client = settings(server.address()).tls(old).build()) {
            for (int i = 0; i < 20; i++) {
                client.acquire(flow).close();
            }
            assertEquals(1L, client.stats().get("connects"));
        }
    }

    @Test
    public void aContextOfTheProgramIsUsed() throws Exception {
        SSLContext context = context("TLS");
        try (Client client = settings(server.address()).tls(context).build()) {
            client.ping();
        }
        assertFails(
                "No subject alternative DNS name matching other.test",
                settings(server.address()).tls(context).tlsServerName("other.test"));
    }

    @Test
    public void theEnvironmentSaysWhatSettingsDoNot() throws Exception {
        Map<String, String> environment = Map.of("NOWCALLS_TLS_CA", authority.file.toString());
        ClientBuilder builder = settings(server.address()).environment(environment);
        assertTrue(builder.config().tls != null);
        try (Client client = builder.build()) {
            client.ping();
        }
        assertEquals(null, builder.tls(false).config().tls);
    }

    @Test
    public void filesThatAreWrongAreToldApart() throws Exception {
        Path[] one = authority.issue("DNS:a.test");
        Path[] other = authority.issue("DNS:b.test");
        Path none = dir.resolve("none.pem");
        Path text = Files.writeString(dir.resolve("text.pem"), "no certificate\n");
        String variables = "tlsCertificate or NOWCALLS_TLS_CLIENT_CERT";
        String keys = "tlsKey or NOWCALLS_TLS_CLIENT_KEY";
        assertThrown(
                BadRequestException.class,
                "tls: cannot read " + none + ": No such file or directory",
                () -> secured().tls(none).build());
        String wrong = thrown(BadRequestException.class, () -> secured().tls(text).build())
                .getMessage();
        assertTrue(wrong, wrong.startsWith("tls: " + text + " is no PEM file of certificates"));
        assertThrown(
                BadRequestException.class,
                keys + ": " + other[1] + " is not the key of " + one[0],
                () -> secured().tlsCertificate(one[0]).tlsKey(other[1]).build());
        assertThrown(
                BadRequestException.class,
                variables + " is set without " + keys + "; give both, or none",
                () -> secured().tlsCertificate(one[0]).build());
        Path locked = dir.resolve("locked.key");
        Authority.openssl(
                "pkcs8", "-topk8", "-in", one[1], "-out", locked, "-passout", "pass:secret");
        assertThrown(
                BadRequestException.class,
                keys + ": " + locked + " has a passphrase; give a key without one",
                () -> secured().tlsCertificate(one[0]).tlsKey(locked).build());
        Path old = dir.resolve("old.key");
        Authority.openssl("ec", "-in", one[1], "-out", old);
        String advice =
                thrown(
                                BadRequestException.class,
                                () -> secured().tlsCertificate(one[0]).tlsKey(old).build())
                        .getMessage();
        assertTrue(advice, advice.contains("run: openssl pkcs8 -topk8 -nocrypt -in " + old));
        assertThrown(
                BadRequestException.class,
                "tlsCertificate is set, but tls is false",
                () -> secured().tls(false).tlsCertificate(one[0]).build());
    }
}
