package io.nowcalls;

import java.util.Collection;
import java.util.HashSet;
import java.util.Set;

/** The live tokens of an acquire of which an attempt may still arrive. */
final class Stray {
    final long requestId;
    final Set<Long> tokens;

    Stray(long requestId, Collection<Long> tokens) {
        this.requestId = requestId;
        this.tokens = new HashSet<>(tokens);
    }
}
