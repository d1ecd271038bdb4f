import io.nowcalls.Client;
import io.nowcalls.Item;
import io.nowcalls.Options;
import io.nowcalls.Permit;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.LongAdder;

/** Calls a second: acquire and release, one at a time, then 64 at once. */
final class Bench {
    private static final int AT_ONCE = 64;

    private Bench() {}

    public static void main(String[] arguments) throws InterruptedException {
        String address = arguments.length > 0 ? arguments[0] : "127.0.0.1:18730";
        String flow = arguments.length > 1 ? arguments[1] : "1001";
        int seconds = arguments.length > 2 ? Integer.parseInt(arguments[2]) : 5;
        Item item = flow.matches("[0-9]+") ? Item.of(Long.parseLong(flow)) : Item.of(flow);
        try (Client client = Client.builder(address).namespace("shop").build()) {
            run(client, item, 1, 1); // Java compiles meanwhile.
            for (int threads : new int[] {1, AT_ONCE}) {
                System.out.printf(
                        "java, %d at once: %.0f calls a second%n",
                        threads, run(client, item, threads, seconds));
            }
        }
    }

    private static double run(Client client, Item item, int threads, int seconds)
            throws InterruptedException {
        LongAdder calls = new LongAdder();
        long begin = System.nanoTime();
        long end = begin + seconds * 1_000_000_000L;
        List<Thread> running = new ArrayList<>();
        for (int i = 0; i < threads; i++) {
            Thread thread = new Thread(() -> call(client, item, end, calls));
            thread.start();
            running.add(thread);
        }
        for (Thread thread : running) {
            thread.join();
        }
        return calls.sum() * 1e9 / (System.nanoTime() - begin);
    }

    private static void call(Client client, Item item, long end, LongAdder calls) {
        Options waits = new Options().waitUpTo(Duration.ofSeconds(10));
        try {
            while (System.nanoTime() < end) {
                try (Permit permit = client.acquire(item, waits)) {
                    calls.add(permit.isLocal() ? 0 : 1);
                }
            }
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }
}
