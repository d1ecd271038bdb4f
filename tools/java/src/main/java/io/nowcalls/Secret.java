package io.nowcalls;

import java.util.function.Supplier;

/**
 * What a client shows its server, which knows the client by it. Nobody else sees it: no exception
 * of this class has the secret.
 */
final class Secret {
    static final String PLAIN =
            "the secret needs TLS, or a server on this machine: over a plain connection anybody on"
                    + " the way could read it";

    private static final int BYTES_MAX = 256;

    private final String text;
    private final Supplier<String> source;

    private Secret(String text, Supplier<String> source) {
        this.text = text;
        this.source = source;
    }

    static Secret of(String text) {
        String wrong = wrong(text);
        if (wrong != null) {
            throw new BadRequestException("secret " + wrong);
        }
        return new Secret(text, null);
    }

    /** source: tells the secret anew for each connection. */
    static Secret of(Supplier<String> source) {
        return new Secret(null, source);
    }

    /** Throws BadRequestException if the function fails. */
    String read() {
        if (source == null) {
            return text;
        }
        String value;
        try {
            value = source.get();
        } catch (Throwable error) { // Its text may have the secret.
            throw new BadRequestException(
                    "secret: its function raised " + error.getClass().getSimpleName());
        }
        String wrong = wrong(value);
        if (wrong != null) {
            throw new BadRequestException(
                    "secret: its function returned what is no secret: it " + wrong);
        }
        return value;
    }

    /** null: nothing. */
    static String wrong(String value) {
        if (value == null) {
            return "must be a String, not null";
        }
        if (value.isEmpty() || Texts.bytes(value) > BYTES_MAX) {
            return "must have 1 to " + BYTES_MAX + " bytes";
        }
        if (Texts.hasControls(value) || Texts.hasSurrogates(value)) {
            return "must not have control characters, such as the end of a line, or surrogates";
        }
        return null;
    }

    @Override
    public String toString() {
        return "Secret";
    }
}
