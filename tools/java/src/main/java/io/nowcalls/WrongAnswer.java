package io.nowcalls;

/** The peer does not speak the protocol. */
final class WrongAnswer extends Exception {
    private static final long serialVersionUID = 1;

    WrongAnswer(String message) {
        super(message, null, false, false);
    }

    static WrongAnswer about(String what, Object value) {
        String shown = String.valueOf(value);
        return new WrongAnswer(what + " is " + shown.substring(0, Math.min(60, shown.length())));
    }
}
