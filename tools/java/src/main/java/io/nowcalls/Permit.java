package io.nowcalls;

public final class Permit {
    final Held held;
    long wait;
    Permit(Held held, Object owner) { this.held = held; }
    void setWait(long micros) { wait = micros; }
    public long tokenId() { return held.tokenId; }
    public long nowCalls() { return held.nowCalls; }
    public long level() { return held.level; }
    public boolean isLocal() { return held.local; }
}
