package io.nowcalls;

import java.util.ArrayList;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.function.LongSupplier;

/** The rows of a listing, page by page. An interrupted thread gets an UnavailableException. */
final class Rows implements Iterator<Map<String, Object>> {
    private static final long PAGE_ROWS = 100;

    private final Client client;
    private final long timeout;
    private final LongSupplier clock;
    private final String method;
    private final List<Object> head;
    private Iterator<?> page = Collections.emptyIterator();
    private Object cursor;
    private boolean isLast;
    private boolean hadRows = true; // The page before.
    private long patience;

    /** timeout: how long pages may come without a row, by the clock. */
    Rows(Client client, long timeout, LongSupplier clock, String method, Object... head) {
        this.client = client;
        this.timeout = timeout;
        this.clock = clock;
        this.method = method;
        this.head = List.of(head);
    }

    @Override
    public boolean hasNext() {
        while (!page.hasNext() && !isLast) {
            fetch();
        }
        return page.hasNext();
    }

    @Override
    @SuppressWarnings("unchecked")
    public Map<String, Object> next() {
        if (!hasNext()) {
            throw new NoSuchElementException();
        }
        return (Map<String, Object>) page.next();
    }

    private void fetch() {
        if (hadRows) { // What the program does with rows is no time of the server.
            patience = Moments.after(clock.getAsLong(), timeout);
        }
        List<Object> params = new ArrayList<>(head);
        params.add(PAGE_ROWS);
        params.add(cursor);
        List<?> answer;
        try {
            Call call = new Calls.Page(method, params.toArray());
            answer = client.await(call, new Options(), value -> (List<?>) value);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            throw new UnavailableException(method + ": the thread was interrupted");
        }
        List<?> rows = (List<?>) answer.get(0);
        Object after = answer.get(1);
        hadRows = !rows.isEmpty();
        isLast = after == null;
        boolean isLate = !hadRows && clock.getAsLong() > patience;
        if (!isLast && (after.equals(cursor) || isLate)) {
            throw new NowcallsException(method + ": the server's pages do not end");
        }
        page = rows.iterator();
        cursor = after;
    }
}
