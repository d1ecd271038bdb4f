package io.nowcalls;

/** Base of all exceptions that a client throws on purpose. */
public class NowcallsException extends RuntimeException {
    private static final long serialVersionUID = 1;

    NowcallsException(String message) {
        super(message);
    }
}
