package io.nowcalls;

import static io.nowcalls.Moments.NEVER;
import static io.nowcalls.Moments.after;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.TreeMap;

/**
 * The server's tokens of a session, and when to look after each.
 *
 * <p>Thread: the session's.
 */
final class HeldTokens {
    /** A moment to look after a token; outdated when the token has another. */
    private static final class Due implements Comparable<Due> {
        final long at;
        final long tokenId;

        Due(Held held) {
            this.at = held.dueAt;
            this.tokenId = held.tokenId;
        }

        @Override
        public int compareTo(Due other) {
            int byMoment = Long.compare(at, other.at);
            return byMoment != 0 ? byMoment : Long.compare(tokenId, other.tokenId);
        }
    }

    private final Map<Long, Held> tokens = new HashMap<>();
    private final PriorityQueue<Due> due = new PriorityQueue<>();
    private final TreeMap<Long, Integer> offline = new TreeMap<>(); // By clientOfflineTime.

    int size() {
        return tokens.size();
    }

    Held find(long tokenId) {
        return tokens.get(tokenId);
    }

    /** By ascending token id. */
    List<Held> all() {
        List<Held> sorted = new ArrayList<>(tokens.values());
        sorted.sort((a, b) -> Long.compare(a.tokenId, b.tokenId));
        return sorted;
    }

    void add(Held held) {
        tokens.put(held.tokenId, held);
        count(held, 1);
    }

    boolean remove(Held held) {
        if (!tokens.remove(held.tokenId, held)) {
            return false;
        }
        count(held, -1);
        return true;
    }

    void changeTerms(Held held, Terms terms) {
        count(held, -1);
        held.setTerms(terms);
        count(held, 1);
    }

    /** The smallest clientOfflineTime, or -1 if none is known. */
    long offlineMs() {
        return offline.isEmpty() ? -1 : offline.firstKey();
    }

    /** When the first token is lost unless there is contact. */
    long contactUntil(Contact contact) {
        return offline.isEmpty() ? NEVER : after(contact.at, Held.span(offline.firstKey()));
    }

    /** Looks after it when its next moment comes. */
    void plan(Held held) {
        held.planDue();
        due.add(new Due(held));
        if (due.size() > 64 + 4 * tokens.size()) {
            due.removeIf(entry -> !isCurrent(entry));
        }
    }

    long nextAt() {
        while (!due.isEmpty() && !isCurrent(due.peek())) {
            due.remove();
        }
        return due.isEmpty() ? NEVER : due.peek().at;
    }

    /** One whose moment has come, or null. It must be planned again, or removed. */
    Held takeDue(long now) {
        return nextAt() > now ? null : tokens.get(due.remove().tokenId);
    }

    private boolean isCurrent(Due entry) {
        Held held = tokens.get(entry.tokenId);
        return held != null && held.dueAt == entry.at;
    }

    private void count(Held held, int change) {
        Terms terms = held.terms();
        if (terms != null) {
            int now = offline.merge(terms.offlineMs, change, Integer::sum);
            if (now <= 0) {
                offline.remove(terms.offlineMs);
            }
        }
    }
}
