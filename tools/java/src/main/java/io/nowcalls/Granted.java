package io.nowcalls;

import java.util.ArrayList;
import java.util.List;

/** The answer to an acquire that was granted. */
final class Granted {
    /** Of one item. The token id is 0 for a rate. */
    static final class Grant {
        final long tokenId;
        final long fence;
        final long holdMs;
        final Terms terms;
        final long wait;

        private Grant(long tokenId, long fence, long holdMs, Terms terms, long wait) {
            this.tokenId = tokenId;
            this.fence = fence;
            this.holdMs = holdMs;
            this.terms = terms;
            this.wait = wait;
        }

        static Grant of(Item item, Object tokenId, Object fence, Object holdMs, Terms terms)
                throws WrongAnswer {
            long id = Check.uint63("token_id", tokenId);
            if (item.rate) {
                if (id != 0) {
                    throw WrongAnswer.about("the token of a rate", tokenId);
                }
                return new Grant(0, 0, 0, null, Check.hold(holdMs) * Moments.MS);
            }
            if (id == 0) {
                throw new WrongAnswer("an acquire was answered with token 0");
            }
            return new Grant(id, Check.uint("fence", fence), Check.hold(holdMs), terms, 0);
        }
    }

    final List<Grant> grants;
    final long nowCalls;
    final long level;

    Granted(List<Grant> grants, long nowCalls, long level) {
        this.grants = grants;
        this.nowCalls = nowCalls;
        this.level = level;
    }

    List<Long> tokens() {
        List<Long> tokens = new ArrayList<>();
        for (Grant grant : grants) {
            if (grant.tokenId != 0) {
                tokens.add(grant.tokenId);
            }
        }
        return tokens;
    }

    long longestWait() {
        return grants.stream().mapToLong(grant -> grant.wait).max().orElse(0);
    }
}
