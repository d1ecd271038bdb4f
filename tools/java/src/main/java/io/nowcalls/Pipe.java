package io.nowcalls;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;

/**
 * A connection that never blocks, plain or TLS.
 *
 * <p>Thread: the worker's.
 */
interface Pipe {
    SocketChannel channel();

    /** Whether the handshake is over; else it goes on when the channel is ready again. */
    boolean shake() throws IOException;

    /** Returns 0 if there is nothing now, -1 at the end. `to` has room for 32 KiB. */
    int read(ByteBuffer to) throws IOException;

    /** Whether a read would get bytes that the channel does not have any more. */
    boolean readsAhead();

    /** Takes what it can of `from`. */
    void write(ByteBuffer from) throws IOException;

    /** Whether the channel did not take all bytes. */
    boolean wantsWrite();

    void close();

    /** Without TLS. */
    final class Plain implements Pipe {
        private final SocketChannel channel;
        private boolean isFull;

        Plain(SocketChannel channel) {
            this.channel = channel;
        }

        @Override
        public SocketChannel channel() {
            return channel;
        }

        @Override
        public boolean shake() {
            return true;
        }

        @Override
        public int read(ByteBuffer to) throws IOException {
            return channel.read(to);
        }

        @Override
        public boolean readsAhead() {
            return false;
        }

        @Override
        public void write(ByteBuffer from) throws IOException {
            channel.write(from);
            isFull = from.hasRemaining();
        }

        @Override
        public boolean wantsWrite() {
            return isFull;
        }

        @Override
        public void close() {
            closeQuietly(channel);
        }
    }

    static void closeQuietly(SocketChannel channel) {
        try {
            channel.close();
        } catch (IOException ignored) { // It is gone, whatever it says.
            return;
        }
    }
}
