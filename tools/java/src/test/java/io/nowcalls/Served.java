package io.nowcalls;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.fail;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.After;
import org.junit.Before;
import org.junit.BeforeClass;
import org.junit.Rule;
import org.junit.rules.TestName;

/** A test with a server, rules and a namespace of its own. */
public abstract class Served {
    private static final AtomicLong FLOWS = new AtomicLong(1000);
    private static ServerProcess shared;

    @Rule public final TestName name = new TestName();

    final List<AutoCloseable> opened = new ArrayList<>();
    private final List<Map<String, Object>> rules = new ArrayList<>();
    ServerProcess server;

    interface Code {
        void run() throws Exception;
    }

    @BeforeClass
    public static void quiet() {
        Logged.silence();
    }

    @Before
    public void serve() throws Exception {
        server = makeServer();
    }

    /** The server of all tests that do not end theirs. */
    ServerProcess makeServer() throws Exception {
        synchronized (Served.class) {
            if (shared == null) {
                ServerProcess made = new ServerProcess();
                Thread ends = new Thread(() -> uncheck(made));
                Runtime.getRuntime().addShutdownHook(ends);
                shared = made;
            }
            return shared;
        }
    }

    private static void uncheck(AutoCloseable closeable) {
        try {
            closeable.close();
        } catch (Exception error) {
            throw new AssertionError(error);
        }
    }

    <T extends AutoCloseable> T open(T closeable) {
        opened.add(closeable);
        return closeable;
    }

    @After
    public void closeAll() throws Exception {
        for (int i = opened.size() - 1; i >= 0; i--) {
            opened.get(i).close();
        }
    }

    String namespace() {
        return name.getMethodName();
    }

    /** Loads one more rule, and returns its flow id. */
    long load(double count, Map<String, Object> config) throws Exception {
        long flow = FLOWS.incrementAndGet();
        loadRule(ServerProcess.rule(flow, count, config));
        return flow;
    }

    void loadRule(Map<String, Object> rule) throws Exception {
        rules.add(rule);
        server.load(namespace(), rules);
    }

    /** A client that tells of each failure, unless it is to fall back. */
    ClientBuilder settings(String address) {
        return Client.builder(address)
                .namespace(namespace())
                .fallback(FallbackMode.FAIL)
                .environment(Map.of());
    }

    Client client() {
        return open(settings(server.address()).build());
    }

    static <E extends Throwable> E thrown(Class<E> kind, Code code) {
        try {
            code.run();
        } catch (Throwable error) {
            if (kind.isInstance(error)) {
                return kind.cast(error);
            }
            throw new AssertionError("another exception: " + error, error);
        }
        fail("it throws no " + kind.getSimpleName());
        throw new IllegalStateException();
    }

    static <E extends Throwable> void assertThrown(Class<E> kind, String message, Code code) {
        assertEquals(message, thrown(kind, code).getMessage());
    }

    /** A thread of a test, whose failure is the test's. */
    static final class Task<T> {
        final Thread thread;
        private volatile T value;
        private volatile Throwable error;

        Task(Callable<T> code) {
            thread =
                    new Thread(
                            () -> {
                                try {
                                    value = code.call();
                                } catch (Throwable thrown) {
                                    error = thrown;
                                }
                            });
            thread.setDaemon(true);
            thread.start();
        }

        boolean isDone() {
            return !thread.isAlive();
        }

        T get() throws Exception {
            Throwable thrown = end();
            if (thrown != null) {
                throw new AssertionError("a thread failed: " + thrown, thrown);
            }
            return value;
        }

        /** What it threw. */
        Throwable end() throws InterruptedException {
            thread.join(20_000);
            if (thread.isAlive()) {
                throw new AssertionError("a thread hangs: " + List.of(thread.getStackTrace()));
            }
            return error;
        }
    }
}
