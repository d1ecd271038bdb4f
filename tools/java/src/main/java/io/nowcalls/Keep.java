package io.nowcalls;

/** Whether a permit is kept in the background once a third of its hold is over. */
public enum Keep {
    /**
     * As the rule's resourceTimeoutStrategy says. 0: not kept. 1: released at resourceTimeout, and
     * lost. 2: kept.
     */
    RULE,
    /** Kept, whatever the rule says. */
    ALWAYS,
    /** Not kept. */
    OFF
}
