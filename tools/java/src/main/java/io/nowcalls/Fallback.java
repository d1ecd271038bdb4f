package io.nowcalls;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.BiFunction;

/**
 * What happens to calls that no server answers, or that it cannot take: admits up to this process's
 * share of a limit, as the mode says.
 *
 * <p>Thread: the session's. It counts the calls in progress of this session, under tokens of the
 * server and local ones, and local calls a second in one window that begins anew when it is over.
 */
final class Fallback {
    private static final int WINDOWS_MAX = 10_000;
    private static final long NO_LIMIT = -1;

    /** Nothing is known that could limit the flow. */
    private static final class Unknown extends Exception {
        private static final long serialVersionUID = 1;

        Unknown() {
            super(null, null, false, false);
        }
    }

    private static final class Key {
        final Object flow;
        final Object param;

        Key(Item item) {
            this.flow = item.flow;
            this.param = item.param;
        }

        @Override
        public boolean equals(Object other) {
            return other instanceof Key
                    && flow.equals(((Key) other).flow)
                    && Objects.equals(param, ((Key) other).param);
        }

        @Override
        public int hashCode() {
            return Objects.hash(flow, param);
        }
    }

    private static final class Window {
        final long begin;
        long calls;

        Window(long begin) {
            this.begin = begin;
        }
    }

    final FallbackMode mode;
    long granted;
    long refused;
    long passed;
    private final Rules rules;
    private final Map<Object, Long> configured;
    private final Map<Key, Long> inProgress = new HashMap<>();
    private final Map<Key, Window> windows = new HashMap<>();

    Fallback(FallbackMode mode, Map<Object, Long> levels, Rules rules) {
        this.mode = mode;
        this.configured = levels;
        this.rules = rules;
    }

    boolean isActive() {
        return mode != FallbackMode.FAIL;
    }

    boolean followsRules() {
        return mode == FallbackMode.RULE || mode == FallbackMode.LOCAL;
    }

    // Calls in progress.

    void enter(Held held) {
        inProgress.merge(new Key(held.item), (long) held.item.calls, Long::sum);
    }

    void leave(Held held) {
        inProgress.computeIfPresent(
                new Key(held.item),
                (key, calls) -> calls > held.item.calls ? calls - held.item.calls : null);
    }

    // Decisions.

    /** Local tokens, null for a rate; or null if there is no fallback. May throw Refused. */
    List<Held> decideAcquire(
            AcquireCall call, long sessions, long now, BiFunction<AcquireCall, Item, Held> make) {
        List<Held> taken = new ArrayList<>();
        try {
            for (Item item : call.items) {
                taken.add(take(call, item, sessions, now, make));
            }
        } catch (Unknown nothing) {
            return null;
        } finally {
            if (taken.size() < call.items.size()) {
                for (int i = 0; i < taken.size(); i++) {
                    giveBack(call.items.get(i), taken.get(i));
                }
            }
        }
        return taken;
    }

    /** As decideAcquire. */
    Rate decideRate(Calls.RateRequest call, long sessions, long now) {
        List<Item> items = new ArrayList<>();
        List<?> values = call.values == null ? Collections.singletonList(null) : call.values;
        for (Object value : values) {
            items.add(new Item(call.item.flow, call.item.calls, value, true));
        }
        int counted = 0;
        try {
            for (Item item : items) {
                pass(item, sessions, now);
                counted++;
            }
        } catch (Unknown nothing) {
            return null;
        } finally {
            if (counted < items.size()) {
                items.subList(0, counted).forEach(item -> giveBack(item, null));
            }
        }
        return new Rate(-1, 0);
    }

    private Held take(
            AcquireCall call,
            Item item,
            long sessions,
            long now,
            BiFunction<AcquireCall, Item, Held> make)
            throws Unknown {
        if (item.rate) {
            pass(item, sessions, now);
            return null;
        }
        long before = inProgress.getOrDefault(new Key(item), 0L);
        long share = share(item, sessions);
        judge(item, before, share, "level");
        Held held = make.apply(call, item);
        held.local = true;
        held.nowCalls = before + item.calls;
        held.level = share == NO_LIMIT ? 0 : share;
        enter(held);
        return held;
    }

    private void pass(Item item, long sessions, long now) throws Unknown {
        long share = share(item, sessions);
        Key key = new Key(item);
        Window window = windows.get(key);
        if (window == null || now - window.begin >= windowMs(item) * Moments.MS) {
            window = new Window(now);
        }
        judge(item, window.calls, share, item.param == null ? "rate" : "param");
        if (windows.size() >= WINDOWS_MAX && !windows.containsKey(key)) {
            windows.clear();
        }
        window.calls += item.calls;
        windows.put(key, window);
    }

    private void giveBack(Item item, Held held) {
        if (held != null) {
            leave(held);
            return;
        }
        Window window = windows.get(new Key(item));
        if (window != null) {
            window.calls = Math.max(0, window.calls - item.calls);
        }
    }

    private long share(Item item, long sessions) throws Unknown {
        if (mode == FallbackMode.PASS) {
            return NO_LIMIT;
        }
        Long level = configured.get(item.flow);
        if (level != null) {
            return level;
        }
        Rule rule = rules.find(item.flow, item.param != null);
        if (mode == FallbackMode.RULE && (rule == null || !rule.fallbackToLocal)) {
            return NO_LIMIT;
        }
        if (rule == null) {
            throw new Unknown();
        }
        return item.rate
                ? rule.windowShare(item.param, sessions)
                : rule.share(item.param, sessions);
    }

    private long windowMs(Item item) {
        Rule rule = rules.find(item.flow, item.param != null);
        return rule == null ? Rule.WINDOW_MS : rule.windowMs;
    }

    private void judge(Item item, long before, long share, String limit) {
        if (share == NO_LIMIT) {
            passed++;
        } else if (before + item.calls > share) {
            refused++;
            throw new RefusedException(
                    "flow " + Item.show(item.flow) + " refused by the local share: " + before
                            + " of " + share + " in progress",
                    item.flow, 1, limit, before, share, true);
        } else {
            granted++;
        }
    }
}
