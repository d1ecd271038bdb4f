package io.nowcalls;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;

/** An acquire of one token for each item that is no rate, of all or of none. */
final class AcquireAllCall extends AcquireCall {
    private static final int ITEMS_MAX = 64;

    AcquireAllCall(
            List<Item> items, long wait, boolean prioritized, boolean sleep, long holdMs) {
        super("acquire_all", checked(items), wait, prioritized, holdMs);
        this.sleep = sleep;
        // A repeat of rates alone takes anew.
        this.repeatable = !items.stream().allMatch(item -> item.rate);
    }

    private static List<Item> checked(List<Item> items) {
        if (items.isEmpty() || items.size() > ITEMS_MAX) {
            throw new BadRequestException(
                    "acquireAll takes 1 to " + ITEMS_MAX + " items, not " + items.size());
        }
        return List.copyOf(items);
    }

    @Override
    List<Object> params(long now) {
        List<Object> asked = new ArrayList<>();
        for (Item item : items) {
            List<Object> one = new ArrayList<>(Arrays.asList(item.flow, (long) item.calls));
            if (item.rate) {
                one.addAll(Arrays.asList(item.param, 1L));
            } else if (item.param != null) {
                one.add(item.param);
            }
            asked.add(one);
        }
        return Arrays.asList(asked, options(now, null));
    }

    @Override
    Granted decode(Object result) throws WrongAnswer, AskAgain, TokenGone {
        List<Object> parts = Check.array("an answer", result, 6);
        int status = Answers.status("status", parts.get(0));
        long nowCalls = Check.uint("now_calls", parts.get(4));
        long level = Check.uint("level", parts.get(5));
        if (status == Answers.OK) {
            return new Granted(grants(parts.get(1)), nowCalls, level);
        }
        if (status == Answers.NOT_AVAILABLE) {
            throw new AskAgain();
        }
        String refusedBy = Check.textOrNull("refused_by", parts.get(2));
        if ("request_id".equals(refusedBy) && attempts > 1) {
            throw new TokenGone();
        }
        Object flow = asked(Check.integer("flow_id", parts.get(3)));
        throw Answers.refusal(flow, status, refusedBy, nowCalls, level);
    }

    private List<Granted.Grant> grants(Object answer) throws WrongAnswer {
        List<Object> tokens = Check.array("tokens", answer, 0);
        if (tokens.size() != items.size()) {
            throw new WrongAnswer(tokens.size() + " tokens for " + items.size() + " items");
        }
        List<Granted.Grant> grants = new ArrayList<>();
        for (int i = 0; i < tokens.size(); i++) {
            List<Object> token = Check.array("a token", tokens.get(i), 3);
            Terms terms = Answers.terms(token, 3);
            grants.add(
                    Granted.Grant.of(
                            items.get(i), token.get(0), token.get(1), token.get(2), terms));
        }
        return grants;
    }

    /** The name that was asked for, where the number of a refusal leaves no doubt. */
    private Object asked(long flowId) {
        Set<Object> flows = items.stream().map(item -> item.flow).collect(Collectors.toSet());
        Set<Object> names = new HashSet<>(flows);
        names.removeIf(flow -> !(flow instanceof String));
        boolean isClear = names.size() == 1 && flowId != 0 && !flows.contains(flowId);
        return isClear ? names.iterator().next() : (Object) flowId;
    }

    @Override
    Object outcome(List<Permit> permits) {
        return permits;
    }
}
