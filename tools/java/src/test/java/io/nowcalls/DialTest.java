package io.nowcalls;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertNotNull;
import static org.junit.Assert.assertNull;

import java.net.InetAddress;
import java.nio.channels.Selector;
import org.junit.Test;

/** An attempt to connect ends, whatever fails. */
public class DialTest {
    private static final long TIMEOUT = 2 * Moments.SECOND;

    /** As when the process may open no more files: it fails before it connects. */
    @Test(timeout = 20_000)
    public void anAttemptWithoutASocketFails() throws Exception {
        Selector closed = Selector.open();
        closed.close();
        Lookup lookup = new Lookup(Address.parse("127.0.0.1:1"), () -> {});
        InetAddress here = lookup.found[0];
        lookup.found = new InetAddress[] {here, here};
        Dial dial = new Dial(lookup, 1, TIMEOUT, null);
        assertNull(dial.step(1, closed));
        assertNotNull(dial.failure);
        assertEquals(1 + TIMEOUT, dial.until);
    }
}
