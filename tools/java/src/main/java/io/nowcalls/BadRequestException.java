package io.nowcalls;

/**
 * The caller's own fault: wrong arguments, a closed client, or a server that is too old for it.
 */
public class BadRequestException extends NowcallsException {
    private static final long serialVersionUID = 1;

    /** Of the protocol. */
    private final int code;

    BadRequestException(String message) {
        this(message, 0);
    }

    BadRequestException(String message, int code) {
        super(message);
        this.code = code;
    }

    /**
     * The error code of the protocol.
     *
     * @return 0 if no server answered
     */
    public int code() {
        return code;
    }

    /** Returns the same for another call, with this text. */
    BadRequestException again(String text) {
        return new BadRequestException(text, code);
    }
}
