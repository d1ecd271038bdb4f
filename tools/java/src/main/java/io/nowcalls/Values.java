package io.nowcalls;

import java.io.IOException;
import java.math.BigInteger;
import java.nio.charset.CodingErrorAction;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.msgpack.core.MessageBufferPacker;
import org.msgpack.core.MessageFormat;
import org.msgpack.core.MessagePack;
import org.msgpack.core.MessagePacker;
import org.msgpack.core.MessageUnpacker;

/**
 * MessagePack values as Java has them: null, Boolean, Long, Double, String, List and Map. A
 * BigInteger is one from 2^63 on.
 */
final class Values {
    private static final MessagePack.UnpackerConfig STRICT =
            new MessagePack.UnpackerConfig()
                    .withActionOnMalformedString(CodingErrorAction.REPORT)
                    .withActionOnUnmappableString(CodingErrorAction.REPORT);

    private Values() {}

    static byte[] pack(List<?> message) {
        try (MessageBufferPacker packer = MessagePack.newDefaultBufferPacker()) {
            write(packer, message);
            return packer.toByteArray();
        } catch (IOException impossible) { // It writes to memory.
            throw new IllegalStateException(impossible);
        }
    }

    private static void write(MessagePacker packer, Object value) throws IOException {
        if (value == null) {
            packer.packNil();
        } else if (value instanceof String) {
            packer.packString((String) value);
        } else if (value instanceof Long || value instanceof Integer) {
            packer.packLong(((Number) value).longValue());
        } else if (value instanceof Boolean) {
            packer.packBoolean((Boolean) value);
        } else if (value instanceof Float) {
            packer.packFloat((Float) value);
        } else if (value instanceof Double) {
            packer.packDouble((Double) value);
        } else if (value instanceof Map) {
            Map<?, ?> map = (Map<?, ?>) value;
            packer.packMapHeader(map.size());
            for (Map.Entry<?, ?> entry : map.entrySet()) {
                write(packer, entry.getKey());
                write(packer, entry.getValue());
            }
        } else {
            List<?> list = (List<?>) value;
            packer.packArrayHeader(list.size());
            for (Object element : list) {
                write(packer, element);
            }
        }
    }

    /** Of bytes whose end and nesting Boundary has seen. */
    static Object read(byte[] data, int begin, int size) throws WrongAnswer {
        try (MessageUnpacker unpacker = STRICT.newUnpacker(data, begin, size)) {
            return read(unpacker);
        } catch (IOException | RuntimeException error) { // Whatever a stranger's bytes lead to.
            String text = String.valueOf(error.getMessage());
            text = text.substring(0, Math.min(100, text.length()));
            throw new WrongAnswer(error.getClass().getSimpleName() + ": " + text);
        }
    }

    private static Object read(MessageUnpacker unpacker) throws IOException, WrongAnswer {
        MessageFormat format = unpacker.getNextFormat();
        switch (format.getValueType()) {
            case NIL:
                unpacker.unpackNil();
                return null;
            case BOOLEAN:
                return unpacker.unpackBoolean();
            case INTEGER:
                return format == MessageFormat.UINT64
                        ? narrow(unpacker.unpackBigInteger())
                        : (Object) unpacker.unpackLong();
            case FLOAT:
                return unpacker.unpackDouble();
            case STRING:
                return unpacker.unpackString();
            case ARRAY:
                int size = unpacker.unpackArrayHeader();
                List<Object> list = new ArrayList<>(size);
                for (int i = 0; i < size; i++) {
                    list.add(read(unpacker));
                }
                return list;
            case MAP:
                int pairs = unpacker.unpackMapHeader();
                Map<String, Object> map = new LinkedHashMap<>();
                for (int i = 0; i < pairs; i++) {
                    map.put(Check.text("a key", read(unpacker)), read(unpacker));
                }
                return map;
            default:
                throw new WrongAnswer("a value of the type " + format);
        }
    }

    private static Object narrow(BigInteger value) {
        return value.bitLength() > 63 ? value : (Object) value.longValue();
    }
}
