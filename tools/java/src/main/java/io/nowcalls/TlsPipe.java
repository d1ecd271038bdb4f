package io.nowcalls;

import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLEngineResult;
import javax.net.ssl.SSLEngineResult.HandshakeStatus;
import javax.net.ssl.SSLException;

/** A connection that speaks TLS. */
final class TlsPipe implements Pipe {
    private static final ByteBuffer NOTHING = ByteBuffer.allocate(0);
    private static final int OUTPUT_MAX = 256 * 1024; // Of what TLS itself has to say.

    private final SocketChannel channel;
    private final SSLEngine engine;
    private final Tls tls;
    private ByteBuffer input; // Of the network, to be read by the engine.
    private ByteBuffer output; // For the network, to be written.
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
                        wrap(NOTHING);
                        break;
                    case NEED_TASK:
                        runTasks();
                        break;
                    case NEED_UNWRAP:
                    case NEED_UNWRAP_AGAIN:
                        SSLEngineResult.Status status = unwrap(data);
                        if (status == SSLEngineResult.Status.BUFFER_UNDERFLOW) {
                            return false;
                        }
                        if (status == SSLEngineResult.Status.CLOSED) {
                            throw new EOFException();
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
        return true;
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
        boolean goesOn = true;
        while (goesOn && flush() && from.hasRemaining()) {
            goesOn = wrap(from);
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
        boolean isQuiet = engine.getHandshakeStatus() == HandshakeStatus.NOT_HANDSHAKING;
        if (!isQuiet && !engine.getSession().getProtocol().equals("TLSv1.3")) {
            throw new SSLException("it wants to shake hands again");
        }
        while (true) {
            switch (engine.getHandshakeStatus()) {
                case NEED_TASK:
                    runTasks();
                    break;
                case NEED_WRAP:
                    wrap(NOTHING);
                    break;
                default:
                    return;
            }
        }
    }

    /** Tells the peer of an end, if the channel takes it at once. */
    private void sayWhy() {
        try {
            for (int i = 0; i < 4 && !engine.isOutboundDone(); i++) {
                wrap(NOTHING);
            }
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

    /** One record, behind those that the channel has not taken yet. False: not now. */
    private boolean wrap(ByteBuffer from) throws IOException {
        int size = engine.getSession().getPacketBufferSize();
        output.compact();
        if (output.remaining() < size) {
            if (output.capacity() >= OUTPUT_MAX) {
                throw new IOException("the server takes no bytes");
            }
            output = ByteBuffer.allocate(2 * output.capacity() + size).put(output.flip());
        }
        try {
            SSLEngineResult result = engine.wrap(from, output);
            if (result.getStatus() == SSLEngineResult.Status.CLOSED) {
                throw new EOFException();
            }
            return result.bytesProduced() > 0;
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
