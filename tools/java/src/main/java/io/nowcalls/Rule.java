package io.nowcalls;

import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** What a client must know of a rule. The fields are those of rules_list in PROTOCOL.md. */
final class Rule {
    static final long WINDOW_MS = 1000;

    /** Values of acquireRefuseStrategy. */
    static final int ONCE_MORE = 1;

    static final int UNTIL_DEADLINE = 2;

    final int acquireRefuse;
    final boolean fallbackToLocal;
    final long windowMs;
    private final boolean isGlobal;
    private final double limit;
    private final Map<String, Double> items; // Counts of values, by their text.
    private final boolean countPerWindow;

    /** Fields of other types count as left out. */
    Rule(Map<?, ?> row) {
        Map<?, ?> config = map(row.get("clusterConfig"));
        double window = Check.number(config.get("windowIntervalMs"), WINDOW_MS);
        boolean perWindow = Boolean.TRUE.equals(config.get("countPerWindow"));
        if (row.containsKey("threshold")) { // sentinel-golang has its window beside it.
            perWindow = true;
            double seconds = Check.number(row.get("durationInSec"), 1);
            window = Check.number(row.get("statIntervalInMs"), 1000 * seconds);
        }
        acquireRefuse = (int) Check.number(config.get("acquireRefuseStrategy"), 0);
        fallbackToLocal = Boolean.TRUE.equals(config.get("fallbackToLocalWhenFail"));
        isGlobal = Long.valueOf(1).equals(config.get("thresholdType"));
        limit = count(row);
        items = items(row);
        windowMs = (long) window;
        countPerWindow = perWindow;
    }

    /** Servers that know no kinds do not say it, but a key of the rule does. */
    static boolean isByValue(Map<?, ?> row) {
        if (row.containsKey("kind")) {
            return "value".equals(row.get("kind"));
        }
        return row.containsKey("paramIdx") || row.containsKey("paramIndex");
    }

    static Map<?, ?> map(Object value) {
        return value instanceof Map ? (Map<?, ?>) value : Collections.emptyMap();
    }

    /** The calls that one of the sessions may have in progress. */
    long share(Object param, long sessions) {
        return part(countOf(param), sessions);
    }

    /** The calls that one of the sessions may make in a window. */
    long windowShare(Object param, long sessions) {
        double calls = countOf(param);
        return part(countPerWindow ? calls : calls * (windowMs / 1000.0), sessions);
    }

    private double countOf(Object param) {
        if (param == null || items.isEmpty()) {
            return limit;
        }
        return items.getOrDefault(String.valueOf(param), limit);
    }

    private long part(double calls, long sessions) {
        if (calls <= 0) {
            return 0;
        }
        return (long) (isGlobal ? Math.max(1, calls / Math.max(1, sessions)) : calls);
    }

    /** Of Sentinel's rules, or sentinel-golang's. */
    private static double count(Map<?, ?> fields) {
        return Check.number(fields.get("count"), Check.number(fields.get("threshold"), 0));
    }

    private static Map<String, Double> items(Map<?, ?> row) {
        Map<String, Double> items = new HashMap<>();
        addItems(items, row.get("paramFlowItemList"), "object");
        addItems(items, row.get("specificItems"), "valStr");
        return items;
    }

    private static void addItems(Map<String, Double> items, Object listed, String value) {
        for (Object item : listed instanceof List ? (List<?>) listed : Collections.emptyList()) {
            Object text = map(item).get(value);
            if (text instanceof String) {
                items.put((String) text, count(map(item)));
            }
        }
    }
}
