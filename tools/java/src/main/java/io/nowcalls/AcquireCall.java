package io.nowcalls;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;

/** An acquire under a request id of its own, so that asking again gives the same token. */
class AcquireCall extends Call {
    /** As a wait: the rule has it. */
    static final long BY_RULE = -1;

    final List<Item> items;
    final boolean prioritized;
    long requestId; // Set by the session, as the next.
    long startedAt; // The wait is counted over all attempts.
    Keep keep = Keep.RULE;
    Consumer<Permit> onLost;
    boolean sleep = true;
    int refusals;
    RefusedException refusal; // The last one after which it was asked once more.
    boolean confirmed; // It was granted late, and asked again for what is left of its hold.
    long waitUntil; // When the calls of its rates may be made.
    List<Held> granted = new ArrayList<>(); // Its tokens, until its caller has them.
    private final long wait;
    private final long holdMs;

    AcquireCall(Item item, long wait, boolean prioritized, long holdMs) {
        this("acquire", Collections.singletonList(item), wait, prioritized, holdMs);
        if (item.rate) {
            throw new BadRequestException("a rate is an item of acquireAll, or a request");
        }
    }

    AcquireCall(String method, List<Item> items, long wait, boolean prioritized, long holdMs) {
        super(method);
        this.items = items;
        this.wait = wait;
        this.prioritized = prioritized;
        this.holdMs = holdMs;
    }

    @Override
    boolean wantsRoom() {
        return true;
    }

    @Override
    long patience() {
        return Math.max(wait, 0);
    }

    @Override
    boolean mayWait(long now) {
        return wait != BY_RULE && now < startedAt + wait;
    }

    boolean isByValue(Object flow) {
        return items.stream().anyMatch(item -> item.flow.equals(flow) && item.param != null);
    }

    @Override
    List<Object> params(long now) {
        Item item = items.get(0);
        return Arrays.asList(item.flow, (long) item.calls, options(now, item.param));
    }

    final Map<String, Object> options(long now, Object param) {
        Map<String, Object> options = new LinkedHashMap<>();
        if (prioritized) {
            options.put("prioritized", true);
        }
        if (wait != BY_RULE) {
            // A repeated acquire without wait would lose its place in the queue.
            long left = Math.floorDiv(startedAt + wait - now + Moments.MS - 1, Moments.MS);
            options.put("wait_ms", wait > 0 ? Math.max(left, 1) : 0L);
        }
        options.put("request_id", requestId);
        if (holdMs > 0) {
            options.put("hold_ms", holdMs);
        }
        if (param != null) {
            options.put("param", param);
        }
        return options;
    }

    @Override
    Granted decode(Object result) throws WrongAnswer, AskAgain, TokenGone {
        List<Object> parts = Check.array("an answer", result, 7);
        int status = Answers.status("status", parts.get(0));
        long nowCalls = Check.uint("now_calls", parts.get(3));
        long level = Check.uint("level", parts.get(4));
        Item item = items.get(0);
        if (status == Answers.OK) {
            Terms terms = Answers.terms(parts, 8);
            Granted.Grant grant =
                    Granted.Grant.of(item, parts.get(1), parts.get(2), parts.get(5), terms);
            return new Granted(Collections.singletonList(grant), nowCalls, level);
        }
        if (status == Answers.NOT_AVAILABLE) {
            throw new AskAgain();
        }
        String refusedBy = Check.textOrNull("refused_by", parts.get(6));
        throw Answers.refusal(item.flow, status, refusedBy, nowCalls, level);
    }

    /** What the caller gets. */
    Object outcome(List<Permit> permits) {
        return permits.get(0);
    }
}
