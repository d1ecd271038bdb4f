package io.nowcalls;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Deque;

/**
 * One attempt to connect, and to shake hands if TLS is wanted. Each address of the name has its
 * share of what is left of the time, so one that drops packets does not eat that of the next.
 *
 * <p>Thread: the worker's.
 */
final class Dial {
    final Lookup lookup;
    long until; // When to look again at the latest.
    String failure; // There will be no connection.
    boolean denied; // By the last address.
    private final long timeout;
    private final Tls tls; // null: plain.
    private Deque<InetAddress> left; // null: not found yet.
    private long end;
    private String why = "no address";
    private SocketChannel channel;
    private Pipe pipe; // Once it is connected.

    Dial(Lookup lookup, long now, long timeout, Tls tls) {
        this.lookup = lookup;
        this.until = now + timeout;
        this.timeout = timeout;
        this.tls = tls;
    }

    /** A connection that is ready for use, once there is one; or `failure` is set. */
    Pipe step(long now, Selector selector) {
        if (left == null) {
            if (!lookup.done) {
                failure = now >= until ? "its name was not found in time" : null;
                return null;
            }
            if (lookup.failure != null) {
                failure = lookup.failure;
                return null;
            }
            left = new ArrayDeque<>(Arrays.asList(lookup.found));
            end = now + timeout;
        }
        if (channel != null) {
            try {
                if (!advance(now, selector)) {
                    return null;
                }
                Pipe ready = pipe;
                channel = null;
                return ready;
            } catch (IOException | RuntimeException error) {
                why = Tls.why(error, pipe instanceof TlsPipe);
                denied = Tls.denies(error);
                close();
            }
        }
        while (!left.isEmpty()) {
            if (begin(now, selector)) {
                return null;
            }
        }
        failure = why;
        return null;
    }

    void close() {
        if (channel != null) {
            Pipe.closeQuietly(channel);
            channel = null;
            pipe = null;
        }
    }

    /** Begins to connect to the next address. */
    private boolean begin(long now, Selector selector) {
        until = now + Math.max(0, end - now) / left.size();
        InetAddress next = left.remove(); // Whatever fails, it has had its attempt.
        try {
            channel = SocketChannel.open();
            channel.configureBlocking(false);
            channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
            channel.register(selector, SelectionKey.OP_CONNECT);
            channel.connect(new InetSocketAddress(next, lookup.address.port));
            return true;
        } catch (IOException | RuntimeException error) { // Of a family that the machine lacks, too.
            why = String.valueOf(error.getMessage());
            close();
            return false;
        }
    }

    /** Whether the connection is ready for use. */
    private boolean advance(long now, Selector selector) throws IOException {
        if (pipe == null) {
            if (!channel.finishConnect()) {
                if (now >= until) {
                    throw new IOException("Connection timed out");
                }
                return false;
            }
            channel.keyFor(selector).interestOps(SelectionKey.OP_READ);
            pipe = new Pipe.Plain(channel);
            if (tls != null) {
                pipe = new TlsPipe(channel, tls.engine(lookup.address), tls);
            }
        }
        if (pipe.shake()) {
            return true;
        }
        int writes = pipe.wantsWrite() ? SelectionKey.OP_WRITE : 0;
        channel.keyFor(selector).interestOps(SelectionKey.OP_READ | writes);
        if (now >= until) {
            throw new IOException("the TLS handshake timed out; does it speak TLS?");
        }
        return false;
    }
}
