package io.nowcalls;

import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.function.Consumer;
import java.util.function.Supplier;
import javax.net.ssl.SSLContext;

/** Settings of a {@link Client}. */
public final class ClientBuilder {
    private static final int NAME_BYTES_MAX = 128;

    private final List<String> addresses = new ArrayList<>();
    private String namespace = "default";
    private String clientId;
    private Duration timeout = Duration.ofSeconds(5);
    private Keep keep = Keep.RULE;
    private FallbackMode fallback = FallbackMode.RULE;
    private final Map<Object, Long> localLevels = new HashMap<>();
    private boolean exclusive;
    private boolean rejoin;
    private final TlsSettings tls = new TlsSettings();
    private Secret secret;
    private Consumer<Permit> onLost;
    private Executor executor = new CompletableFuture<Void>().defaultExecutor();
    private Map<String, String> environment = System.getenv();

    ClientBuilder(String... addresses) {
        this.addresses.addAll(List.of(addresses));
    }

    /**
     * The application, which has the rules. Without it: default.
     *
     * @param name 1 to 128 bytes
     * @return this
     */
    public ClientBuilder namespace(String name) {
        namespace = name;
        return this;
    }

    /**
     * Names the session that holds the tokens. Without it the client makes one up.
     *
     * @param id 1 to 128 bytes
     * @return this
     */
    public ClientBuilder clientId(String id) {
        clientId = id;
        return this;
    }

    /**
     * What a call may take besides the wait of an acquire, connecting anew included. Without it: 5
     * seconds.
     *
     * @param longest above zero, at most an hour
     * @return this
     */
    public ClientBuilder timeout(Duration longest) {
        timeout = longest;
        return this;
    }

    /**
     * Whether permits are kept in the background. Without it: as the rule says.
     *
     * @param mode whether they are
     * @return this
     */
    public ClientBuilder keep(Keep mode) {
        keep = Objects.requireNonNull(mode, "keep");
        return this;
    }

    /**
     * What calls do that no server answers. Without it: as the rule says.
     *
     * @param mode what they do
     * @return this
     */
    public ClientBuilder fallback(FallbackMode mode) {
        fallback = Objects.requireNonNull(mode, "fallback");
        return this;
    }

    /**
     * The share of a flow without a server, instead of that from its rule. Of a rate: calls of one
     * window.
     *
     * @param flowId the flow, as calls name it
     * @param level from 0 on
     * @return this
     */
    public ClientBuilder localLevel(long flowId, long level) {
        return addLevel(flowId, level);
    }

    /**
     * The share of a flow without a server, instead of that from its rule.
     *
     * @param resource the flow, as calls name it
     * @param level from 0 on
     * @return this
     */
    public ClientBuilder localLevel(String resource, long level) {
        return addLevel(resource, level);
    }

    private ClientBuilder addLevel(Object flow, long level) {
        if (level < 0) {
            throw new BadRequestException(
                    "localLevel of " + Item.show(flow) + " must be from 0 on, not " + level);
        }
        localLevels.put(flow, level);
        return this;
    }

    /**
     * Refuse to share the client id with another process that is online.
     *
     * @param isExclusive whether to refuse
     * @return this
     */
    public ClientBuilder exclusive(boolean isExclusive) {
        exclusive = isExclusive;
        return this;
    }

    /**
     * Take over the tokens of a process before that had the client id and rejoined, too. Otherwise
     * each process holds its own.
     *
     * @param rejoins whether to take over
     * @return this
     */
    public ClientBuilder rejoin(boolean rejoins) {
        rejoin = rejoins;
        return this;
    }

    /**
     * Whether to speak TLS, with a server whose certificate the system's authorities vouch for.
     * Without it: as NOWCALLS_TLS and NOWCALLS_TLS_CA say, else not.
     *
     * @param isOn whether to
     * @return this
     */
    public ClientBuilder tls(boolean isOn) {
        tls.isOn = isOn;
        return this;
    }

    /**
     * Speak TLS with a server whose certificate these authorities vouch for.
     *
     * @param authorities a PEM file
     * @return this
     */
    public ClientBuilder tls(Path authorities) {
        tls.isOn = true;
        tls.ca = authorities;
        return this;
    }

    /**
     * Speak TLS as the program says.
     *
     * @param context of the program; the name of the server is checked besides
     * @return this
     */
    public ClientBuilder tls(SSLContext context) {
        tls.isOn = true;
        tls.context = context;
        return this;
    }

    /**
     * A certificate to show to the server. Without it: NOWCALLS_TLS_CLIENT_CERT.
     *
     * @param file a PEM file, with its chain
     * @return this
     */
    public ClientBuilder tlsCertificate(Path file) {
        tls.certificate = file;
        return this;
    }

    /**
     * The key of the certificate. Without it: NOWCALLS_TLS_CLIENT_KEY.
     *
     * @param file a PEM file of PKCS #8
     * @return this
     */
    public ClientBuilder tlsKey(Path file) {
        tls.key = file;
        return this;
    }

    /**
     * The server's certificate must have this name, in place of the host of the address.
     *
     * @param name of a host, or an address
     * @return this
     */
    public ClientBuilder tlsServerName(String name) {
        tls.serverName = name;
        return this;
    }

    /**
     * Shows the server who the client is. It leaves over TLS, or to this machine. Without it: as
     * NOWCALLS_SECRET_FILE says.
     *
     * @param text at most 256 bytes
     * @return this
     */
    public ClientBuilder secret(String text) {
        secret = Secret.of(text);
        return this;
    }

    /**
     * Tells the secret for each connection, on the client's thread.
     *
     * @param source must be short
     * @return this
     */
    public ClientBuilder secret(Supplier<String> source) {
        secret = Secret.of(Objects.requireNonNull(source, "secret"));
        return this;
    }

    /**
     * Called with each lost permit, by the executor.
     *
     * @param callback must be short
     * @return this
     */
    public ClientBuilder onLost(Consumer<Permit> callback) {
        onLost = callback;
        return this;
    }

    /**
     * Runs callbacks, and what hangs on futures. Without it: that of CompletableFuture.
     *
     * @param runs where; {@code Runnable::run} is the client's own thread, where nothing may block
     * @return this
     */
    public ClientBuilder executor(Executor runs) {
        executor = Objects.requireNonNull(runs, "executor");
        return this;
    }

    ClientBuilder environment(Map<String, String> variables) {
        environment = variables;
        return this;
    }

    /**
     * Begins to connect, and does not wait for it.
     *
     * @return the client, to be closed
     * @throws BadRequestException for what no server would take
     */
    public Client build() {
        return new Client(config());
    }

    Config config() {
        Config config = new Config();
        config.addresses = new ArrayList<>();
        for (String text : addresses.isEmpty() ? List.of("127.0.0.1") : addresses) {
            config.addresses.add(Address.parse(text));
        }
        config.timeout = Options.micros("timeout", timeout);
        if (config.timeout == 0) {
            throw new BadRequestException("timeout must be above 0");
        }
        checkName("namespace", namespace);
        config.namespace = namespace;
        config.clientId = clientId == null ? "java-" + UUID.randomUUID() : clientId;
        checkName("clientId", config.clientId);
        if (config.clientId.startsWith("@")) {
            throw new BadRequestException("clientId must not begin with @");
        }
        config.keep = keep;
        config.fallback = fallback;
        config.localLevels = new HashMap<>(localLevels);
        config.exclusive = exclusive;
        config.rejoin = rejoin;
        config.tls = tls.make(environment);
        config.secret = secret != null ? secret : SecretFile.read(environment);
        config.onLost = onLost;
        config.executor = executor;
        return config;
    }

    private static void checkName(String what, String name) {
        if (name == null || name.isEmpty() || Texts.bytes(name) > NAME_BYTES_MAX) {
            throw new BadRequestException(
                    what + " must be a text of 1 to " + NAME_BYTES_MAX + " bytes");
        }
        if (Texts.hasControls(name) || Texts.hasSurrogates(name)) {
            throw new BadRequestException(
                    what + " must not have control characters or surrogates");
        }
    }
}
