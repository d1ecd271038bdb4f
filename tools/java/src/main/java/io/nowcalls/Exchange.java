package io.nowcalls;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;

/**
 * The requests and answers of one connection. msgids count from 1.
 *
 * <p>Thread: the session's. Whatever bytes come, they lead to messages or to WrongAnswer, within
 * bounded memory.
 */
final class Exchange {
    static final String USUAL_PORT = "the token port of a nowcalls-server is usually 18730";

    private static final int MESSAGE_BYTES_MAX = 64 * 1024; // The server ends the connection.
    private static final long MSGID_MAX = 0xFFFFFFFFL;
    private static final int SPARE_MAX = 256 * 1024;
    // What a peer begins with, and what it speaks then.
    private static final String[][] OTHERS = {
        {"HTTP/", "HTTP"},
        {"\u0015\u0003", "TLS; so must the client (tls(true)), if that is a nowcalls-server"},
        {"SSH-", "SSH"},
        {"-ERR", "Redis's protocol"},
    };

    final Output output = new Output();
    private final Boundary boundary = new Boundary();
    private long lastMsgid;
    private boolean heard;
    private byte[] input = new byte[4096];
    private int begin;
    private int end;

    /** Returns the msgid. Throws BadRequestException for what no message can hold. */
    long request(String method, List<?> params) {
        long msgid = lastMsgid % MSGID_MAX + 1;
        byte[] message = Values.pack(Arrays.asList(0L, msgid, method, params));
        if (message.length > MESSAGE_BYTES_MAX) {
            throw new BadRequestException(method + ": " + message.length + " bytes are too many");
        }
        lastMsgid = msgid;
        output.add(message);
        return msgid;
    }

    /** More bytes of the server; `next` has the messages that are whole. */
    void receive(byte[] data, int size) throws WrongAnswer {
        if (!heard && size > 0) {
            heard = true;
            String head = new String(data, 0, Math.min(size, 8), StandardCharsets.ISO_8859_1);
            for (String[] other : OTHERS) {
                if (head.startsWith(other[0])) {
                    throw new WrongAnswer("it speaks " + other[1] + "; " + USUAL_PORT);
                }
            }
        }
        if (input.length - end < size) {
            int kept = end - begin;
            byte[] to = input.length - kept < size ? new byte[2 * (kept + size)] : input;
            System.arraycopy(input, begin, to, 0, kept);
            input = to;
            begin = 0;
            end = kept;
        }
        System.arraycopy(data, 0, input, end, size);
        end += size;
    }

    /** [1, msgid, error, result] or [2, method, params]; null if none is whole. */
    List<Object> next() throws WrongAnswer {
        int size = boundary.find(input, begin, end);
        if (size == 0) {
            return null;
        }
        Object message = Values.read(input, begin, size);
        begin += size;
        if (begin == end) {
            begin = 0;
            end = 0;
            input = input.length > SPARE_MAX ? new byte[4096] : input;
        }
        return checked(message);
    }

    private static List<Object> checked(Object message) throws WrongAnswer {
        List<Object> parts = Check.array("a message", message, 1);
        boolean whole = parts.size() >= 4;
        if (whole && Long.valueOf(1).equals(parts.get(0))) {
            Check.uint("msgid", parts.get(1));
            return parts;
        }
        if (parts.size() == 3 && Long.valueOf(2).equals(parts.get(0))) {
            Check.text("method", parts.get(1));
            Check.array("params", parts.get(2), 0);
            return parts;
        }
        if (Long.valueOf(0).equals(parts.get(0))) { // Perhaps with the secret.
            throw new WrongAnswer("it sends requests back");
        }
        throw WrongAnswer.about("a message", message);
    }
}
