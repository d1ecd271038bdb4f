package io.nowcalls;

import static io.nowcalls.Moments.SECOND;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.System.Logger.Level;
import java.lang.ref.Reference;
import java.lang.ref.ReferenceQueue;
import java.lang.ref.WeakReference;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.security.SecureRandom;
import java.util.HashSet;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;

/**
 * The background thread of a client. It alone uses the session and the sockets.
 *
 * <p>Callers put commands into a queue, and wake the thread. They take no lock that the thread
 * takes. It refers to the client weakly, so that a client which is dropped ends.
 */
final class Worker {
    /** A reference to the permit of a token that a program may drop. */
    private static final class Grip extends WeakReference<Permit> {
        final Held held;

        Grip(Permit permit, Held held, ReferenceQueue<Object> queue) {
            super(permit, queue);
            this.held = held;
        }
    }

    // Timers stand still while the machine sleeps; the clock of tokens does not.
    private static final long HELD_SLEEP_MAX = SECOND;
    private static final long SLEEP_MAX = 60 * SECOND;
    private static final int READ_BYTES = 64 * 1024;
    private static final SecureRandom RANDOM = new SecureRandom();
    private static final long INSTANCE = drawId(); // Of the process.

    final Thread thread;
    final CountDownLatch done = new CountDownLatch(1); // A join would pin a virtual thread.
    volatile boolean closed; // No more calls.
    volatile String ended; // Why; nothing runs on the thread any more.
    private final Config config;
    private final Session session;
    private final Clock clock = Clock.system();
    private final Queue<Runnable> commands = new ConcurrentLinkedQueue<>();
    private final ReferenceQueue<Object> dropped = new ReferenceQueue<>();
    private final Set<Reference<?>> grips = new HashSet<>(); // Else they would be dropped, too.
    private final ReentrantLock afterEnd = new ReentrantLock();
    private final Selector selector;
    private final byte[] read = new byte[READ_BYTES];
    private volatile boolean asleep;
    private WeakReference<Client> client; // Until it is closed or dropped.
    private boolean draining;
    private long drainUntil;
    private Pipe pipe; // null: no connection.
    private Dial dial; // null: it does not dial.
    private Lookup lookup; // Of an attempt that timed out.

    Worker(Config config) {
        this.config = config;
        Surroundings outside = new Surroundings();
        outside.makePermit = this::permitOf;
        outside.uniform = (low, high) -> ThreadLocalRandom.current().nextLong(low, high + 1);
        outside.requestIds = Worker::drawId;
        outside.clock = clock;
        outside.instance = config.rejoin ? 0 : INSTANCE;
        session = new Session(config, outside, clock.getAsLong());
        try {
            selector = Selector.open();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        thread = new Thread(null, this::run, "nowcalls", 0, false); // Nothing of the caller's.
        thread.setDaemon(true);
    }

    /** 63 random bits, never 0: unique also across processes that share a client id. */
    private static long drawId() {
        return Math.max(1, RANDOM.nextLong() >>> 1);
    }

    void start(Client owner) {
        client = new WeakReference<>(owner, dropped);
        thread.start();
    }

    // On any thread.

    /** Has the command run on the thread, soon. */
    void post(Runnable command) {
        commands.add(command);
        if (asleep) {
            selector.wakeup();
        }
        if (ended != null) {
            afterEnd.lock();
            try {
                runCommands();
            } finally {
                afterEnd.unlock();
            }
        }
    }

    void ask(Call call, long timeout) {
        post(() -> session.ask(call, clock.getAsLong(), timeout));
    }

    void release(Calls.Release call, long timeout) {
        post(() -> session.release(call, clock.getAsLong(), timeout));
    }

    void abandon(Call call) {
        post(() -> session.abandon(call, clock.getAsLong()));
    }

    /** Only on the thread, or after its end. */
    Map<String, Object> stats() {
        return session.stats();
    }

    /** Ends the thread, once the releases on their way are answered. */
    void closeSoon() {
        closed = true;
        post(this::close);
    }

    boolean isCurrent() {
        return Thread.currentThread() == thread;
    }

    /** Runs it on the program's executor, or here if that takes nothing any more. */
    void execute(Runnable task) {
        try {
            config.executor.execute(task);
        } catch (RuntimeException rejected) {
            task.run();
        }
    }

    // On the thread.

    private void run() {
        String reason = "the client is closed";
        try {
            boolean goesOn;
            do {
                goesOn = turn();
            } while (goesOn);
        } catch (Throwable error) { // Nobody would tell the callers that wait.
            Session.LOGGER.log(Level.ERROR, "the client's thread ends", error);
            reason = "the client's thread ended: " + error;
            session.loseAll(null, clock.getAsLong());
        }
        try {
            end(reason);
        } finally {
            done.countDown();
        }
    }

    private void end(String reason) {
        closed = true;
        detach(reason);
        if (dial != null) {
            dial.close();
        }
        try {
            selector.close();
        } catch (IOException error) {
            Session.LOGGER.log(Level.WARNING, "the selector was not closed", error);
        }
        afterEnd.lock();
        try {
            session.stop(reason);
            tellAllLost();
            ended = reason;
            runCommands();
        } finally {
            afterEnd.unlock();
        }
    }

    /** Does what is due, then waits for what comes next. False: the client is closed. */
    private boolean turn() throws IOException {
        runCommands();
        long now = clock.getAsLong();
        String broken = session.tick(now);
        if (broken != null) {
            detach(broken);
        }
        dialOn(now);
        flush();
        tellAllLost();
        long wakeup = session.wakeup();
        if (draining) {
            if (!session.isReady() || session.isSettled() || now >= drainUntil) {
                return false;
            }
            wakeup = Math.min(wakeup, drainUntil);
        }
        if (dial != null) {
            wakeup = Math.min(wakeup, dial.until);
        }
        sleepUntil(wakeup);
        return true;
    }

    private void sleepUntil(long wakeup) throws IOException {
        boolean looksAfter = session.holds() || !grips.isEmpty();
        long longest = looksAfter ? HELD_SLEEP_MAX : SLEEP_MAX;
        asleep = true;
        long delay = Math.min(wakeup - clock.getAsLong(), longest);
        if (delay <= 0 || !commands.isEmpty()) { // Posted before `asleep` was seen.
            selector.selectNow();
        } else {
            Thread.interrupted(); // Nobody has cause to; select would return at once ever after.
            selector.select((delay + Moments.MS - 1) / Moments.MS);
        }
        asleep = false;
        for (SelectionKey key : selector.selectedKeys()) {
            if (pipe != null && key.channel() == pipe.channel() && key.isReadable()) {
                read();
            }
        }
        selector.selectedKeys().clear();
    }

    private void runCommands() {
        Reference<?> gone;
        while ((gone = dropped.poll()) != null) {
            grips.remove(gone);
            if (gone instanceof Grip) {
                drop(((Grip) gone).held);
            } else if (!closed) {
                Session.LOGGER.log(Level.WARNING, "a client was dropped, not closed");
                closed = true;
                close();
            }
        }
        Runnable command;
        while ((command = commands.poll()) != null) {
            command.run();
        }
    }

    private void drop(Held held) {
        boolean isHeld = held.state == Held.State.HELD && !held.isLost();
        held.dropped = held.handedOver && isHeld;
        session.drop(held, clock.getAsLong());
    }

    private Permit permitOf(Held held) {
        WeakReference<Client> owner = client;
        Permit permit = new Permit(held, owner.get());
        Grip grip = new Grip(permit, held, dropped);
        grips.add(grip);
        held.grip = grip;
        return permit;
    }

    private void close() {
        if (!draining) {
            long now = clock.getAsLong();
            draining = true;
            drainUntil = now + config.timeout;
            session.close(now);
        }
    }

    private void tellAllLost() {
        for (Held held : session.takeLost()) {
            Permit permit = held.permit();
            if (permit != null) {
                tellLost(permit, held.onLost);
                tellLost(permit, config.onLost);
            }
        }
    }

    private void tellLost(Permit permit, Consumer<Permit> callback) {
        if (callback == null) {
            return;
        }
        execute(
                () -> {
                    try {
                        callback.accept(permit);
                    } catch (Throwable error) { // The thread is not the callback's to end.
                        Session.LOGGER.log(Level.ERROR, "onLost of " + permit + " failed", error);
                    }
                });
    }

    // The connection.

    private void flush() {
        if (pipe == null) {
            return;
        }
        Output output = session.output();
        try {
            ByteBuffer from = output.view();
            int before = from.remaining();
            if (before > 0 || pipe.wantsWrite()) {
                pipe.write(from);
                output.sent(before - from.remaining());
            }
            int writes = pipe.wantsWrite() ? SelectionKey.OP_WRITE : 0;
            int interest = SelectionKey.OP_READ | writes;
            SelectionKey key = pipe.channel().keyFor(selector);
            if (key.interestOps() != interest) {
                key.interestOps(interest);
            }
        } catch (IOException error) {
            // It is broken, and reading meets the same error, or what the server said before.
            pipe.channel().keyFor(selector).interestOps(SelectionKey.OP_READ);
        }
    }

    private void read() {
        Pipe from = pipe;
        do {
            ByteBuffer to = ByteBuffer.wrap(read);
            String broken = null;
            try {
                int size = from.read(to);
                if (size < 0) {
                    broken = session.endOfConnection("the server closed the connection");
                } else if (size > 0) {
                    broken = session.received(read, size, clock.getAsLong());
                }
            } catch (IOException error) {
                String why = Tls.why(error, false);
                if (Tls.denies(error)) { // TLS 1.3 tells it behind the handshake.
                    session.denied(clock.getAsLong(), why);
                }
                broken = session.endOfConnection(why);
            }
            if (broken != null) {
                detach(broken);
            }
        } while (pipe == from && from.readsAhead());
    }

    private void attach(Pipe ready, long now) {
        pipe = ready;
        pipe.channel().keyFor(selector).interestOps(SelectionKey.OP_READ);
        String refusal = session.connected(now, config.tls != null || staysHere(ready));
        if (refusal != null) {
            detach(refusal);
        }
    }

    private void detach(String reason) {
        Pipe gone = pipe;
        pipe = null;
        if (gone != null) {
            gone.close();
            session.disconnected(clock.getAsLong(), reason);
        }
    }

    /** Begins to dial, or goes on with it. */
    private void dialOn(long now) {
        if (dial == null) {
            if (pipe != null || draining || now < session.dialing.at) {
                return;
            }
            session.dialing.begin();
            Address address = session.dialing.address();
            if (lookup == null || lookup.address != address || lookup.failure != null) {
                lookup = new Lookup(address, this::wakeUp);
            }
            dial = new Dial(lookup, now, session.connectTimeout(), config.tls);
        }
        Dial current = dial;
        Pipe ready = current.step(now, selector);
        if (ready == null && current.failure == null) {
            return;
        }
        if (current.lookup.done) {
            lookup = null;
        }
        dial = null;
        if (ready != null) {
            attach(ready, now);
            return;
        }
        if (current.denied) {
            session.denied(now, current.failure);
        }
        session.connectFailed(now, current.failure);
    }

    private void wakeUp() {
        if (ended == null) {
            selector.wakeup();
        }
    }

    /** Whether the peer of a plain connection is on this machine, as the server judges it. */
    private static boolean staysHere(Pipe plain) {
        try {
            InetAddress peer = address(plain.channel().getRemoteAddress());
            InetAddress own = address(plain.channel().getLocalAddress());
            return peer != null && (peer.isLoopbackAddress() || peer.equals(own));
        } catch (IOException error) { // It broke: nothing leaves.
            return true;
        }
    }

    private static InetAddress address(Object of) {
        return of instanceof InetSocketAddress ? ((InetSocketAddress) of).getAddress() : null;
    }
}
