package io.nowcalls;

import java.util.List;
import java.util.Map;

/** The calls that are no acquires. */
final class Calls {
    private Calls() {}

    static final class Ping extends Call {
        Ping() {
            super("ping");
        }

        @Override
        Long decode(Object result) throws WrongAnswer {
            return Check.uint("ledger_ms", Check.array("an answer", result, 1).get(0));
        }
    }

    /** Asks for one map. */
    static final class Row extends Call {
        Row(String method, Object... params) {
            super(method, params);
        }

        @Override
        Map<String, Object> decode(Object result) throws WrongAnswer {
            return Check.map("the answer to " + method, result);
        }
    }

    /** Asks for rows, and the cursor of those behind them. */
    static final class Page extends Call {
        Page(String method, Object... params) {
            super(method, params);
        }

        @Override
        List<Object> decode(Object result) throws WrongAnswer {
            List<Object> page = Check.array("a page", result, 2);
            for (Object row : Check.array("rows", page.get(0), 0)) {
                Check.map("a row", row);
            }
            return page;
        }
    }

    /** Ends whatever a request id stands for; nobody waits for it. */
    static final class Cancel extends Call {
        Cancel(long requestId) {
            super("cancel", requestId);
        }

        @Override
        boolean isPersistent() {
            return true;
        }
    }

    /** Gives a token back. Value: true, or false if the token had ended before. */
    static final class Release extends Call {
        final Held held;
        final boolean leaves; // It does not wait for a server that is not there.

        Release(Held held, Outcome outcome, boolean leaves) {
            super("release", held.tokenId);
            this.held = held;
            this.leaves = leaves;
            if (outcome != Outcome.OK) {
                params.add(Map.of("outcome", outcome.word()));
            }
        }

        @Override
        boolean isPersistent() {
            return true;
        }

        /** Older servers refuse it. */
        void forgetOutcome() {
            params.subList(1, params.size()).clear();
        }

        @Override
        Boolean decode(Object result) throws WrongAnswer {
            // After a first attempt without an answer, "gone" may be the work of that attempt.
            int status = Answers.status("status", Check.array("an answer", result, 1).get(0));
            return status == Answers.RELEASE_OK || attempts > 1;
        }
    }

    /**
     * Renews a token's hold. Value: Kept, or null if the token has ended.
     *
     * <p>Not asked again: the next connection begins with a keep of its own.
     */
    static final class KeepCall extends Call {
        static final class Kept {
            final long holdMs;
            final Terms terms;

            Kept(long holdMs, Terms terms) {
                this.holdMs = holdMs;
                this.terms = terms;
            }
        }

        final Held held;

        KeepCall(Held held) {
            super("keep", held.tokenId);
            this.held = held;
            this.repeatable = false;
        }

        @Override
        Kept decode(Object result) throws WrongAnswer {
            List<Object> parts = Check.array("an answer", result, 2);
            if (Answers.status("status", parts.get(0)) != Answers.OK) {
                return null;
            }
            return new Kept(Check.hold(parts.get(1)), Answers.terms(parts, 2));
        }
    }

    /** Calls a second. Not asked again: each time counts. */
    static final class RateRequest extends Call {
        /** What an answer says. */
        static final class Passed {
            final long remaining;
            final long wait;

            Passed(long remaining, long wait) {
                this.remaining = remaining;
                this.wait = wait;
            }
        }

        final Item item;
        final List<?> values; // null: of all calls.
        final boolean sleep;
        Passed passed;

        RateRequest(Item item, List<?> values, boolean prioritized, boolean sleep) {
            super(values == null ? "request" : "request_param", item.flow, (long) item.calls);
            this.item = item;
            this.values = values;
            this.sleep = sleep;
            this.repeatable = false;
            if (values != null) {
                params.add(values);
            } else if (prioritized) {
                params.add(true);
            }
        }

        @Override
        boolean wantsRoom() {
            return true;
        }

        @Override
        Passed decode(Object result) throws WrongAnswer {
            List<Object> parts = Check.array("an answer", result, 4);
            int status = Answers.status("status", parts.get(0));
            long remaining = Check.integer("remaining", parts.get(1));
            long wait = Check.hold(parts.get(2)) * Moments.MS;
            if (status == Answers.OK || status == Answers.SHOULD_WAIT) {
                return new Passed(remaining, wait);
            }
            String refusedBy = Check.textOrNull("refused_by", parts.get(3));
            throw Answers.refusal(item.flow, status, refusedBy, 0, 0);
        }
    }
}
