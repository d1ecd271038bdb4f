import io.nowcalls.Client;
import io.nowcalls.FallbackMode;
import io.nowcalls.Item;
import io.nowcalls.Options;
import io.nowcalls.Permit;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.LongAdder;

/**
 * Acquires and releases a second, one at a time and many at once.
 *
 * <pre>
 * java -cp nowcalls.jar:msgpack-core.jar tools/java/bench/Bench.java --server 127.0.0.1:18730
 * </pre>
 */
final class Bench {
    private static final double WARM_UP_S = 1; // Java compiles meanwhile.

    private final Client client;
    private final Item item;
    private final Options waits = new Options().waitUpTo(Duration.ofSeconds(10));
    private final LongAdder calls = new LongAdder();

    private Bench(Client client, Item item) {
        this.client = client;
        this.item = item;
    }

    public static void main(String[] arguments) throws InterruptedException {
        Map<String, String> given = new HashMap<>();
        for (int i = 0; i + 1 < arguments.length; i += 2) {
            given.put(arguments[i], arguments[i + 1]);
        }
        String address = given.getOrDefault("--server", "127.0.0.1:18730");
        Item item = Item.of(Long.parseLong(given.getOrDefault("--flow", "1001")));
        double seconds = Double.parseDouble(given.getOrDefault("--seconds", "5"));
        int atOnce = Integer.parseInt(given.getOrDefault("--at-once", "64"));
        try (Client client = Client.builder(address).fallback(FallbackMode.FAIL).build()) {
            for (int threads : new int[] {1, atOnce}) {
                new Bench(client, item).run(threads, WARM_UP_S);
                double measured = new Bench(client, item).run(threads, seconds);
                System.out.printf("%d at once: %.0f a second%n", threads, measured);
            }
        }
    }

    private double run(int threads, double seconds) throws InterruptedException {
        long begin = System.nanoTime();
        long end = begin + (long) (seconds * 1e9);
        List<Thread> running = new ArrayList<>();
        for (int i = 0; i < threads; i++) {
            Thread thread = new Thread(() -> callUntil(end));
            thread.start();
            running.add(thread);
        }
        for (Thread thread : running) {
            thread.join();
        }
        return calls.sum() * 1e9 / (System.nanoTime() - begin);
    }

    private void callUntil(long end) {
        try {
            while (System.nanoTime() < end) {
                Permit permit = client.acquire(item, waits);
                permit.release();
                calls.increment();
            }
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }
}
