package io.nowcalls;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.junit.Test;

/** Settings and arguments that are wrong are refused, with what is wrong. */
public class SettingsTest {
    private static ClientBuilder builder(String... addresses) {
        return Client.builder(addresses).environment(Map.of());
    }

    private static void assertBad(String message, Served.Code code) {
        Served.assertThrown(BadRequestException.class, message, code);
    }

    private static String address(String text) {
        return builder(text).config().addresses.get(0).toString();
    }

    @Test
    public void addresses() {
        assertEquals("127.0.0.1:18730", builder().config().addresses.get(0).toString());
        assertEquals("tokens:18730", address("tokens"));
        assertEquals("tokens.example.:1", address("tokens.example.:1"));
        assertEquals("::1:18730", address("[::1]"));
        assertEquals("fe80::1%eth0:9", address("[fe80::1%eth0]:9"));
        assertEquals("::1:18730", address("::1"));
        for (String wrong : List.of("", ":1", "a:", "a:0", "a:65536", "a:x", "a..b:1", "a b:1")) {
            String message = "address '" + wrong + "' is not HOST:PORT or [IPV6]:PORT";
            assertBad(message, () -> address(wrong));
        }
        for (String wrong : List.of("http://a:1", "a/b", "1:2:x")) {
            String message =
                    "address '" + wrong + "' is not HOST:PORT or [IPV6]:PORT; it has no http://";
            assertBad(message, () -> address(wrong));
        }
    }

    @Test
    public void names() {
        String size = " must be a text of 1 to 128 bytes";
        assertBad("namespace" + size, () -> builder().namespace("").build());
        assertBad("namespace" + size, () -> builder().namespace(null).build());
        assertBad("clientId" + size, () -> builder().clientId("é".repeat(65)).build());
        String characters = " must not have control characters or surrogates";
        assertBad("namespace" + characters, () -> builder().namespace("a\nb").build());
        assertBad("clientId" + characters, () -> builder().clientId("a\ud800").build());
        assertBad("clientId must not begin with @", () -> builder().clientId("@a").build());
        assertEquals("é".repeat(64), builder().clientId("é".repeat(64)).config().clientId);
        assertTrue(builder().config().clientId.startsWith("java-"));
    }

    @Test
    public void times() {
        String range = " must be 0 to 3600 seconds, not ";
        Duration late = Duration.ofHours(2);
        assertBad("timeout" + range + "PT2H", () -> builder().timeout(late).build());
        assertBad("timeout" + range + "null", () -> builder().timeout(null).build());
        assertBad("timeout must be above 0", () -> builder().timeout(Duration.ZERO).build());
        assertBad("waitUpTo" + range + "PT2H", () -> new Options().waitUpTo(late));
        assertBad("timeout" + range + "PT-1S", () -> new Options().timeout(Duration.ofSeconds(-1)));
    }

    @Test
    public void secrets() {
        assertBad("secret must be a String, not null", () -> builder().secret((String) null));
        assertBad("secret must have 1 to 256 bytes", () -> builder().secret(""));
        assertBad("secret must have 1 to 256 bytes", () -> builder().secret("x".repeat(257)));
        assertBad(
                "secret must not have control characters, such as the end of a line, or surrogates",
                () -> builder().secret("x\n"));
    }

    @Test
    public void tls() {
        assertBad(
                "tlsServerName must be a host's name or address, not '.a'",
                () -> builder().tlsServerName(".a").build());
        assertBad(
                "tlsServerName is set, but tls is false",
                () -> builder().tls(false).tlsServerName("a").build());
        Map<String, String> wrong = Map.of("NOWCALLS_TLS", "yes");
        assertBad(
                "NOWCALLS_TLS: 'yes' is neither on nor off",
                () -> builder().environment(wrong).build());
    }

    @Test
    public void localLevels() {
        assertBad("localLevel of 7 must be from 0 on, not -1", () -> builder().localLevel(7, -1));
        assertEquals(
                Map.of(7L, 0L, "a", 3L),
                builder().localLevel(7, 0).localLevel("a", 3).config().localLevels);
    }

    @Test
    public void items() {
        assertBad("flowId must be 1 to 9223372036854775807, not 0", () -> Item.of(0));
        assertBad("resource must be 1 to 1024 bytes, not 0", () -> Item.of(""));
        assertBad("resource must be 1 to 1024 bytes, not 1026", () -> Item.of("é".repeat(513)));
        assertBad("resource must not have lone surrogates", () -> Item.of("a\udc00"));
        assertBad("count must be 1 to 2147483647, not 0", () -> Item.of(1).count(0));
        long large = 1L << 31;
        assertBad("count must be 1 to 2147483647, not " + large, () -> Item.of(1).count(large));
        assertBad("param must not be NaN", () -> Item.of(1).param(Double.NaN));
        assertBad(
                "param must be an integer, a Double, Float, Boolean or String, not ArrayList",
                () -> Item.of(1).param(new ArrayList<>()));
        assertEquals("flow 'a', count 2, param 'k'", Item.of("a").count(2).param("k").toString());
    }

    @Test
    public void calls() throws Exception {
        try (Client client = builder("127.0.0.1:1").build()) {
            Options usual = new Options();
            assertBad(
                    "acquireAll takes 1 to 64 items, not 0",
                    () -> client.acquireAll(List.of(), usual));
            assertBad(
                    "acquireAll takes 1 to 64 items, not 65",
                    () -> client.acquireAll(Collections.nCopies(65, Item.of(1)), usual));
            assertBad(
                    "a rate is an item of acquireAll, or a request",
                    () -> client.acquire(Item.rate(1), usual));
            assertBad(
                    "a value must be an integer, a Double, Float, Boolean or String, not Object",
                    () -> client.requestParam(Item.of(1), List.of(new Object()), usual));
            assertBad("clientId must not begin with @", () -> builder().clientId("@").build());
        }
    }
}
