package io.nowcalls;

import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The rules that a session has seen, with the moment when. The oldest are forgotten.
 *
 * <p>Thread: the session's.
 */
final class Rules {
    private static final int FLOWS_MAX = 10_000;
    private static final long FRESH = 30 * Moments.SECOND;

    /**
     * Asks for the rules of a flow: it may have one of all calls and one by value.
     *
     * <p>A number is found behind a cursor, as in every version; a name by servers that know names.
     */
    static final class Ask extends Call {
        final Object flow;

        Ask(Object flow) {
            super("rules_list", null, 2L);
            this.flow = flow;
            if (flow instanceof String) {
                params.add(null);
                params.add(flow);
            } else {
                params.add((Long) flow - 1);
            }
        }

        /** By whether it is the rule by value. None of what is not clearly a rule of this flow. */
        @Override
        Map<Boolean, Rule> decode(Object result) {
            Map<Boolean, Rule> rules = new HashMap<>();
            for (Object row : list(list(result).isEmpty() ? null : list(result).get(0))) {
                Map<?, ?> fields = Rule.map(row);
                Object named =
                        flow instanceof String
                                ? fields.get("resource")
                                : Rule.map(fields.get("clusterConfig")).get("flowId");
                if (flow.equals(named)) {
                    rules.put(Rule.isByValue(fields), new Rule(fields));
                }
            }
            return rules;
        }

        private static List<?> list(Object value) {
            return value instanceof List ? (List<?>) value : Collections.emptyList();
        }
    }

    private static final class Seen {
        final Map<Boolean, Rule> rules;
        final long at;

        Seen(Map<Boolean, Rule> rules, long at) {
            this.rules = rules;
            this.at = at;
        }
    }

    private final LinkedHashMap<Object, Seen> seen = new LinkedHashMap<>();

    void learn(Object flow, Map<Boolean, Rule> rules, long now) {
        seen.remove(flow); // So that it becomes the latest.
        seen.put(flow, new Seen(rules, now));
        if (seen.size() > FLOWS_MAX) {
            seen.remove(seen.keySet().iterator().next());
        }
    }

    boolean isStale(Object flow, long now) {
        Seen rules = seen.get(flow);
        return rules == null || now - rules.at > FRESH;
    }

    /** null: none was seen. */
    Rule find(Object flow, boolean byValue) {
        Seen rules = seen.get(flow);
        return rules == null ? null : rules.rules.get(byValue);
    }
}
