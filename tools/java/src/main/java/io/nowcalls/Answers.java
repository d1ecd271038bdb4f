package io.nowcalls;

import java.util.List;

/** What answers say: errors, refusals and terms, with the numbers of PROTOCOL.md. */
final class Answers {
    static final int BAD_REQUEST = -4;
    static final int TOO_MANY_REQUEST = -2;
    static final int FAIL = -1;
    static final int OK = 0;
    static final int BLOCKED = 1;
    static final int SHOULD_WAIT = 2;
    static final int NO_RULE_EXISTS = 3;
    static final int NOT_AVAILABLE = 5;
    static final int RELEASE_OK = 6;

    static final int MALFORMED = 1;
    static final int UNKNOWN_METHOD = 2;
    static final int BAD_PARAMS = 3;
    static final int HELLO_STATE = 4;
    static final int UNSUPPORTED = 6;
    static final int PERMISSION = 9;

    private Answers() {}

    /** The exception for `error` of a response. What it answers was not carried out. */
    static NowcallsException errorOf(Object answer) throws WrongAnswer {
        List<Object> parts = Check.array("an error", answer, 3);
        int code = status("an error code", parts.get(0));
        String message =
                Check.text("an error", parts.get(1)) + ": " + Check.text("an error", parts.get(2));
        switch (code) {
            case PERMISSION:
                return new PermissionDeniedException(message, code);
            case MALFORMED:
            case UNKNOWN_METHOD:
            case BAD_PARAMS:
            case HELLO_STATE:
            case UNSUPPORTED:
                return new BadRequestException(message, code);
            default: // OVERLOADED, CONFLICT, INTERNAL, or of a later server.
                return new UnavailableException(message);
        }
    }

    /** The exception for a status that is neither OK nor NOT_AVAILABLE. */
    static NowcallsException refusal(
            Object flow, int status, String refusedBy, long nowCalls, long level) {
        String shown = "flow " + Item.show(flow);
        if (status == NO_RULE_EXISTS) {
            return new NoRuleException(shown + " has no rule", flow, status);
        }
        if (status == BAD_REQUEST) {
            String reason = refusedBy == null ? "" : ", refused by " + refusedBy;
            return new BadRequestException(
                    shown + ": the server calls the request wrong" + reason);
        }
        String by = refusedBy == null ? String.valueOf(status) : refusedBy;
        String full =
                level > 0 || nowCalls > 0
                        ? ": " + nowCalls + " of " + level + " in progress"
                        : "";
        return new RefusedException(
                shown + " refused by " + by + full, flow, status, refusedBy, nowCalls, level,
                false);
    }

    static int status(String what, Object value) throws WrongAnswer {
        long status = Check.integer(what, value);
        if (status != (int) status) {
            throw WrongAnswer.about(what, value);
        }
        return (int) status;
    }

    /** null: an older server. */
    static Terms terms(List<Object> answer, int index) throws WrongAnswer {
        if (answer.size() <= index || answer.get(index) == null) {
            return null;
        }
        List<Object> parts = Check.array("terms", answer.get(index), 3);
        return new Terms(
                Check.uint("a strategy", parts.get(0)),
                Check.hold(parts.get(1)),
                Check.hold(parts.get(2)));
    }
}
