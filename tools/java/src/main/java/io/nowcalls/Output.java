package io.nowcalls;

import java.nio.ByteBuffer;
import java.util.Arrays;

/** Bytes on their way out. */
final class Output {
    private static final int SPARE_MAX = 256 * 1024;

    private byte[] data = new byte[1024];
    private int begin;
    private int end;

    boolean isEmpty() {
        return begin == end;
    }

    void add(byte[] bytes) {
        if (data.length - end < bytes.length) {
            int size = end - begin;
            boolean fits = data.length - size >= bytes.length;
            byte[] to = fits ? data : new byte[2 * (size + bytes.length)];
            System.arraycopy(data, begin, to, 0, size);
            data = to;
            begin = 0;
            end = size;
        }
        System.arraycopy(bytes, 0, data, end, bytes.length);
        end += bytes.length;
    }

    /** What is to be sent; `sent` tells how much of it left. */
    ByteBuffer view() {
        return ByteBuffer.wrap(data, begin, end - begin);
    }

    void sent(int bytes) {
        begin += bytes;
        if (begin == end) {
            begin = 0;
            end = 0;
            data = data.length > SPARE_MAX ? new byte[1024] : data;
        }
    }

    byte[] take() {
        byte[] all = Arrays.copyOfRange(data, begin, end);
        sent(all.length);
        return all;
    }
}
