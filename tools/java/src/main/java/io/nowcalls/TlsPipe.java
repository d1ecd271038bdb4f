package io.nowcalls;

import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLEngineResult;
import javax.net.ssl.SSLException;

/** A connection that speaks TLS. */
final class TlsPipe implements Pipe {
    private static final ByteBuffer NOTHING = ByteBuffer.allocate(0);

    private final SocketChannel channel;
    private final SSLEngine engine;
    private final Tls tls;
    private ByteBuffer input; // Of the network, to be read by the engine.
    private final ByteBuffer output; // For the network, to be written.
    private boolean shaken;
    private boolean readsAhead;

    TlsPipe(SocketChannel channel, SSLEngine engine, Tls tls) throws SSLException {
        this.channel = channel;
        this.engine = engine;
        this.tls = tls;
        int size = engine.getSession().getPacketBufferSize();
        input = ByteBuffer.allocate(size).flip();
        output = ByteBuffer.allocate(2 * size).flip();
        engine.beginHandshake();
    }

    @Override
    public SocketChannel channel() {
        return channel;
    }

    @Override
    public boolean shake() throws IOException {
        ByteBuffer data = ByteBuffer.allocate(engine.getSession().getApplicationBufferSize());
        try {
            while (!shaken) {
                switch (engine.getHandshakeStatus()) {
                    case NEED_WRAP:
                        if (!wrap(NOTHING)) {
                            return false;
                        }
                        break;
                    case NEED_TASK:
                        runTasks();
                        break;
                    case NEED_UNWRAP:
                    case NEED_UNWRAP_AGAIN:
                        if (unwrap(data) != SSLEngineResult.Status.OK) {
                            return false;
                        }
                        break;
                    default:
                        shaken = true;
                }
            }
        } catch (SSLException error) {
            sayWhy();
            throw error;
        }
        tls.check(engine);
        return flush() || true;
    }

    @Override
    public int read(ByteBuffer to) throws IOException {
        int before = to.position();
        readsAhead = false;
        while (true) {
            SSLEngineResult.Status status = unwrap(to);
            int size = to.position() - before;
            if (status == SSLEngineResult.Status.CLOSED) {
                return size > 0 ? size : -1;
            }
            if (status == SSLEngineResult.Status.BUFFER_OVERFLOW) {
                readsAhead = true;
                return size;
            }
            if (status == SSLEngineResult.Status.BUFFER_UNDERFLOW) {
                return size;
            }
            answer();
        }
    }

    @Override
    public boolean readsAhead() {
        return readsAhead;
    }

    @Override
    public void write(ByteBuffer from) throws IOException {
        while (flush() && from.hasRemaining()) {
            if (!wrap(from)) {
                return;
            }
        }
    }

    @Override
    public boolean wantsWrite() {
        return output.hasRemaining();
    }

    @Override
    public void close() {
        engine.closeOutbound();
        sayWhy();
        Pipe.closeQuietly(channel);
    }

    /** What TLS itself has to say behind the handshake. */
    private void answer() throws IOException {
        while (true) {
            switch (engine.getHandshakeStatus()) {
                case NEED_TASK:
                    runTasks();
                    break;
                case NEED_WRAP:
                    if (!wrap(NOTHING)) {
                        return;
                    }
                    break;
                default:
                    return;
            }
        }
    }

    /** Tells the peer of an end, if the channel takes it at once. */
    private void sayWhy() {
        try {
            for (int i = 0; i < 4 && !engine.isOutboundDone() && wrap(NOTHING); i++) {
                continue;
            }
            flush();
        } catch (IOException ignored) { // It is gone already.
            return;
        }
    }

    private void runTasks() {
        Runnable task;
        while ((task = engine.getDelegatedTask()) != null) {
            task.run();
        }
    }

    /** False: the channel takes no more now. */
    private boolean flush() throws IOException {
        if (output.hasRemaining()) {
            channel.write(output);
        }
        return !output.hasRemaining();
    }

    /** One record. False: the channel takes no more now, or the engine has ended. */
    private boolean wrap(ByteBuffer from) throws IOException {
        if (!flush()) {
            return false;
        }
        output.clear();
        try {
            SSLEngineResult result = engine.wrap(from, output);
            return result.getStatus() == SSLEngineResult.Status.OK;
        } finally {
            output.flip();
            flush();
        }
    }

    /** One record. BUFFER_UNDERFLOW: it has not come whole. CLOSED: the peer has ended it. */
    private SSLEngineResult.Status unwrap(ByteBuffer to) throws IOException {
        while (true) {
            SSLEngineResult result = engine.unwrap(input, to);
            if (result.getStatus() != SSLEngineResult.Status.BUFFER_UNDERFLOW) {
                return result.getStatus();
            }
            if (input.remaining() == input.capacity()) { // A record larger than was announced.
                input = ByteBuffer.allocate(2 * input.capacity()).put(input).flip();
            }
            input.compact();
            int size = channel.read(input);
            input.flip();
            if (size < 0) {
                if (!shaken) {
                    throw new EOFException();
                }
                return SSLEngineResult.Status.CLOSED;
            }
            if (size == 0) {
                return SSLEngineResult.Status.BUFFER_UNDERFLOW;
            }
        }
    }
}
