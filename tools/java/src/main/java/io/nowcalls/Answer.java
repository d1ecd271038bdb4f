package io.nowcalls;

import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.function.Function;

/**
 * The outcome of a call, to come. A caller that cancels it, or ends it otherwise, holds nothing.
 *
 * <p>It refers to its client, so that a client which somebody waits for is not dropped.
 */
final class Answer<T> extends CompletableFuture<T> {
    private final Client client;
    private final Worker worker;
    private final Call call;
    private final Function<Object, T> read;
    private volatile boolean settled;

    /** read: makes what the caller gets of the call's value. */
    Answer(Client client, Call call, Function<Object, T> read) {
        this.client = client;
        this.worker = client.worker;
        this.call = call;
        this.read = read;
    }

    /** The call's outcome completes it, on the worker's thread or by the program's executor. */
    Answer<T> listen(boolean byExecutor) {
        call.notify = byExecutor ? () -> worker.execute(this::settle) : this::settle;
        if (byExecutor) {
            whenComplete((value, error) -> abandon());
        }
        return this;
    }

    /** Its caller waits no more. False: it has its outcome, which the caller must take. */
    boolean leave() {
        if (!cancel(false)) {
            return isCancelled() || isCompletedExceptionally();
        }
        abandon();
        return true;
    }

    private void abandon() {
        // A release goes on, whether or not anybody waits.
        if (!settled && !(call instanceof Calls.Release)) {
            worker.abandon(call);
        }
    }

    Client client() {
        return client;
    }

    private void settle() {
        settled = true;
        Object value = call.value;
        if (call.error != null) {
            completeExceptionally(call.error);
            return;
        }
        handOver(value, true);
        if (complete(read.apply(value))) {
            call.value = null; // The caller alone has the permits.
        } else {
            handOver(value, false);
            worker.abandon(call);
        }
    }

    private static void handOver(Object value, boolean isTaken) {
        if (value instanceof Permit) {
            ((Permit) value).held.handedOver = isTaken;
        } else if (value instanceof List) {
            ((List<?>) value).forEach(one -> handOver(one, isTaken));
        }
    }
}
