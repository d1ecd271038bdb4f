import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import io.nowcalls.Client;
import io.nowcalls.Item;
import io.nowcalls.NowcallsException;
import io.nowcalls.Options;
import io.nowcalls.OutcomeUnknownException;
import io.nowcalls.Permit;
import io.nowcalls.RefusedException;
import io.nowcalls.UnavailableException;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.Executors;

/**
 * A gateway to a language model that limits the calls of each API key, over all gateways together.
 *
 * <pre>
 * tools/dev run                       # serves data/rules/api-keys.json among others
 * java -cp nowcalls.jar:msgpack-core.jar tools/java/examples/LlmGateway.java
 * curl -H 'Authorization: Bearer key-acme' -d 'Hello' http://127.0.0.1:8000/
 * </pre>
 *
 * <p>Rule 4001 limits the calls in progress of a key, rule 4002 those a second. One decision takes
 * both or none, so a call that is refused by the one uses up nothing of the other. A refused call
 * gets 429.
 */
final class LlmGateway {
    private static final long IN_PROGRESS = 4001;
    private static final long A_SECOND = 4002;
    private static final Options WAITS = new Options().waitUpTo(Duration.ofSeconds(2));
    private static final String BEARER = "Bearer ";

    private final Client client;
    private final Duration modelTime;

    private LlmGateway(Client client, Duration modelTime) {
        this.client = client;
        this.modelTime = modelTime;
    }

    /** Stands for the call to the model. */
    private String callModel(String prompt) throws InterruptedException {
        Thread.sleep(modelTime.toMillis());
        return prompt.toUpperCase(Locale.ROOT);
    }

    private void handle(HttpExchange exchange) throws IOException {
        String authorization = exchange.getRequestHeaders().getFirst("Authorization");
        String prompt =
                new String(exchange.getRequestBody().readAllBytes(), StandardCharsets.UTF_8);
        if (authorization == null || !authorization.startsWith(BEARER)) {
            answer(exchange, 401, "no API key");
            return;
        }
        String key = authorization.substring(BEARER.length());
        List<Item> asked =
                List.of(Item.of(IN_PROGRESS).param(key), Item.rate(A_SECOND).param(key));
        try {
            String text;
            Permit permit = client.acquireAll(asked, WAITS).get(0);
            try (permit) {
                text = callModel(prompt);
            }
            answer(exchange, 200, text);
        } catch (RefusedException refused) {
            answer(exchange, 429, "too many calls of this key: " + refused.refusedBy());
        } catch (UnavailableException | OutcomeUnknownException error) {
            // With the fallback FAIL alone. By default each gateway then limits its keys by itself.
            answer(exchange, 503, "the limits cannot be checked");
        } catch (NowcallsException error) {
            answer(exchange, 500, error.getMessage());
        } catch (InterruptedException error) {
            answer(exchange, 503, "the gateway ends");
        }
    }

    private static void answer(HttpExchange exchange, int status, String text)
            throws IOException {
        byte[] body = text.getBytes(StandardCharsets.UTF_8);
        if (status == 429) {
            exchange.getResponseHeaders().set("Retry-After", "1");
        }
        exchange.sendResponseHeaders(status, body.length);
        exchange.getResponseBody().write(body);
        exchange.close();
    }

    public static void main(String[] arguments) throws IOException {
        Map<String, String> given = new HashMap<>();
        for (int i = 0; i + 1 < arguments.length; i += 2) {
            given.put(arguments[i], arguments[i + 1]);
        }
        String server = given.getOrDefault("--server", "127.0.0.1:18730");
        int port = Integer.parseInt(given.getOrDefault("--port", "8000"));
        long modelMs = Long.parseLong(given.getOrDefault("--model-ms", "1000"));
        Client client = Client.builder(server).namespace("api-keys").build();
        LlmGateway gateway = new LlmGateway(client, Duration.ofMillis(modelMs));
        HttpServer http = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 0);
        http.setExecutor(Executors.newCachedThreadPool());
        http.createContext("/", gateway::handle);
        Runtime.getRuntime().addShutdownHook(new Thread(client::close));
        http.start();
        System.out.println("http://127.0.0.1:" + http.getAddress().getPort() + "/");
    }
}
