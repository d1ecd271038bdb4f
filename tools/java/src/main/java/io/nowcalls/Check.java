package io.nowcalls;

import java.math.BigInteger;
import java.util.List;
import java.util.Map;

/** Checks of values that a server sent: of the type asked for, or WrongAnswer. */
final class Check {
    static final long HOLD_MS_MAX = 1_000_000_000_000L;

    private static final int TEXT_MAX = 1000; // Of a message in an exception.
    private static final double NUMBER_MAX = 1e18;

    private Check() {}

    /** What has more than 63 bits counts as 2^63-1. */
    static long uint(String what, Object value) throws WrongAnswer {
        if (value instanceof BigInteger) { // Of the reader: from 2^63 on.
            return Long.MAX_VALUE;
        }
        return uint63(what, value);
    }

    static long uint63(String what, Object value) throws WrongAnswer {
        if (!(value instanceof Long) || (Long) value < 0) {
            throw WrongAnswer.about(what, value);
        }
        return (Long) value;
    }

    static long integer(String what, Object value) throws WrongAnswer {
        if (!(value instanceof Long)) {
            throw WrongAnswer.about(what, value);
        }
        return (Long) value;
    }

    static long hold(Object value) throws WrongAnswer {
        return Math.min(uint("hold_ms", value), HOLD_MS_MAX);
    }

    static String text(String what, Object value) throws WrongAnswer {
        if (!(value instanceof String)) {
            throw WrongAnswer.about(what, value);
        }
        String text = (String) value;
        return text.length() <= TEXT_MAX ? text : text.substring(0, TEXT_MAX);
    }

    static String textOrNull(String what, Object value) throws WrongAnswer {
        return value == null ? null : text(what, value);
    }

    @SuppressWarnings("unchecked")
    static List<Object> array(String what, Object value, int least) throws WrongAnswer {
        if (!(value instanceof List) || ((List<?>) value).size() < least) {
            throw WrongAnswer.about(what, value);
        }
        return (List<Object>) value;
    }

    @SuppressWarnings("unchecked")
    static Map<String, Object> map(String what, Object value) throws WrongAnswer {
        if (!(value instanceof Map)) {
            throw WrongAnswer.about(what, value);
        }
        return (Map<String, Object>) value;
    }

    /** Of a field that may be missing or of another type. */
    static double number(Object value, double otherwise) {
        double number = value instanceof Number ? ((Number) value).doubleValue() : Double.NaN;
        if (Double.isNaN(number) || Double.isInfinite(number)) {
            return otherwise;
        }
        return Math.max(Math.min(number, NUMBER_MAX), -NUMBER_MAX);
    }
}
