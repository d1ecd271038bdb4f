package io.nowcalls;

import java.util.Objects;

/**
 * What is asked for: a flow, a number of calls and the value of the rule's parameter. Immutable:
 * each method returns a changed copy.
 */
public final class Item {
    private static final long COUNT_MAX = Integer.MAX_VALUE;
    private static final int RESOURCE_BYTES_MAX = 1024;

    /** A Long or a String. */
    final Object flow;

    final int calls;

    /** A Long, Float, Double, Boolean, String or null. */
    final Object param;

    final boolean rate;

    Item(Object flow, long calls, Object param, boolean rate) {
        if (flow instanceof String) {
            checkName((String) flow);
        } else {
            check("flowId", (Long) flow, Long.MAX_VALUE);
        }
        check("count", calls, COUNT_MAX);
        this.flow = flow;
        this.calls = (int) calls;
        this.param = scalar("param", param);
        this.rate = rate;
    }

    /**
     * One call of a flow.
     *
     * @param flowId the flowId of a rule
     * @return the item
     */
    public static Item of(long flowId) {
        return new Item(flowId, 1, null, false);
    }

    /**
     * One call of a flow.
     *
     * @param resource the resource of a rule of the client's namespace
     * @return the item
     */
    public static Item of(String resource) {
        return new Item(Objects.requireNonNull(resource, "resource"), 1, null, false);
    }

    /**
     * An item of acquireAll that asks for calls a second, and holds nothing.
     *
     * @param flowId the flowId of a rule
     * @return the item
     */
    public static Item rate(long flowId) {
        return new Item(flowId, 1, null, true);
    }

    /**
     * An item of acquireAll that asks for calls a second, and holds nothing.
     *
     * @param resource the resource of a rule of the client's namespace
     * @return the item
     */
    public static Item rate(String resource) {
        return new Item(Objects.requireNonNull(resource, "resource"), 1, null, true);
    }

    /**
     * The calls that the token stands for.
     *
     * @param count 1 to 2^31-1
     * @return a changed copy
     */
    public Item count(long count) {
        return new Item(flow, count, param, rate);
    }

    /**
     * The value of the rule's parameter.
     *
     * @param value an integer of at most 64 bits, a Float, Double, Boolean or String; null: none
     * @return a changed copy
     */
    public Item param(Object value) {
        return new Item(flow, calls, value, rate);
    }

    @Override
    public String toString() {
        String value = param == null ? "" : ", param " + show(param);
        return (rate ? "rate of " : "") + "flow " + show(flow) + ", count " + calls + value;
    }

    /** A name in quotes, or a number. */
    static String show(Object flow) {
        return flow instanceof String ? "'" + flow + "'" : String.valueOf(flow);
    }

    /** Servers close a connection for types that they do not know. */
    static Object scalar(String what, Object value) {
        if (value instanceof Integer || value instanceof Short || value instanceof Byte) {
            return ((Number) value).longValue();
        }
        if (value instanceof Double || value instanceof Float) {
            if (Double.isNaN(((Number) value).doubleValue())) {
                throw new BadRequestException(what + " must not be NaN");
            }
            return value;
        }
        if (value instanceof String) {
            Texts.checkUnicode(what, (String) value);
            return value;
        }
        if (value == null || value instanceof Long || value instanceof Boolean) {
            return value;
        }
        String type = value.getClass().getSimpleName();
        throw new BadRequestException(
                what + " must be an integer, a Double, Float, Boolean or String, not " + type);
    }

    private static void checkName(String name) {
        int size = Texts.bytes(name);
        if (size < 1 || size > RESOURCE_BYTES_MAX) {
            throw new BadRequestException(
                    "resource must be 1 to " + RESOURCE_BYTES_MAX + " bytes, not " + size);
        }
        Texts.checkUnicode("resource", name);
    }

    private static void check(String what, long value, long most) {
        if (value < 1 || value > most) {
            throw new BadRequestException(what + " must be 1 to " + most + ", not " + value);
        }
    }
}
