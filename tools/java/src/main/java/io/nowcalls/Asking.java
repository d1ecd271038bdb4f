package io.nowcalls;

import static io.nowcalls.Moments.MS;
import static io.nowcalls.Moments.after;

import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * The half of a session that asks calls, and makes outcomes of answers, refusals and silence.
 *
 * <p>Thread: the session's.
 */
abstract class Asking {
    static final Logger LOGGER = System.getLogger("io.nowcalls");

    enum State {
        OFFLINE,
        GREETING,
        READY,
        STOPPED
    }

    private static final int RULES_ASKED_MAX = 64;
    private static final long RETRY_PAUSE_MIN = MS;
    private static final long RETRY_PAUSE = 10 * MS; // Doubled with each refusal.
    private static final int RETRY_DOUBLINGS_MAX = 6;
    private static final long ANSWER_MIN = 20 * MS;
    // Refusals that time does not undo. Words of later servers are none of them.
    private static final Set<String> FINAL =
            new HashSet<>(
                    Arrays.asList(
                            null, "draining", "queue_timeout", "cancelled", "superseded",
                            "request_id", "over_level", "rate"));

    final Config config;
    final Dialing dialing;
    final Surroundings outside;
    final Fallback fallback;
    final Contact contact;
    final CallTable calls = new CallTable();
    final HeldTokens held = new HeldTokens();
    final Timers timers = new Timers();
    final Map<Count, Long> counts = new EnumMap<>(Count.class);
    List<Held> lost = new ArrayList<>();
    boolean closing;
    String ended; // Why; null: not yet.
    State state = State.OFFLINE;
    boolean withOptions = true; // The server is not known to be an older one.
    Exchange exchange = new Exchange();
    boolean down; // All addresses have failed since the last connection.
    String whyOffline;
    BadRequestException denied; // Of all calls, until a server accepts hello.
    long identifyMsgid; // Until it is answered: the server may yet say that it is wrong.
    long sessionsOnline = 1;
    private final Rules rules = new Rules();
    // The rules that are asked for, with the acquires that wait for them.
    private final Map<Object, List<AcquireCall>> rulesAsked = new HashMap<>();

    Asking(Config config, Surroundings outside, long now) {
        this.config = config;
        this.outside = outside;
        this.dialing = new Dialing(config.addresses, now, outside.uniform);
        this.fallback = new Fallback(config.fallback, config.localLevels, rules);
        this.contact = new Contact(now, outside.clock);
        this.whyOffline = dialing.name() + " is not connected yet";
        for (Count count : Count.values()) {
            counts.put(count, 0L);
        }
    }

    boolean isReady() {
        return state == State.READY;
    }

    final void count(Count what) {
        counts.merge(what, 1L, Long::sum);
    }

    // Callers.

    /** Asks a call with the client's timeout. */
    void ask(Call call, long now) {
        ask(call, now, config.timeout);
    }

    /** Asks a call, now or on the next connection. Its outcome is set later, or within. */
    void ask(Call call, long now, long timeout) {
        begin(call, now, timeout);
        if (call instanceof AcquireCall) {
            AcquireCall acquire = (AcquireCall) call;
            acquire.requestId = outside.requestIds.getAsLong();
            acquire.startedAt = now;
            if (fallback.followsRules()) {
                acquire.items.forEach(item -> askRule(item.flow, now));
            }
        } else if (call instanceof Calls.RateRequest && fallback.isActive()) {
            askRule(((Calls.RateRequest) call).item.flow, now);
        }
        submit(call, now);
    }

    /** Ends a call whose caller will not take its outcome: a permit is given back. */
    void abandon(Call call, long now) {
        call.left = true;
        giveUp(call, now, "its caller left");
        Object value = call.value;
        call.value = null;
        for (Object permit : value instanceof List ? (List<?>) value : Arrays.asList(value)) {
            if (permit instanceof Permit) {
                drop(((Permit) permit).held, now);
            }
        }
    }

    /** Gives a token back. A second time it only says whether the token was lost. */
    void release(Calls.Release call, long now, long timeout) {
        begin(call, now, timeout);
        letGo(call, now);
        if (call.leaves && !isReady()) {
            giveUp(call, now, whyOffline);
        }
    }

    /** Gives back a token of which nobody waits for the end. */
    void drop(Held token, long now) {
        if (!token.isOpen()) {
            return;
        }
        if (token.dropped) {
            LOGGER.log(
                    Level.WARNING,
                    "token {0} of flow {1} was dropped, so it is released",
                    String.valueOf(token.tokenId),
                    Item.show(token.item.flow));
        }
        letGo(new Calls.Release(token, Outcome.OK, false), now);
    }

    private void begin(Call call, long now, long timeout) {
        call.deadline = after(now, timeout + call.patience());
        calls.begin(call);
    }

    private void letGo(Calls.Release call, long now) {
        Held token = call.held;
        if (!token.isOpen()) {
            calls.settle(call, !token.isLost(), null);
            return;
        }
        boolean isOver = token.foundLost || now >= token.validUntil();
        if (token.state == Held.State.HELD && isOver) {
            lose(token, token.reason(), Held.State.LOST, now);
        }
        token.grip = null; // Nobody is to be told.
        token.state = token.local ? Held.State.ENDED : Held.State.RELEASING;
        if (token.local) {
            fallback.leave(token);
            calls.settle(call, true, null);
            return;
        }
        if (held.remove(token)) {
            fallback.leave(token);
        }
        submit(call, now);
        cancelStray(token, now); // Behind the release.
    }

    // Sending.

    final void submit(Call call, long now) {
        if (ended != null) {
            calls.settle(call, null, call.noAnswer(ended));
        } else if (closing && call.wantsRoom()) {
            calls.settle(call, null, new BadRequestException("the client is closed"));
        } else if (closing && !call.isPersistent()) {
            calls.settle(call, null, call.noAnswer("the client is closed"));
        } else if (isReady()) {
            send(call, now);
        } else if (denied != null && call.wantsRoom()) {
            fail(call, denied.again(denied.getMessage()), now);
        } else if (fallsBackAtOnce(call, now)) {
            fail(call, call.noAnswer(whyOffline), now);
        } else {
            calls.queue(call);
        }
    }

    final void send(Call call, long now) {
        long msgid;
        try {
            if (call instanceof Calls.Release && !withOptions) {
                ((Calls.Release) call).forgetOutcome(); // An older server would refuse it.
            }
            msgid = exchange.request(call.method, call.params(now));
        } catch (BadRequestException error) {
            fail(call, error, now);
            return;
        }
        calls.sent(msgid, call);
        call.attempts++;
        call.unsettled = true;
        call.sentAt = now;
    }

    // Answers.

    final void answered(Call call, Object error, Object result, long now) throws WrongAnswer {
        if (call instanceof Rules.Ask) {
            Rules.Ask ask = (Rules.Ask) call;
            ruleAnswered(ask, error == null ? ask.decode(result) : Collections.emptyMap(), now);
            return;
        }
        Object value = null;
        NowcallsException failure = null;
        try {
            if (error != null) {
                throw Answers.errorOf(error);
            }
            value = call.decode(result);
        } catch (Call.AskAgain again) {
            call.unsettled = false;
            if (!call.done) {
                calls.queue(call);
            }
            return;
        } catch (Call.TokenGone gone) {
            call.strayed = true;
            failure =
                    new UnavailableException(
                            call.method + ": a token ended before its answer came");
        } catch (NowcallsException thrown) {
            failure = thrown;
        }
        if (call instanceof AcquireCall && failure == null) {
            granted((AcquireCall) call, (Granted) value, now);
            return;
        }
        call.unsettled = false;
        settleAnswered(call, value, failure, now);
    }

    private void settleAnswered(Call call, Object value, NowcallsException failure, long now) {
        if (call instanceof AcquireCall) {
            refused((AcquireCall) call, failure, now);
        } else if (call instanceof Calls.KeepCall) {
            kept((Calls.KeepCall) call, (Calls.KeepCall.Kept) value, failure, now);
        } else if (call instanceof Calls.Release) {
            Held token = ((Calls.Release) call).held;
            token.state = Held.State.ENDED;
            if (Boolean.FALSE.equals(value) && !token.isLost()) {
                token.toldLost = true;
                count(Count.LOST);
            }
            calls.settle(call, Boolean.TRUE.equals(value) && !token.isLost(), failure);
        } else if (failure != null) {
            fail(call, failure, now);
        } else if (call instanceof Calls.RateRequest) {
            Calls.RateRequest request = (Calls.RateRequest) call;
            request.passed = (Calls.RateRequest.Passed) value;
            settleAt(after(now, request.passed.wait), call, request.sleep, now);
        } else {
            calls.settle(call, value, null);
        }
    }

    private void granted(AcquireCall call, Granted answer, long now) throws WrongAnswer {
        List<Long> tokens = answer.tokens();
        boolean isTwice = new HashSet<>(tokens).size() < tokens.size();
        if (!call.done && (isTwice || tokens.stream().anyMatch(id -> held.find(id) != null))) {
            throw new WrongAnswer("an acquire was answered with a token that is held already");
        }
        call.unsettled = false;
        if (call.done) {
            return; // Given up: its cancel is on the way behind it.
        }
        call.waitUntil = Math.max(call.waitUntil, after(now, answer.longestWait()));
        if (!call.confirmed && isLate(call, answer.grants, now)) {
            call.confirmed = true; // A second answer knows better what is left of its hold.
            send(call, now);
            return;
        }
        boolean mayArrive = call.strayed && !tokens.isEmpty();
        Stray stray = mayArrive ? new Stray(call.requestId, tokens) : null;
        for (int i = 0; i < answer.grants.size(); i++) {
            Granted.Grant grant = answer.grants.get(i);
            if (grant.tokenId != 0) {
                Held token = newHeld(call, call.items.get(i));
                token.tokenId = grant.tokenId;
                token.fence = grant.fence;
                token.setTerms(grant.terms);
                token.nowCalls = answer.nowCalls;
                token.level = answer.level;
                token.grantedAt = call.sentAt;
                token.confirm(grant.holdMs, call.sentAt);
                token.stray = stray;
                token.planKeep(call.sentAt);
                held.add(token);
                held.plan(token);
                fallback.enter(token);
                call.granted.add(token);
            }
        }
        settleAt(call.waitUntil, call, call.sleep, now);
    }

    /** Settles a call that passed: when its caller need not sleep any more, if it is to. */
    private void settleAt(long at, Call call, boolean sleep, long now) {
        if (sleep && now < at && at <= call.deadline) {
            call.wakeAt = at;
            timers.add(at, then -> settlePassed(call, then));
        } else {
            settlePassed(call, now);
        }
    }

    private void settlePassed(Call call, long now) {
        if (call.done) {
            return;
        }
        if (call instanceof Calls.RateRequest) {
            Calls.RateRequest.Passed passed = ((Calls.RateRequest) call).passed;
            long wait = call.sleeps() ? Math.max(0, call.wakeAt - now) : passed.wait;
            calls.settle(call, new Rate(passed.remaining, wait), null);
            return;
        }
        AcquireCall acquire = (AcquireCall) call;
        List<Permit> permits = new ArrayList<>();
        int next = 0;
        for (Item item : acquire.items) {
            Permit permit = null;
            if (!item.rate) {
                permit = outside.makePermit.apply(acquire.granted.get(next++));
                permit.setWait(Math.max(0, acquire.waitUntil - now));
            }
            permits.add(permit);
        }
        acquire.granted = new ArrayList<>();
        calls.settle(call, acquire.outcome(permits), null);
    }

    /** Whether less than half of a token's validity may be left, since the acquire waited. */
    private boolean isLate(AcquireCall call, List<Granted.Grant> grants, long now) {
        for (Granted.Grant grant : grants) {
            if (grant.tokenId != 0 && (now - call.sentAt) * 2 > Held.span(grant.holdMs)) {
                return true;
            }
            Terms terms = grant.terms;
            if (terms != null && (now - contact.at) * 2 > Held.span(terms.offlineMs)) {
                return true;
            }
        }
        return false;
    }

    private Held newHeld(AcquireCall call, Item item) {
        Held token = new Held(item, contact);
        token.onLost = call.onLost;
        token.keep = call.keep;
        return token;
    }

    private void kept(
            Calls.KeepCall call,
            Calls.KeepCall.Kept kept,
            NowcallsException failure,
            long now) {
        Held token = call.held;
        if (token.toldLost) {
            kept = null; // To its owner it stays lost.
        } else if (token.state == Held.State.HELD && held.find(token.tokenId) == token) {
            keptHeld(call, kept, failure, now);
        }
        calls.settle(call, kept, failure);
    }

    private void keptHeld(
            Calls.KeepCall call,
            Calls.KeepCall.Kept kept,
            NowcallsException failure,
            long now) {
        Held token = call.held;
        if (kept == null && failure == null) {
            lose(token, null, Held.State.ENDED, now);
            return;
        }
        if (kept != null) {
            count(Count.KEPT);
            if (call.sentAt < token.confirmedAt()) {
                return; // Answers may cross: a later keep has told what holds.
            }
            token.confirm(kept.holdMs, call.sentAt);
            if (kept.terms != null) { // An older server tells none: those of before hold.
                held.changeTerms(token, kept.terms);
            }
        }
        token.planKeep(failure == null ? call.sentAt : now);
        held.plan(token);
    }

    // The client's half of rules.

    /** Asks for a rule that is not known or old. False: it is known, or too many are asked. */
    private boolean askRule(Object flow, long now) {
        if (rulesAsked.containsKey(flow)) {
            return true;
        }
        boolean isNone = flow instanceof Long && (Long) flow < 1;
        if (rulesAsked.size() >= RULES_ASKED_MAX || isNone || !rules.isStale(flow, now)) {
            return false;
        }
        rulesAsked.put(flow, new ArrayList<>());
        submit(new Rules.Ask(flow), now);
        return true;
    }

    private void ruleAnswered(Rules.Ask call, Map<Boolean, Rule> found, long now) {
        call.unsettled = false;
        rules.learn(call.flow, found, now);
        List<AcquireCall> waiting = rulesAsked.remove(call.flow);
        for (AcquireCall acquire : waiting == null ? new ArrayList<AcquireCall>() : waiting) {
            if (!acquire.done) {
                tryAgain(acquire, now);
            }
        }
    }

    private void refused(AcquireCall call, NowcallsException failure, long now) {
        RefusedException refusal =
                failure instanceof RefusedException ? (RefusedException) failure : null;
        boolean isBlocked = refusal != null && refusal.status() == Answers.BLOCKED;
        if (!isBlocked || !call.prioritized || FINAL.contains(refusal.refusedBy())) {
            fail(call, failure, now);
            return;
        }
        if (call.done) {
            return;
        }
        call.refusal = refusal;
        if (askRule(refusal.flow, now)) {
            rulesAsked.get(refusal.flow).add(call);
        } else {
            tryAgain(call, now);
        }
    }

    /**
     * As the rule says of prioritized acquires that are refused.
     *
     * <p>No attempt is made that leaves no time for its answer: the refusal would become an unknown
     * outcome, and a fallback could grant.
     */
    private void tryAgain(AcquireCall call, long now) {
        Object flow = call.refusal.flow;
        Rule rule = rules.find(flow, call.isByValue(flow));
        int strategy = rule == null ? 0 : rule.acquireRefuse;
        boolean isAllowed =
                strategy == Rule.UNTIL_DEADLINE
                        || (strategy == Rule.ONCE_MORE && call.refusals == 0);
        long bound = RETRY_PAUSE << Math.min(call.refusals, RETRY_DOUBLINGS_MAX);
        long pause = outside.uniform.applyAsLong(RETRY_PAUSE_MIN, bound);
        long answer = Math.max(ANSWER_MIN, 2 * (now - call.sentAt));
        if (!isAllowed || now + pause + answer > call.deadline) {
            fail(call, call.refusal, now);
            return;
        }
        call.refusals++;
        timers.add(
                after(now, pause),
                then -> {
                    if (!call.done) {
                        submit(call, then);
                    }
                });
    }

    // No answer.

    /** Sets the outcome of a call whose time is over. Cancels an acquire that was sent. */
    final void giveUp(Call call, long now, String reason) {
        if (call.done) {
            return;
        }
        if (call.sleeps() && !call.left) {
            settlePassed(call, now); // It slept, and its calls are counted.
            return;
        }
        NowcallsException error = call.noAnswer(reason);
        boolean wasSent = call.unsettled;
        if (!call.isPersistent()) {
            calls.dequeue(call);
        }
        if (call instanceof AcquireCall) {
            AcquireCall acquire = (AcquireCall) call;
            if (wasSent) {
                call.strayed = true;
            } else if (acquire.refusal != null) {
                error = acquire.refusal;
            }
            acquire.granted.forEach(token -> drop(token, now));
        }
        fail(call, error, now);
        boolean isSilent = wasSent && contact.heardAt <= call.sentAt;
        if (isReady() && isSilent && !contact.probes()) {
            ping(now);
        }
    }

    /** Sets the outcome of a call that got no answer, or an error, as the fallback has it. */
    final void fail(Call call, NowcallsException error, long now) {
        if (call.done) {
            return;
        }
        AcquireCall acquire = call instanceof AcquireCall ? (AcquireCall) call : null;
        if (acquire != null && (acquire.strayed || acquire.confirmed)) {
            // An attempt that arrives only now would be granted to nobody. A grant that came late
            // is there.
            cancel(acquire.requestId, now);
        }
        Object value = null;
        if (fallsBack(call, error)) {
            try {
                value = decide(call, now);
            } catch (RefusedException refused) {
                error = refused;
            }
        }
        calls.settle(call, value, value == null ? error : null);
    }

    private boolean fallsBack(Call call, NowcallsException error) {
        if (!call.wantsRoom() || call.left || closing || !fallback.isActive()) {
            return false;
        }
        if (denied != null || identifyMsgid != 0) {
            return false;
        }
        int status = error instanceof RefusedException ? ((RefusedException) error).status() : 0;
        boolean isFull = status == Answers.TOO_MANY_REQUEST || status == Answers.FAIL;
        return isFull
                || error instanceof UnavailableException
                || error instanceof OutcomeUnknownException;
    }

    private boolean fallsBackAtOnce(Call call, long now) {
        boolean noServer = down && identifyMsgid == 0;
        return noServer && fallback.isActive() && call.wantsRoom() && !call.mayWait(now);
    }

    private Object decide(Call call, long now) {
        if (call instanceof Calls.RateRequest) {
            return fallback.decideRate((Calls.RateRequest) call, sessionsOnline, now);
        }
        AcquireCall acquire = (AcquireCall) call;
        List<Held> taken = fallback.decideAcquire(acquire, sessionsOnline, now, this::newHeld);
        if (taken == null) {
            return null;
        }
        List<Permit> permits = new ArrayList<>();
        for (Held token : taken) {
            permits.add(token == null ? null : outside.makePermit.apply(token));
        }
        return acquire.outcome(permits);
    }

    private void cancel(long requestId, long now) {
        count(Count.CANCELLED);
        submit(new Calls.Cancel(requestId), now);
    }

    /** When the last token of an acquire ends, an attempt that arrives later is cancelled. */
    final void cancelStray(Held token, long now) {
        Stray stray = token.stray;
        token.stray = null;
        if (stray != null) {
            stray.tokens.remove(token.tokenId);
            if (stray.tokens.isEmpty()) {
                cancel(stray.requestId, now);
            }
        }
    }

    /** Ends the validity of a token. */
    abstract void lose(Held token, String reason, Held.State state, long now);

    /** Asks for a sign of life. */
    abstract void ping(long now);
}
