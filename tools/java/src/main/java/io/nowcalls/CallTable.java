package io.nowcalls;

import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.TreeMap;

/**
 * The calls without answer of a session, and their deadlines.
 *
 * <p>Thread: the session's. It refers to no call that has its outcome and its answer, so that
 * permits which nobody took are dropped with their call.
 */
final class CallTable {
    private static final class Deadline implements Comparable<Deadline> {
        final long at;
        final long number;

        Deadline(Call call) {
            this.at = call.deadline;
            this.number = call.number;
        }

        @Override
        public int compareTo(Deadline other) {
            int byMoment = Long.compare(at, other.at);
            return byMoment != 0 ? byMoment : Long.compare(number, other.number);
        }
    }

    private long lastNumber;
    private final Map<Long, Call> awaited = new LinkedHashMap<>(); // With a caller, no outcome.
    private final PriorityQueue<Deadline> deadlines = new PriorityQueue<>(); // Some have ended.
    private TreeMap<Long, Call> queue = new TreeMap<>(); // For the next connection.
    private Map<Long, Call> inFlight = new HashMap<>(); // By their msgid.

    /** A call with a caller. */
    void begin(Call call) {
        call.number = ++lastNumber;
        awaited.put(call.number, call);
        deadlines.add(new Deadline(call));
        if (deadlines.size() > 64 + 4 * awaited.size()) {
            deadlines.removeIf(entry -> !awaited.containsKey(entry.number));
        }
    }

    void settle(Call call, Object value, NowcallsException error) {
        awaited.remove(call.number);
        call.settle(value, error);
    }

    void queue(Call call) {
        number(call);
        queue.put(call.number, call);
    }

    void dequeue(Call call) {
        queue.remove(call.number);
    }

    List<Call> takeQueue() {
        List<Call> calls = new ArrayList<>(queue.values());
        queue = new TreeMap<>();
        return calls;
    }

    void sent(long msgid, Call call) {
        number(call);
        inFlight.put(msgid, call);
    }

    Call inFlight(long msgid) {
        return inFlight.get(msgid);
    }

    void answered(long msgid) {
        inFlight.remove(msgid);
    }

    List<Call> takeInFlight() {
        List<Call> calls = new ArrayList<>(inFlight.values());
        inFlight = new HashMap<>();
        calls.sort((a, b) -> Long.compare(a.number, b.number));
        return calls;
    }

    List<Call> awaited() {
        return new ArrayList<>(awaited.values());
    }

    List<Call> all() {
        List<Call> calls = new ArrayList<>(inFlight.values());
        calls.addAll(queue.values());
        return calls;
    }

    /** Whether a call that is asked until it is answered has no answer yet. */
    boolean hasPersistent() {
        return hasPersistent(inFlight.values()) || hasPersistent(queue.values());
    }

    long nextDeadline() {
        while (!deadlines.isEmpty() && !awaited.containsKey(deadlines.peek().number)) {
            deadlines.remove();
        }
        return deadlines.isEmpty() ? Moments.NEVER : deadlines.peek().at;
    }

    Call overdue(long now) {
        return nextDeadline() > now ? null : awaited.get(deadlines.peek().number);
    }

    private void number(Call call) {
        if (call.number == 0) {
            call.number = ++lastNumber;
        }
    }

    private static boolean hasPersistent(Collection<Call> calls) {
        return calls.stream().anyMatch(Call::isPersistent);
    }
}
