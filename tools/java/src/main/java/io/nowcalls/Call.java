package io.nowcalls;

import java.util.ArrayList;
import java.util.List;

/**
 * One request and its outcome: a value or an exception, set once.
 *
 * <p>Thread: the session's, once a call is asked.
 */
abstract class Call {
    /** The server ends, and the call was not carried out: ask again on the next connection. */
    static final class AskAgain extends Exception {
        private static final long serialVersionUID = 1;

        AskAgain() {
            super(null, null, false, false);
        }
    }

    /** An attempt before was granted, and some of its tokens have ended since. */
    static final class TokenGone extends Exception {
        private static final long serialVersionUID = 1;

        TokenGone() {
            super(null, null, false, false);
        }
    }

    final String method;
    final List<Object> params;
    boolean repeatable = true; // Asked again on the next connection when this one breaks.
    long number; // The order in which calls were asked; 0: not yet.
    long deadline = Moments.NEVER; // When the session gives it up.
    int attempts; // How often it was sent.
    boolean unsettled; // It was sent, and no answer told whether it was carried out.
    boolean strayed; // An attempt was left on a connection that broke, and may still arrive.
    boolean left; // Its caller will not take the outcome.
    long wakeAt = Moments.NEVER; // When its caller, who sleeps, is to have the outcome.
    long sentAt;
    boolean done;
    Object value;
    NowcallsException error;
    Runnable notify; // Called once the outcome is set.

    Call(String method, Object... params) {
        this.method = method;
        this.params = new ArrayList<>(java.util.Arrays.asList(params));
    }

    /** Asked until a server answers, although nobody waits any more. */
    boolean isPersistent() {
        return false;
    }

    /** May fall back, but not while it may wait. */
    boolean wantsRoom() {
        return false;
    }

    /** Microseconds that the server may take, beyond the timeout. */
    long patience() {
        return 0;
    }

    /** Whether its caller said that it may wait for room beyond `now`. */
    boolean mayWait(long now) {
        return false;
    }

    boolean sleeps() {
        return wakeAt != Moments.NEVER;
    }

    List<Object> params(long now) {
        return params;
    }

    /** The value of an answer, or throws what it says instead. */
    Object decode(Object result) throws WrongAnswer, AskAgain, TokenGone {
        return result;
    }

    void settle(Object value, NowcallsException error) {
        if (done) {
            return;
        }
        this.done = true;
        this.value = value;
        this.error = error;
        if (notify != null) {
            notify.run();
        }
    }

    /** The exception for a call that gets no answer any more. */
    NowcallsException noAnswer(String reason) {
        if (unsettled) {
            return new OutcomeUnknownException(
                    method + ": no answer, perhaps it was carried out: " + reason);
        }
        return new UnavailableException(method + ": not carried out: " + reason);
    }
}
