package io.nowcalls;

/** The server refused. Nothing is held and nothing is counted. */
public class RefusedException extends NowcallsException {
    private static final long serialVersionUID = 1;

    /** A Long or a String. */
    final transient Object flow;

    /** The flow, as text. */
    private final String flowText;

    /** Of the protocol. */
    private final int status;

    /** A word of the protocol. */
    private final String refusedBy;

    /** Calls in progress. */
    private final long nowCalls;

    /** Their limit. */
    private final long level;

    /** Of the fallback. */
    private final boolean local;

    RefusedException(
            String message,
            Object flow,
            int status,
            String refusedBy,
            long nowCalls,
            long level,
            boolean local) {
        super(message);
        this.flow = flow;
        this.flowText = String.valueOf(flow);
        this.status = status;
        this.refusedBy = refusedBy;
        this.nowCalls = nowCalls;
        this.level = level;
        this.local = local;
    }

    /**
     * The flow in the way, by number or by name.
     *
     * @return "0" where no one flow is in the way
     */
    public String flow() {
        return flowText;
    }

    /**
     * The status of the protocol.
     *
     * @return 1 BLOCKED, -2 TOO_MANY_REQUEST, or 3 for {@link NoRuleException}
     */
    public int status() {
        return status;
    }

    /**
     * The protocol's word for the limit, such as "level" or "queue_timeout".
     *
     * @return null if the answer has none
     */
    public String refusedBy() {
        return refusedBy;
    }

    /**
     * Calls in progress under the rule, or of the parameter's value.
     *
     * @return 0 where the answer has none
     */
    public long nowCalls() {
        return nowCalls;
    }

    /**
     * The limit of these calls.
     *
     * @return 0 where the answer has none
     */
    public long level() {
        return level;
    }

    /**
     * Whether the fallback of this process refused, not the server.
     *
     * @return true for the fallback
     */
    public boolean isLocal() {
        return local;
    }
}
