package io.nowcalls;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;
import static org.junit.Assume.assumeTrue;

import java.util.List;
import java.util.Map;
import org.junit.Before;
import org.junit.BeforeClass;
import org.junit.Test;

/** Flows by name: the resource of a rule where its number could stand. */
public class NamesTest extends Served {
    private static boolean isKnown;

    @BeforeClass
    public static void ask() throws Exception {
        isKnown = ServerProcess.knowsNames();
    }

    @Before
    public void needsNames() {
        assumeTrue("skipped: this server knows no names", isKnown);
    }

    private static Map<String, Object> named(String resource, double count) {
        Map<String, Object> rule = ServerProcess.rule(0, count, Map.of());
        rule.put("resource", resource);
        return rule;
    }

    @Test
    public void aNameWorksWhereverANumberDoes() throws Exception {
        loadRule(named("checkout", 2));
        loadRule(named("search", 9));
        Client client = client();
        long number = (Long) client.flow("checkout").get("flow_id");
        assertTrue(number >= 1L << 52 && number < 1L << 53);
        try (Permit one = client.acquire("checkout");
                Permit two = client.acquire(number)) {
            assertEquals("flow 'checkout', count 1", one.item().toString());
            assertEquals(2L, client.flow("checkout").get("now_calls"));
            int tokens = 0;
            for (Map<String, Object> row : client.tokens(Item.of("checkout"), null)) {
                assertEquals(number, row.get("flow_id"));
                tokens++;
            }
            assertEquals(2, tokens);
            assertThrown(
                    RefusedException.class,
                    "flow 'checkout' refused by level: 2 of 2 in progress",
                    () -> client.acquire("checkout"));
            assertTrue(two.tokenId() != one.tokenId());
        }
        assertEquals(8, client.request(Item.of("search"), new Options()).remaining());
        List<Item> items = List.of(Item.of("checkout"), Item.of("search").count(2));
        for (Permit permit : client.acquireAll(items, new Options())) {
            permit.close();
        }
        assertThrown(
                NoRuleException.class,
                "flow 'Checkout' has no rule",
                () -> client.acquire("Checkout"));
        assertEquals(0L, client.flow("checkout").get("now_calls"));
    }

    @Test
    public void aNameIsTheSameFlowAfterKill9() throws Exception {
        server = open(new ServerProcess());
        loadRule(named("checkout", 1));
        Client client = client();
        try (Permit permit = client.acquire("checkout")) {
            server.kill();
            server.start();
            thrown(RefusedException.class, () -> client.acquire("checkout"));
            assertTrue(permit.release());
        }
        client.acquire("checkout").close();
    }
}
