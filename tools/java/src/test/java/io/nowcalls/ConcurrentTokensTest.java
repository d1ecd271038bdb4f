package io.nowcalls;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;

import java.time.Duration;
import java.util.Map;
import org.junit.Test;

/** The methods of Sentinel's TokenService. */
public class ConcurrentTokensTest extends Served {
    @Test
    public void tokensAreTakenAndReleasedById() throws Exception {
        long flow = load(3, Map.of());
        ConcurrentTokens tokens = new ConcurrentTokens(client(), new Options());
        TokenResult two = tokens.requestConcurrentToken("10.0.0.1", flow, 2);
        TokenResult one = tokens.requestConcurrentToken("10.0.0.1", flow, 1);
        assertEquals(0, two.getStatus());
        assertTrue(two.getTokenId() > 0 && one.getTokenId() > 0);
        assertEquals(3, server.nowCalls(flow));
        assertEquals(1, tokens.requestConcurrentToken("10.0.0.1", flow, 1).getStatus());
        assertEquals(6, tokens.releaseConcurrentToken(two.getTokenId()).getStatus());
        assertEquals(7, tokens.releaseConcurrentToken(two.getTokenId()).getStatus());
        assertEquals(1, server.nowCalls(flow));
        server.call("reclaim", one.getTokenId(), "a test");
        assertEquals(7, tokens.releaseConcurrentToken(one.getTokenId()).getStatus());
        assertEquals(0, tokens.size());
    }

    @Test
    public void whatFailsIsAStatus() {
        ConcurrentTokens tokens = new ConcurrentTokens(client(), new Options());
        assertEquals(3, tokens.requestConcurrentToken("", 123_456L, 1).getStatus());
        assertEquals(-4, tokens.requestConcurrentToken("", 0L, 1).getStatus());
        assertEquals(-4, tokens.requestConcurrentToken("", null, 1).getStatus());
        assertEquals(-4, tokens.requestConcurrentToken("", 1L, 0).getStatus());
        assertEquals(7, tokens.releaseConcurrentToken(null).getStatus());
        assertEquals(7, tokens.releaseConcurrentToken(5L).getStatus());
        Options hasty = new Options().timeout(Duration.ofMillis(50));
        Client alone = open(settings("127.0.0.1:1").build());
        ConcurrentTokens none = new ConcurrentTokens(alone, hasty);
        assertEquals(-1, none.requestConcurrentToken("", 1L, 1).getStatus());
    }

    @Test
    public void localTokensHaveIdsOfTheirOwn() {
        Client alone = open(settings("127.0.0.1:1").fallback(FallbackMode.PASS).build());
        ConcurrentTokens tokens = new ConcurrentTokens(alone, new Options());
        TokenResult one = tokens.requestConcurrentToken("", 1L, 1);
        TokenResult two = tokens.requestConcurrentToken("", 1L, 1);
        assertEquals(-1, one.getTokenId());
        assertEquals(-2, two.getTokenId());
        assertEquals(6, tokens.releaseConcurrentToken(-1L).getStatus());
        assertEquals(7, tokens.releaseConcurrentToken(-1L).getStatus());
        assertEquals(6, tokens.releaseConcurrentToken(-2L).getStatus());
    }
}
