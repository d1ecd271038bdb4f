package io.nowcalls;

/** The answer of {@link ConcurrentTokens}, with numbers of Sentinel's TokenResultStatus. */
public final class TokenResult {
    private final int status;
    private final long tokenId;

    TokenResult(int status, long tokenId) {
        this.status = status;
        this.tokenId = tokenId;
    }

    /**
     * The status.
     *
     * @return a number of Sentinel's TokenResultStatus
     */
    public int getStatus() {
        return status;
    }

    /**
     * The id of the token.
     *
     * @return 0 if there is none, negative if the fallback granted it
     */
    public long getTokenId() {
        return tokenId;
    }

    @Override
    public String toString() {
        return "TokenResult(status=" + status + ", tokenId=" + tokenId + ")";
    }
}
