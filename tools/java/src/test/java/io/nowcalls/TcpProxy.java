package io.nowcalls;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;

/**
 * Passes bytes between clients and a server, and breaks connections when told to.
 *
 * <p>answers, requests: false swallows what the server, or the client, sends. Both: a black hole.
 */
final class TcpProxy implements AutoCloseable {
    volatile boolean answers = true;
    volatile boolean requests = true;
    volatile boolean accepts = true; // False ends new connections at once.
    private final ServerSocket listener;
    private final int target;
    private final List<Socket> clients = new CopyOnWriteArrayList<>();
    private final List<Socket> servers = new CopyOnWriteArrayList<>();

    TcpProxy(int target) throws IOException {
        this.target = target;
        this.listener = new ServerSocket(0, 50, InetAddress.getByName("127.0.0.1"));
        start(this::accept);
    }

    String address() {
        return "127.0.0.1:" + listener.getLocalPort();
    }

    /** Breaks all connections. */
    void cut() {
        closeAll(clients);
        closeAll(servers);
    }

    /** The server sees its clients go, and they see nothing. */
    void cutServerSide() {
        answers = false;
        requests = false;
        accepts = false;
        closeAll(servers);
    }

    @Override
    public void close() throws IOException {
        listener.close();
        cut();
    }

    private static void closeAll(List<Socket> sockets) {
        for (Socket socket : sockets) {
            quietly(socket::close);
        }
        sockets.clear();
    }

    interface Io {
        void run() throws IOException;
    }

    static void quietly(Io code) {
        try {
            code.run();
        } catch (IOException ignored) { // It is gone.
            return;
        }
    }

    static void start(Io code) {
        Thread thread = new Thread(() -> quietly(code), "test-proxy");
        thread.setDaemon(true);
        thread.start();
    }

    private void accept() throws IOException {
        while (true) {
            Socket client = listener.accept();
            if (!accepts) {
                client.close();
                continue;
            }
            Socket server;
            try {
                server = new Socket("127.0.0.1", target);
            } catch (IOException refused) {
                client.close();
                continue;
            }
            clients.add(client);
            servers.add(server);
            start(() -> pump(client, server, false));
            start(() -> pump(server, client, true));
        }
    }

    private void pump(Socket from, Socket to, boolean isAnswers) throws IOException {
        byte[] data = new byte[65536];
        InputStream in = from.getInputStream();
        OutputStream out = to.getOutputStream();
        try {
            int size;
            while ((size = in.read(data)) >= 0) {
                if (isAnswers ? answers : requests) {
                    out.write(data, 0, size);
                }
            }
        } finally {
            if (isAnswers ? answers : requests) {
                quietly(to::close);
            }
        }
    }
}
