package io.nowcalls;

/**
 * The request was sent, and its answer did not come in time. Perhaps it was carried out.
 *
 * <p>The client cancels an acquire as soon as it can, so that no token stays behind.
 */
public final class OutcomeUnknownException extends NowcallsException {
    private static final long serialVersionUID = 1;

    OutcomeUnknownException(String message) {
        super(message);
    }
}
