package io.nowcalls;

/** No server could be asked in time. The request was surely not carried out. */
public final class UnavailableException extends NowcallsException {
    private static final long serialVersionUID = 1;

    UnavailableException(String message) {
        super(message);
    }
}
