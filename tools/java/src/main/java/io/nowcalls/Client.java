package io.nowcalls;

import java.lang.System.Logger.Level;
import java.lang.ref.Reference;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Function;
import java.util.function.Supplier;

/**
 * A client of one namespace, for all threads of a process, virtual ones too.
 *
 * <pre>{@code
 * try (Client client = Client.builder("127.0.0.1:18730").namespace("shop").build()) {
 *     try (Permit permit = client.acquire(1001)) {
 *         // At most as many at once, over all processes, as rule 1001 allows.
 *     }
 * }
 * }</pre>
 *
 * <p>Calls throw {@link RefusedException}, {@link NoRuleException}, {@link UnavailableException},
 * {@link OutcomeUnknownException}, {@link BadRequestException} or {@link
 * PermissionDeniedException}. Futures end with the same. A caller that is interrupted, or a future
 * that is cancelled, holds nothing.
 */
public final class Client implements AutoCloseable {
    private static final long GRACE = 2 * Moments.SECOND; // For a thread that is held up.
    private static final Options USUAL = new Options();

    final Worker worker;
    private final Config config;

    Client(Config config) {
        this.config = config;
        this.worker = new Worker(config);
        worker.start(this);
    }

    /**
     * Settings of a client.
     *
     * @param addresses "HOST:PORT" or "[IPV6]:PORT"; several are tried in turn. None:
     *     "127.0.0.1:18730"
     * @return a builder
     */
    public static ClientBuilder builder(String... addresses) {
        return new ClientBuilder(addresses);
    }

    // Permits.

    /**
     * Takes a token for one call in progress.
     *
     * @param flowId the flowId of a rule
     * @return the permit, to be closed
     * @throws InterruptedException nothing is held
     */
    public Permit acquire(long flowId) throws InterruptedException {
        return acquire(Item.of(flowId), USUAL);
    }

    /**
     * Takes a token for one call in progress.
     *
     * @param resource the resource of a rule of the namespace
     * @return the permit, to be closed
     * @throws InterruptedException nothing is held
     */
    public Permit acquire(String resource) throws InterruptedException {
        return acquire(Item.of(resource), USUAL);
    }

    /**
     * Takes a token.
     *
     * @param item the flow, the count and the value of the parameter
     * @param options wait, priority and more
     * @return the permit, to be closed
     * @throws InterruptedException nothing is held
     */
    public Permit acquire(Item item, Options options) throws InterruptedException {
        return await(acquireCall(item, options), options, value -> (Permit) value);
    }

    /**
     * Takes a token.
     *
     * @param item the flow, the count and the value of the parameter
     * @param options wait, priority and more
     * @return the permit, to be closed; to be cancelled by who will not take it
     */
    public CompletableFuture<Permit> acquireAsync(Item item, Options options) {
        return future(() -> acquireCall(item, options), options, value -> (Permit) value);
    }

    /**
     * Makes a call that holds a token meanwhile. A call that throws tells the server that it
     * failed, or with a TimeoutException, CancellationException or InterruptedException that it was
     * given up.
     *
     * @param item the flow, the count and the value of the parameter
     * @param options wait, priority and more
     * @param call the call
     * @param <T> of its result
     * @return its result
     * @throws Exception of the call
     */
    public <T> T call(Item item, Options options, Callable<T> call) throws Exception {
        try (Permit permit = acquire(item, options)) {
            try {
                return call.call();
            } catch (Throwable error) {
                permit.setOutcome(Outcome.of(error));
                throw error;
            }
        }
    }

    /**
     * Takes a token for each item, for all or for none. Nothing is held while it waits.
     *
     * @param items each of another flow or parameter; an {@link Item#rate(long)} asks for calls a
     *     second in the same decision
     * @param options wait, priority and more
     * @return a permit for each item, null for a rate
     * @throws InterruptedException nothing is held
     */
    public List<Permit> acquireAll(List<Item> items, Options options) throws InterruptedException {
        return await(acquireAllCall(items, options), options, Client::permits);
    }

    /**
     * Takes a token for each item, for all or for none. Nothing is held while it waits.
     *
     * @param items as of {@link #acquireAll}
     * @param options wait, priority and more
     * @return a permit for each item, null for a rate
     */
    public CompletableFuture<List<Permit>> acquireAllAsync(List<Item> items, Options options) {
        return future(() -> acquireAllCall(items, options), options, Client::permits);
    }

    private AcquireCall acquireCall(Item item, Options options) {
        return set(new AcquireCall(item, options.wait, options.prioritized, 0), options);
    }

    private AcquireCall acquireAllCall(List<Item> items, Options options) {
        boolean first = options.prioritized;
        return set(new AcquireAllCall(items, options.wait, first, options.sleep, 0), options);
    }

    private AcquireCall set(AcquireCall call, Options options) {
        call.keep = options.keep == null ? config.keep : options.keep;
        call.onLost = options.onLost;
        return call;
    }

    @SuppressWarnings("unchecked")
    private static List<Permit> permits(Object value) {
        return (List<Permit>) value;
    }

    // Calls a second.

    /**
     * Asks for calls under a rule of calls a second. Nothing is held. Sleeps until the calls may be
     * made, if that is within the timeout.
     *
     * @param item the flow and the count
     * @param options whether to sleep, and more
     * @return what is left
     * @throws InterruptedException the calls may have been counted
     */
    public Rate request(Item item, Options options) throws InterruptedException {
        return await(rateCall(item, null, options), options, value -> (Rate) value);
    }

    /**
     * Asks for calls under a rule of calls a second.
     *
     * @param item the flow and the count
     * @param options whether to sleep, and more
     * @return what is left
     */
    public CompletableFuture<Rate> requestAsync(Item item, Options options) {
        return future(() -> rateCall(item, null, options), options, value -> (Rate) value);
    }

    /**
     * Asks for calls of each value of the rule's parameter: of all, or of none.
     *
     * @param item the flow and the count
     * @param values integers, Floats, Doubles, Booleans or Strings
     * @param options whether to sleep, and more
     * @return what is left
     * @throws InterruptedException the calls may have been counted
     */
    public Rate requestParam(Item item, List<?> values, Options options)
            throws InterruptedException {
        return await(rateCall(item, checked(values), options), options, value -> (Rate) value);
    }

    /**
     * Asks for calls of each value of the rule's parameter: of all, or of none.
     *
     * @param item the flow and the count
     * @param values integers, Floats, Doubles, Booleans or Strings
     * @param options whether to sleep, and more
     * @return what is left
     */
    public CompletableFuture<Rate> requestParamAsync(Item item, List<?> values, Options options) {
        return future(
                () -> rateCall(item, checked(values), options), options, value -> (Rate) value);
    }

    private static Calls.RateRequest rateCall(Item item, List<?> values, Options options) {
        if (item.param != null) {
            throw new BadRequestException("request has no param; requestParam takes values");
        }
        return new Calls.RateRequest(item, values, options.prioritized, options.sleep);
    }

    private static List<Object> checked(List<?> values) {
        List<Object> scalars = new ArrayList<>();
        values.forEach(value -> scalars.add(Item.scalar("a value", value)));
        return scalars;
    }

    // What the server knows.

    /**
     * The server's clock.
     *
     * @return milliseconds
     * @throws InterruptedException of the caller
     */
    public long ping() throws InterruptedException {
        return await(new Calls.Ping(), USUAL, value -> (Long) value);
    }

    /**
     * The row of a flow as in PROTOCOL.md: level, now_calls, waiters, counters and more.
     *
     * @param flowId the flowId of a rule
     * @return the row
     * @throws InterruptedException of the caller
     */
    public Map<String, Object> flow(long flowId) throws InterruptedException {
        return row(Item.of(flowId));
    }

    /**
     * The row of a flow as in PROTOCOL.md: level, now_calls, waiters, counters and more.
     *
     * @param resource the resource of a rule
     * @return the row
     * @throws InterruptedException of the caller
     */
    public Map<String, Object> flow(String resource) throws InterruptedException {
        return row(Item.of(resource));
    }

    /**
     * Rows of all flows, fetched in pages by the iterator.
     *
     * @return the rows
     */
    public Iterable<Map<String, Object>> flows() {
        return rows("flows");
    }

    /**
     * Rows of all sessions of the server.
     *
     * @return the rows
     */
    public Iterable<Map<String, Object>> sessions() {
        return rows("sessions");
    }

    /**
     * Rows of live tokens, the oldest first.
     *
     * @param flow null: of all flows
     * @param clientId null: of all clients
     * @return the rows
     */
    public Iterable<Map<String, Object>> tokens(Item flow, String clientId) {
        Map<String, Object> filter = new HashMap<>();
        if (flow != null) {
            filter.put("flow_id", flow.flow);
        }
        if (clientId != null) {
            filter.put("client_id", clientId);
        }
        return rows("tokens", filter);
    }

    /**
     * Rows of tokens that ended without a release in time, the newest first.
     *
     * @return the rows
     */
    public Iterable<Map<String, Object>> history() {
        return rows("history");
    }

    /**
     * Figures of this client: its connection, permits held and lost, local calls.
     *
     * @return by name
     */
    public Map<String, Object> stats() {
        if (worker.isCurrent()) {
            return worker.stats();
        }
        CompletableFuture<Map<String, Object>> stats = new CompletableFuture<>();
        worker.post(() -> stats.complete(worker.stats()));
        return stats.join();
    }

    @SuppressWarnings("unchecked")
    private Map<String, Object> row(Item item) throws InterruptedException {
        Call call = new Calls.Row("flow", item.flow);
        return await(call, USUAL, value -> (Map<String, Object>) value);
    }

    private Iterable<Map<String, Object>> rows(String method, Object... head) {
        Iterable<Map<String, Object>> rows =
                () -> new Rows(this, config.timeout, Clock.system(), method, head);
        return rows;
    }

    // The end.

    /**
     * Ends the client. Waits up to the timeout for releases on their way to a connected server,
     * unless the thread is interrupted.
     *
     * <p>Permits that are still held stay with the server until their hold or the rule's
     * clientOfflineTime is over.
     */
    @Override
    public void close() {
        worker.closeSoon();
        if (worker.isCurrent()) {
            return;
        }
        try {
            worker.done.await();
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }

    // Calls.

    /** Asks a call and waits for its outcome. */
    <T> T await(Call call, Options options, Function<Object, T> read) throws InterruptedException {
        checkUsable();
        if (worker.isCurrent()) {
            throw new BadRequestException("a callback must not call the client that calls it");
        }
        Answer<T> answer = new Answer<>(this, call, read).listen(false);
        worker.ask(call, timeout(options));
        return get(answer, call, timeout(options));
    }

    private <T> CompletableFuture<T> future(
            Supplier<Call> make, Options options, Function<Object, T> read) {
        checkUsable();
        Call call = make.get();
        Answer<T> answer = new Answer<>(this, call, read).listen(true);
        worker.ask(call, timeout(options));
        return answer;
    }

    private void checkUsable() {
        if (worker.closed) {
            String ended = worker.ended;
            throw new BadRequestException(ended == null ? "the client is closed" : ended);
        }
    }

    private long timeout(Options options) {
        return options.timeout < 0 ? config.timeout : options.timeout;
    }

    private static <T> T get(Answer<T> answer, Call call, long timeout)
            throws InterruptedException {
        try {
            return answer.get(timeout + call.patience() + GRACE, TimeUnit.MICROSECONDS);
        } catch (ExecutionException failed) {
            NowcallsException error = (NowcallsException) failed.getCause();
            error.fillInStackTrace(); // The caller's.
            throw error;
        } catch (TimeoutException late) {
            if (answer.leave()) {
                throw new OutcomeUnknownException(call.method + ": the client's thread is held up");
            }
            return answer.join();
        } catch (InterruptedException interrupted) { // Nobody will take the outcome.
            if (answer.leave()) {
                throw interrupted;
            }
            Thread.currentThread().interrupt();
            return answer.join();
        } finally {
            Reference.reachabilityFence(answer.client());
        }
    }

    boolean release(Permit permit, Outcome outcome, boolean leaves) throws InterruptedException {
        Held held = permit.held;
        if (!held.isOpen()) {
            return !held.isLost();
        }
        Calls.Release call = new Calls.Release(held, outcome, leaves);
        Answer<Boolean> answer = new Answer<>(this, call, value -> (Boolean) value).listen(false);
        worker.release(call, config.timeout);
        Reference.reachabilityFence(permit); // It was not dropped before.
        if (worker.isCurrent()) {
            return !held.isLost(); // A callback cannot wait here.
        }
        return get(answer, call, config.timeout);
    }

    CompletableFuture<Boolean> releaseAsync(Permit permit, Outcome outcome) {
        Held held = permit.held;
        if (!held.isOpen()) {
            return CompletableFuture.completedFuture(!held.isLost());
        }
        Calls.Release call = new Calls.Release(held, outcome, false);
        Answer<Boolean> answer = new Answer<>(this, call, value -> (Boolean) value).listen(true);
        worker.release(call, config.timeout);
        Reference.reachabilityFence(permit);
        return answer;
    }

    /** The end of a block, which has done its work whether or not the server is there. */
    void leave(Permit permit, Outcome outcome) {
        try {
            release(permit, outcome, true);
        } catch (UnavailableException | OutcomeUnknownException error) {
            String how = worker.closed ? "not released" : "released in the background";
            Session.LOGGER.log(
                    Level.WARNING, "{0} is {1}: {2}", permit, how, error.getMessage());
        } catch (InterruptedException error) { // The release goes on.
            Thread.currentThread().interrupt();
        }
    }

    boolean keep(Permit permit) throws InterruptedException {
        Held held = permit.held;
        if (held.local || held.state != Held.State.HELD || held.isLost()) {
            return held.local && held.state == Held.State.HELD;
        }
        return await(new Calls.KeepCall(held), USUAL, value -> value != null);
    }
}
