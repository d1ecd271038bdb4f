package io.nowcalls;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;

/** Answers each request with the bytes of its script. */
final class ScriptedServer implements AutoCloseable {
    /** Returns the bytes to send, or null for none; throws to end the connection. */
    interface Script {
        byte[] answer(long msgid, String method, List<Object> params) throws IOException;
    }

    static final List<Object> WELCOME = Arrays.asList("1.0", 9L, 1L, 0L);
    static final List<Object> GRANT =
            Arrays.asList(0L, 77L, 13L, 1L, 2L, 6000L, null, null, Arrays.asList(2L, 3000L, 6000L));

    final List<String> asked = new CopyOnWriteArrayList<>();
    private final ServerSocket listener;
    private final List<Socket> sockets = new CopyOnWriteArrayList<>();
    private final Script script;

    ScriptedServer(Script script) throws IOException {
        this.script = script;
        this.listener = new ServerSocket(0, 50, InetAddress.getByName("127.0.0.1"));
        TcpProxy.start(this::accept);
    }

    String address() {
        return "127.0.0.1:" + listener.getLocalPort();
    }

    static byte[] ok(long msgid, Object result) {
        return Values.pack(Arrays.asList(1L, msgid, null, result));
    }

    static byte[] error(long msgid, long code, String name, String text) {
        return Values.pack(Arrays.asList(1L, msgid, Arrays.asList(code, name, text), null));
    }

    /** As a server answers that grants everything. */
    static byte[] usual(long msgid, String method) {
        switch (method) {
            case "hello":
                return ok(msgid, WELCOME);
            case "acquire":
                return ok(msgid, GRANT);
            case "release":
            case "cancel":
                return ok(msgid, List.of(6L));
            case "keep":
                return ok(msgid, Arrays.asList(0L, 6000L));
            case "ping":
                return ok(msgid, List.of(5L));
            case "request":
            case "request_param":
                return ok(msgid, Arrays.asList(0L, 3L, 0L, null));
            default:
                return ok(msgid, Arrays.asList(List.of(), null));
        }
    }

    static byte[] join(byte[]... parts) {
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        for (byte[] part : parts) {
            all.write(part, 0, part.length);
        }
        return all.toByteArray();
    }

    void send(byte[] data) throws IOException {
        for (Socket socket : sockets) {
            socket.getOutputStream().write(data);
        }
    }

    @Override
    public void close() throws IOException {
        listener.close();
        for (Socket socket : sockets) {
            socket.close();
        }
    }

    private void accept() throws IOException {
        while (true) {
            Socket socket = listener.accept();
            sockets.add(socket);
            TcpProxy.start(() -> serve(socket));
        }
    }

    private void serve(Socket socket) throws IOException {
        Boundary boundary = new Boundary();
        byte[] data = new byte[1 << 20];
        int end = 0;
        try {
            int size;
            while ((size = socket.getInputStream().read(data, end, data.length - end)) >= 0) {
                end += size;
                int length;
                while ((length = boundary.find(data, 0, end)) > 0) {
                    List<Object> request =
                            Check.array("a request", Values.read(data, 0, length), 4);
                    System.arraycopy(data, length, data, 0, end - length);
                    end -= length;
                    String method = (String) request.get(2);
                    asked.add(method);
                    List<Object> params = Check.array("params", request.get(3), 0);
                    byte[] answer = script.answer((Long) request.get(1), method, params);
                    if (answer != null) {
                        socket.getOutputStream().write(answer);
                    }
                }
            }
        } catch (WrongAnswer wrong) {
            throw new IOException(wrong);
        } finally {
            sockets.remove(socket);
            socket.close();
        }
    }
}
