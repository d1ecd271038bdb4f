package io.nowcalls;

/**
 * The server does not let this client in, or not to this flow. No fallback admits the call.
 */
public final class PermissionDeniedException extends BadRequestException {
    private static final long serialVersionUID = 1;

    PermissionDeniedException(String message, int code) {
        super(message, code);
    }

    @Override
    PermissionDeniedException again(String text) {
        return new PermissionDeniedException(text, code());
    }
}
