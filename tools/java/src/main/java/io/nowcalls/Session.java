package io.nowcalls;

import static io.nowcalls.Moments.NEVER;
import static io.nowcalls.Moments.SECOND;
import static io.nowcalls.Moments.after;

import java.lang.System.Logger.Level;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The protocol of one client, without sockets, threads or clocks.
 *
 * <p>Its owner dials when {@code dialing.at} has come, and sends what is in {@code output}. It
 * tells the session of the connection (connected, connectFailed, received, disconnected) and of
 * time (tick). {@code now} is in microseconds of a {@link Clock}. The session says hello, asks
 * calls, asks them again on the next connection, keeps permits, and learns which of them are lost.
 * Before hello, and without a wait for the answer, it shows its secret, if it has one. {@link
 * Asking} has the calls, and what becomes of their answers.
 *
 * <p>Thread: one. Outcomes are notified within its methods.
 */
final class Session extends Asking {
    private static final long PROTOCOL = 1;
    private static final long CONNECT_TIMEOUT = 2 * SECOND; // Of all addresses of a name.
    private static final long WRONG_SECRET = SECOND; // By which a server delays its answer.
    private static final String NO_HELLO =
            "no answer to hello; is that a nowcalls-server? " + Exchange.USUAL_PORT;
    private static final String TLS_ONLY = "; or does it speak TLS only?"; // To a plain client.

    private boolean useful; // The server has answered more than hello.
    private String shown = ""; // The secret, on this connection.
    private String identity = ""; // What the server calls the client.
    private long helloMsgid;
    private long helloAt;
    private boolean hasFailed; // Ever.

    Session(Config config, Surroundings outside, long now) {
        super(config, outside, now);
    }

    long connectTimeout() {
        return Math.min(CONNECT_TIMEOUT, config.timeout);
    }

    /** Bytes to send; the owner removes what it has sent. */
    Output output() {
        return exchange.output;
    }

    /** What to say of a connection that the server or the network has ended. */
    String endOfConnection(String error) {
        if (isReady()) {
            return error;
        }
        String early = error + ", before hello was answered";
        if (config.tls != null) {
            return early;
        }
        return early + "; is that a nowcalls-server? " + Exchange.USUAL_PORT + TLS_ONLY;
    }

    private String noHello() {
        return NO_HELLO + (config.tls != null ? "" : TLS_ONLY);
    }

    // The connection.

    /**
     * A connection is open; the session says hello and waits for its answer.
     *
     * @param isPrivate nobody on the way can read what is sent
     * @return why the connection must be closed, or null
     */
    String connected(long now, boolean isPrivate) {
        dialing.begin();
        state = State.GREETING;
        useful = false;
        exchange = new Exchange();
        withOptions = true;
        contact.begin(now);
        if (!hasFailed) { // Else the reason of before says more.
            whyOffline = dialing.name() + ": " + noHello();
        }
        shown = "";
        identity = "";
        if (config.secret != null) {
            try {
                identify(config.secret, isPrivate);
            } catch (BadRequestException error) {
                return deny(error, now);
            }
        }
        hello(now);
        return null;
    }

    /** The server's TLS does not let the client in: connectFailed or disconnected follows. */
    void denied(long now, String reason) {
        deny(new PermissionDeniedException(reason, 0), now);
    }

    void connectFailed(long now, String reason) {
        whyOffline = dialing.name() + ": " + reason;
        hasFailed = true;
        dialing.failed(now);
        if (!dialing.allFailed() || closing) {
            return;
        }
        if (!down && denied == null) {
            LOGGER.log(
                    Level.WARNING,
                    "no server is reached, fallback {0}: {1}",
                    config.fallback.word(),
                    whyOffline);
        }
        down = true;
        // Calls need not wait for the end of their time, unless they may wait for room: a server
        // that restarts must not let go all that stand in line.
        if (fallback.isActive()) {
            for (Call call : calls.awaited()) {
                if (call.wantsRoom() && !call.sleeps() && !call.mayWait(now)) {
                    giveUp(call, now, whyOffline);
                }
            }
        }
    }

    /** The connection is gone. Calls without answer are asked on the next one. */
    void disconnected(long now, String reason) {
        boolean wasReady = isReady();
        state = State.OFFLINE;
        identifyMsgid = 0;
        exchange = new Exchange();
        for (Call call : calls.takeInFlight()) {
            call.strayed = true;
            if (call.isPersistent() || (call.repeatable && !call.done)) {
                count(Count.ASKED_AGAIN);
                calls.queue(call);
            } else {
                fail(call, call.noAnswer(reason), now);
            }
        }
        if (!wasReady) {
            connectFailed(now, reason);
            return;
        }
        count(Count.DISCONNECTS);
        whyOffline = dialing.name() + ": " + reason;
        hasFailed = true;
        LOGGER.log(Level.INFO, "the connection to {0} ended: {1}", dialing.name(), reason);
        if (useful) {
            dialing.ended(now);
        } else { // A server that takes connections and ends them at once gets longer pauses, too.
            dialing.failed(now);
        }
    }

    /** Handles bytes of the server. Returns why the connection must be closed, or null. */
    String received(byte[] data, int size, long now) {
        lookAfterAll(now); // What comes late brings no token back.
        if (isReady()) { // Until then only an answer to hello counts.
            contact.heard(now);
        }
        try {
            exchange.receive(data, size);
            List<Object> message;
            while ((message = exchange.next()) != null) {
                String refusal = message(message, now);
                if (refusal != null) {
                    return refusal;
                }
            }
            return null;
        } catch (WrongAnswer wrong) {
            return "the peer does not speak nowcalls: " + withoutSecret(wrong.getMessage());
        }
    }

    /** Does what is due. Returns why the connection must be closed, or null. */
    String tick(long now) {
        Call overdue;
        while ((overdue = calls.overdue(now)) != null) {
            giveUp(overdue, now, isReady() ? "the server did not answer in time" : whyOffline);
        }
        timers.run(now);
        lookAfterAll(now);
        if (state == State.GREETING && now >= greetingUntil()) {
            return noHello();
        }
        if (!isReady()) {
            return null;
        }
        if (now >= contact.silentAt(config.timeout)) {
            return "the server is silent";
        }
        if (now >= contact.pingAt(held.offlineMs())) {
            ping(now);
        }
        return null;
    }

    /** When to call tick, or to dial if there is no connection. */
    long wakeup() {
        long at = Math.min(Math.min(calls.nextDeadline(), held.nextAt()), timers.nextAt());
        at = Math.min(at, held.contactUntil(contact));
        if (state == State.OFFLINE) {
            return Math.min(at, dialing.at);
        }
        if (state == State.GREETING) {
            return Math.min(at, greetingUntil());
        }
        at = Math.min(at, contact.silentAt(config.timeout));
        return Math.min(at, contact.pingAt(held.offlineMs()));
    }

    private long greetingUntil() {
        long delay = config.secret == null ? 0 : WRONG_SECRET;
        return after(contact.heardAt, config.timeout + delay);
    }

    // The end.

    /** Ends all calls that wait. Releases and cancels go on until `isSettled`. */
    void close(long now) {
        closing = true;
        for (Call call : calls.awaited()) {
            if (!call.isPersistent()) {
                giveUp(call, now, "the client was closed");
            }
        }
    }

    /** Ends what is left of releases. Calls that are asked from now on get `reason`. */
    void stop(String reason) {
        state = State.STOPPED;
        ended = reason;
        for (Call call : calls.awaited()) {
            calls.settle(call, null, call.noAnswer(reason));
        }
        calls.takeInFlight();
        calls.takeQueue();
    }

    void loseAll(String reason, long now) {
        for (Held token : held.all()) {
            lose(token, reason, Held.State.ENDED, now);
        }
    }

    /** No release and no cancel is without answer. */
    boolean isSettled() {
        return !calls.hasPersistent();
    }

    boolean holds() {
        return held.size() > 0;
    }

    /**
     * Takes the tokens that were lost since the last call, for their callbacks. One line in the log
     * for all that were lost for one reason.
     */
    List<Held> takeLost() {
        if (lost.isEmpty()) {
            return lost;
        }
        List<Held> taken = lost;
        lost = new ArrayList<>();
        Map<String, List<Held>> byReason = new LinkedHashMap<>();
        for (Held token : taken) {
            byReason.computeIfAbsent(whyLost(token), why -> new ArrayList<>()).add(token);
        }
        byReason.forEach(Session::logLost);
        return taken;
    }

    Map<String, Object> stats() {
        Map<String, Object> stats = new LinkedHashMap<>();
        long waiting = calls.awaited().stream().filter(call -> !call.isPersistent()).count();
        stats.put("connected", isReady());
        stats.put("address", dialing.name());
        stats.put("client_id", config.clientId);
        stats.put("sessions_online", sessionsOnline);
        stats.put("held", (long) held.size());
        stats.put("waiting", waiting);
        stats.put("unsettled", calls.all().stream().filter(Call::isPersistent).count());
        stats.put("tells_lost", isReady() && withOptions);
        stats.put("local_granted", fallback.granted);
        stats.put("local_refused", fallback.refused);
        stats.put("local_passed", fallback.passed);
        counts.forEach((what, times) -> stats.put(what.word(), times));
        return stats;
    }

    // Messages.

    private void identify(Secret secret, boolean isPrivate) {
        if (!isPrivate) {
            throw new BadRequestException(Secret.PLAIN);
        }
        shown = secret.read();
        identifyMsgid = exchange.request("identify", List.of(shown));
    }

    private void hello(long now) {
        List<Object> params = new ArrayList<>();
        params.add(PROTOCOL);
        params.add(config.namespace);
        params.add(config.clientId);
        Map<String, Object> options = new LinkedHashMap<>();
        if (withOptions) {
            options.put("lost", true);
        }
        if (config.exclusive) {
            options.put("exclusive", true);
        }
        if (withOptions) {
            if (outside.instance != 0) {
                options.put("instance", outside.instance);
            }
            options.put("terms", true);
        }
        if (!options.isEmpty()) {
            params.add(options);
        }
        helloAt = now;
        helloMsgid = exchange.request("hello", params);
    }

    private String message(List<Object> message, long now) throws WrongAnswer {
        if (Long.valueOf(2).equals(message.get(0))) {
            if ("lost".equals(message.get(1))) {
                toldLost(Check.array("lost", message.get(2), 3), now);
            }
            return null;
        }
        long msgid = Check.uint("msgid", message.get(1));
        Object error = withoutSecret(message.get(2));
        Object result = message.get(3);
        if (error != null) {
            Object code = Check.array("an error", error, 3).get(0);
            if (Long.valueOf(Answers.MALFORMED).equals(code)) {
                return Answers.errorOf(error).getMessage();
            }
        }
        if (identifyMsgid != 0 && msgid == identifyMsgid) {
            return identifyAnswered(error, result, now);
        }
        if (state == State.GREETING && msgid == helloMsgid) {
            return helloAnswered(error, result, now);
        }
        Call call = calls.inFlight(msgid);
        if (call == null) {
            throw new WrongAnswer("it answers a request " + msgid + " that awaits no answer");
        }
        contact.answered(call.sentAt);
        answered(call, error, result, now);
        calls.answered(msgid); // Not one whose answer was not understood.
        useful = true;
        return null;
    }

    /** An error as the server words it; it may have sent the secret back. */
    private Object withoutSecret(Object error) {
        if (!(error instanceof List) || shown.isEmpty()) {
            return error;
        }
        List<Object> parts = new ArrayList<>((List<?>) error);
        parts.replaceAll(part -> part instanceof String ? withoutSecret((String) part) : part);
        return parts;
    }

    private String withoutSecret(String text) {
        return shown.isEmpty() ? text : text.replace(shown, "...");
    }

    private String identifyAnswered(Object error, Object result, long now) throws WrongAnswer {
        identifyMsgid = 0;
        if (error == null) {
            identity = Check.text("a name", Check.array("identify", result, 3).get(0));
            return null;
        }
        Object code = Check.array("an error", error, 3).get(0);
        if (Long.valueOf(Answers.UNKNOWN_METHOD).equals(code)) {
            return null; // An older server lets everybody in.
        }
        return greetingRefused("identify", error, now);
    }

    private String helloAnswered(Object error, Object result, long now) throws WrongAnswer {
        if (error != null) {
            Object code = Check.array("an error", error, 3).get(0);
            if (Long.valueOf(Answers.BAD_PARAMS).equals(code) && withOptions) {
                withOptions = false;
                hello(now);
                return null;
            }
            return greetingRefused("hello", error, now);
        }
        List<Object> parts = Check.array("hello", result, 4);
        Check.text("the version", parts.get(0));
        long session = Check.uint("hello", parts.get(1));
        sessionsOnline = Check.uint("hello", parts.get(2));
        long resumed = Check.uint("hello", parts.get(3));
        state = State.READY;
        down = false;
        denied = null;
        contact.heard(now);
        contact.answered(helloAt);
        count(Count.CONNECTS);
        LOGGER.log(
                Level.INFO,
                "connected to {0}, session {1}, {2} tokens",
                dialing.name() + (identity.isEmpty() ? "" : " as '" + identity + "'"),
                String.valueOf(session),
                String.valueOf(resumed));
        boolean isFewer = resumed < held.size();
        if (resumed == 0) {
            loseAll(null, now);
        }
        // A keep asks whether the token is still there. If some have ended, all are asked for.
        for (Held token : held.all()) {
            if (token.isKept() || (isFewer && token.keep != Keep.OFF)) {
                keep(token, now);
            }
        }
        calls.takeQueue().forEach(call -> send(call, now));
        return null;
    }

    /** Calls that wait fail at once if the client itself is at fault. */
    private String greetingRefused(String method, Object answer, long now) throws WrongAnswer {
        NowcallsException error = Answers.errorOf(answer);
        String refusal = method + " refused: " + error.getMessage();
        if (error instanceof PermissionDeniedException) {
            return deny(((PermissionDeniedException) error).again(refusal), now);
        }
        if (error instanceof BadRequestException) {
            endQueue(((BadRequestException) error).again(refusal), now);
        }
        return refusal;
    }

    /** No fallback may let a call pass since its caller is refused. */
    private String deny(BadRequestException error, long now) {
        BadRequestException denial = error.again(dialing.name() + ": " + error.getMessage());
        if (denied == null) {
            LOGGER.log(
                    Level.WARNING,
                    "not let in, so calls end at once: {0}",
                    denial.getMessage());
        }
        denied = denial;
        endQueue(denial, now);
        return error.getMessage();
    }

    private void endQueue(BadRequestException error, long now) {
        for (Call call : calls.takeQueue()) {
            if (call.isPersistent() || call instanceof Rules.Ask) {
                calls.queue(call);
            } else {
                fail(call, error.again(error.getMessage()), now);
            }
        }
    }

    private void toldLost(List<Object> params, long now) throws WrongAnswer {
        Held token = held.find(Check.uint("token_id", params.get(0)));
        Check.integer("flow_id", params.get(1));
        String reason = Check.text("reason", params.get(2));
        if (token != null) {
            lose(token, reason, Held.State.ENDED, now);
        }
    }

    // Tokens.

    /** Loses the tokens whose time is over, and does what is due for the others. */
    private void lookAfterAll(long now) {
        if (now >= held.contactUntil(contact)) {
            for (Held token : held.all()) {
                if (now >= token.contactUntil()) {
                    expire(token, now);
                }
            }
        }
        Held due;
        while ((due = held.takeDue(now)) != null) {
            lookAfter(due, now);
        }
    }

    /** Keeps a token that is held for long, or ends it as its rule says. */
    private void lookAfter(Held token, long now) {
        if (token.foundLost || now >= token.validUntil()) {
            expire(token, now);
        } else if (now >= token.releaseAt()) {
            lose(token, "resource_timeout", Held.State.RELEASING, now);
            submit(new Calls.Release(token, Outcome.TIMEOUT, false), now);
            cancelStray(token, now);
        } else if (now >= token.keepAt && isReady()) {
            keep(token, now);
        } else {
            if (now >= token.keepAt) {
                token.keepAt = NEVER; // The next connection begins with a keep.
            }
            held.plan(token);
        }
    }

    private void keep(Held token, long now) {
        Calls.KeepCall call = new Calls.KeepCall(token);
        token.keepAt = NEVER; // Until it is answered.
        held.plan(token);
        send(call, now);
    }

    private void expire(Held token, long now) {
        lose(token, token.reason(), Held.State.LOST, now);
    }

    /** LOST: the server was not asked, so the release of its owner is still sent. */
    @Override
    void lose(Held token, String reason, Held.State state, long now) {
        if (!held.remove(token)) {
            return;
        }
        fallback.leave(token);
        token.lostReason = reason;
        token.state = state;
        token.toldLost = true;
        lost.add(token);
        count(Count.LOST);
        if (state == Held.State.ENDED) {
            cancelStray(token, now);
        }
    }

    /** Asks for a sign of life. Any byte of the server counts as one. */
    @Override
    void ping(long now) {
        contact.pinged(now);
        Calls.Ping call = new Calls.Ping();
        call.repeatable = false;
        send(call, now);
    }

    private static void logLost(String why, List<Held> tokens) {
        Held first = tokens.get(0);
        if (tokens.size() == 1) {
            LOGGER.log(
                    Level.WARNING,
                    "lost token {0} of flow {1}: {2}",
                    String.valueOf(first.tokenId),
                    Item.show(first.item.flow),
                    why);
            return;
        }
        StringBuilder ids = new StringBuilder();
        for (Held token : tokens.subList(0, Math.min(3, tokens.size()))) {
            ids.append(ids.length() > 0 ? ", " : "").append(token.tokenId);
        }
        ids.append(tokens.size() > 3 ? ", ..." : "");
        LOGGER.log(
                Level.WARNING,
                "lost {0} tokens ({1}): {2}",
                String.valueOf(tokens.size()),
                ids,
                why);
    }

    private static String whyLost(Held token) {
        if (token.endedByRule()) {
            return "its call took longer than the " + token.holdMs() + " ms that its rule holds a"
                    + " token (resourceTimeoutStrategy 0); set resourceTimeoutStrategy 2 in the"
                    + " rule, or ask to keep it always";
        }
        return token.lostReason == null ? "it had ended" : token.lostReason;
    }
}
