package io.nowcalls;

/**
 * Finds the end of a MessagePack value in bytes that arrive piece by piece, and refuses what no
 * server sends before any of it is read: extensions, binaries, too many elements, deep nesting.
 */
final class Boundary {
    static final int VALUE_BYTES_MAX = 8 * 1024 * 1024; // Servers send at most half of it.

    private static final int ELEMENTS_MAX = 4096; // Of an array or map; servers send 1024.
    private static final int NESTING_MAX = 32;

    private final int[] left = new int[NESTING_MAX + 1]; // Values that each level still lacks.
    private int depth; // Levels that are open; 0: nothing of a value was seen.
    private int at; // Behind what was seen, from the beginning of the value.
    private int children; // Of the value that was just seen.

    /**
     * Looks at more bytes of the value that begins at `begin`.
     *
     * @return its size, or 0 if its end has not come
     */
    int find(byte[] data, int begin, int end) throws WrongAnswer {
        if (depth == 0) {
            depth = 1;
            left[1] = 1;
            at = 0;
        }
        while (depth > 0) {
            int size = sizeOf(data, begin + at, end);
            if (size == 0) {
                return 0;
            }
            at += size;
            left[depth]--;
            if (children > 0) {
                if (depth == NESTING_MAX) {
                    throw new WrongAnswer("a message is nested too deeply");
                }
                left[++depth] = children;
            }
            while (depth > 0 && left[depth] == 0) {
                depth--;
            }
        }
        return at;
    }

    /** Of a scalar whole, of an array or map its head; 0 if it is not there. */
    private int sizeOf(byte[] data, int from, int end) throws WrongAnswer {
        children = 0;
        if (from >= end) {
            return 0;
        }
        int head = data[from] & 0xff;
        int width = lengthBytes(head);
        if (from + 1 + width > end) {
            return 0;
        }
        long length = 0;
        for (int i = 0; i < width; i++) {
            length = length << 8 | data[from + 1 + i] & 0xff;
        }
        if (isArray(head) || isMap(head)) {
            long count = width > 0 ? length : head & 0x0f;
            if (count > ELEMENTS_MAX) {
                throw new WrongAnswer("an array or a map has " + count + " elements");
            }
            children = (int) count * (isMap(head) ? 2 : 1);
            return 1 + width;
        }
        long size = 1 + width + (width > 0 ? length : payload(head));
        if (at + size > VALUE_BYTES_MAX) {
            throw new WrongAnswer("a message of more than " + VALUE_BYTES_MAX + " bytes");
        }
        return from + size > end ? 0 : (int) size;
    }

    private static boolean isArray(int head) {
        return (head & 0xf0) == 0x90 || head == 0xdc || head == 0xdd;
    }

    private static boolean isMap(int head) {
        return (head & 0xf0) == 0x80 || head == 0xde || head == 0xdf;
    }

    /** How many bytes behind the head tell a length. */
    private static int lengthBytes(int head) {
        switch (head) {
            case 0xd9: // A str.
                return 1;
            case 0xda:
            case 0xdc: // An array.
            case 0xde: // A map.
                return 2;
            case 0xdb:
            case 0xdd:
            case 0xdf:
                return 4;
            default:
                return 0;
        }
    }

    /** Bytes behind a head that tells them itself. */
    private static int payload(int head) throws WrongAnswer {
        if (head <= 0x7f || head >= 0xe0) { // Small integers.
            return 0;
        }
        if (head >= 0xa0 && head <= 0xbf) { // A short str.
            return head & 0x1f;
        }
        switch (head) {
            case 0xc0: // nil, false and true.
            case 0xc2:
            case 0xc3:
                return 0;
            case 0xcc: // Integers and floats by their width.
            case 0xd0:
                return 1;
            case 0xcd:
            case 0xd1:
                return 2;
            case 0xca:
            case 0xce:
            case 0xd2:
                return 4;
            case 0xcb:
            case 0xcf:
            case 0xd3:
                return 8;
            default:
                throw new WrongAnswer(String.format("a value begins with the byte 0x%02x", head));
        }
    }
}
