package io.nowcalls;

/**
 * No rule has this flow, so nothing limits the call. The caller decides what that means.
 */
public final class NoRuleException extends RefusedException {
    private static final long serialVersionUID = 1;

    NoRuleException(String message, Object flow, int status) {
        super(message, flow, status, null, 0, 0, false);
    }
}
