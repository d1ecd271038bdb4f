package io.nowcalls;

import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.atomic.AtomicLong;

/**
 * The concurrency methods of Sentinel's TokenService, for an adapter that implements it.
 *
 * <p>It remembers the permits by token id, so that they are kept as their rules say until they are
 * released. Statuses are those of Sentinel's TokenResultStatus. Errors become statuses: nothing is
 * thrown.
 */
public final class ConcurrentTokens {
    private static final int FAIL = -1;
    private static final int ALREADY_RELEASE = 7;

    private final Client client;
    private final Options options;
    private final ConcurrentMap<Long, Permit> permits = new ConcurrentHashMap<>();
    private final AtomicLong lastLocal = new AtomicLong();

    /**
     * Tokens of a client.
     *
     * @param client not closed by this object
     * @param options of each acquire
     */
    public ConcurrentTokens(Client client, Options options) {
        this.client = client;
        this.options = options;
    }

    /**
     * Takes a token.
     *
     * @param clientAddress of no meaning here: the client's session holds the token
     * @param ruleId the flowId of a rule
     * @param acquireCount the calls that it stands for
     * @return OK with a token id; BLOCKED, TOO_MANY_REQUEST, NO_RULE_EXISTS, BAD_REQUEST; FAIL if
     *     no server answers, or the thread is interrupted
     */
    public TokenResult requestConcurrentToken(
            String clientAddress, Long ruleId, int acquireCount) {
        if (ruleId == null) {
            return new TokenResult(Answers.BAD_REQUEST, 0);
        }
        try {
            Permit permit = client.acquire(Item.of(ruleId).count(acquireCount), options);
            long id = permit.isLocal() ? -lastLocal.incrementAndGet() : permit.tokenId();
            permits.put(id, permit);
            return new TokenResult(Answers.OK, id);
        } catch (RefusedException refused) {
            return new TokenResult(refused.status(), 0);
        } catch (BadRequestException error) {
            return new TokenResult(Answers.BAD_REQUEST, 0);
        } catch (NowcallsException error) {
            return new TokenResult(FAIL, 0);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            return new TokenResult(FAIL, 0);
        }
    }

    /**
     * Gives a token back.
     *
     * @param tokenId of a TokenResult
     * @return RELEASE_OK; ALREADY_RELEASE if it had ended, or was never given out; FAIL if no
     *     server answers in time: the client then releases it in the background
     */
    public TokenResult releaseConcurrentToken(Long tokenId) {
        Permit permit = tokenId == null ? null : permits.remove(tokenId);
        if (permit == null) {
            return new TokenResult(ALREADY_RELEASE, 0);
        }
        try {
            return new TokenResult(permit.release() ? Answers.RELEASE_OK : ALREADY_RELEASE, 0);
        } catch (NowcallsException error) {
            return new TokenResult(FAIL, 0);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            return new TokenResult(FAIL, 0);
        }
    }

    /**
     * The tokens that are out.
     *
     * @return their number, lost ones too until they are released
     */
    public int size() {
        return permits.size();
    }
}
