package io.nowcalls;

import java.util.List;
import java.util.Map;
import java.util.concurrent.Executor;
import java.util.function.Consumer;

/** The settings of a client, checked. */
final class Config {
    List<Address> addresses;
    String namespace;
    String clientId;
    long timeout; // Microseconds.
    Keep keep;
    FallbackMode fallback;
    Map<Object, Long> localLevels;
    boolean exclusive;
    boolean rejoin;
    Tls tls; // null: plain.
    Secret secret; // null: none.
    Consumer<Permit> onLost;
    Executor executor;
}
