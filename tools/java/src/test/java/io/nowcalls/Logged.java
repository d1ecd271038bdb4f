package io.nowcalls;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import java.util.logging.SimpleFormatter;

/** What the client logs meanwhile. */
final class Logged extends Handler implements AutoCloseable {
    private static final Logger LOGGER = Logger.getLogger("io.nowcalls");

    private final List<String> lines = new CopyOnWriteArrayList<>();

    Logged() {
        silence();
        LOGGER.addHandler(this);
    }

    static void silence() {
        LOGGER.setUseParentHandlers(false);
        LOGGER.setLevel(Level.ALL);
    }

    List<String> lines() {
        return lines;
    }

    boolean has(String text) {
        return lines.stream().anyMatch(line -> line.contains(text));
    }

    @Override
    public void publish(LogRecord record) {
        lines.add(record.getLevel() + " " + new SimpleFormatter().formatMessage(record));
    }

    @Override
    public void flush() {}

    @Override
    public void close() {
        LOGGER.removeHandler(this);
    }
}
