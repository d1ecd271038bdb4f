package io.nowcalls;

/**
 * What acquires and requests do when no server is reached, it does not answer in time, answers that
 * it failed, or is full (TOO_MANY_REQUEST).
 */
public enum FallbackMode {
    /** {@link #LOCAL} or {@link #PASS}, as the rule's fallbackToLocalWhenFail says. */
    RULE,
    /** Admits the rule's count divided by the clients last known to be online. */
    LOCAL,
    /** Admits everything. */
    PASS,
    /** Throws. */
    FAIL;

    String word() {
        return name().toLowerCase(java.util.Locale.ROOT);
    }
}
