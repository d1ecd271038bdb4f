// Listings of tokens: oldest first, page by page, while the tokens come and go.
#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/core_harness.h"

namespace nowcalls::core {
namespace {

using testing::CoreHarness;

struct Page {
  std::vector<TokenId> tokens;
  uint64_t cursor = 0;
};

Page List(CoreHarness* h, const TokenFilter& filter, uint32_t limit, uint64_t cursor = 0) {
  const auto page = h->core().ListTokens(h->now(), 1, filter, limit, cursor);
  REQUIRE(page.status().ToString() == "ok");
  Page result;
  for (const TokenSlot slot : page->tokens) {
    result.tokens.push_back(h->core().books().IdOf(h->core().books().tokens().at(slot)));
  }
  result.cursor = page->next_cursor;
  return result;
}

TokenFilter Filter(std::optional<FlowId> flow, std::optional<std::string> client_id = std::nullopt,
                   int64_t min_age_ms = 0) {
  TokenFilter filter;
  filter.flow = flow;
  filter.client_id = std::move(client_id);
  filter.min_age_ms = min_age_ms;
  return filter;
}

using Tokens = std::vector<TokenId>;

// Two flows, two clients, ten tokens: token i is of flow 1 + i % 2 and of client i % 3 == 0 ? a :
// b.
struct TenTokens {
  TenTokens() {
    h.Rules({{.flow = 1, .count = 100, .resource_timeout_ms = 60'000},
             {.flow = 2, .count = 100, .resource_timeout_ms = 600'000}});
    a = h.Hello("a");
    b = h.Hello("b");
    for (int i = 0; i < 10; ++i) {
      tokens.push_back(h.Take(i % 3 == 0 ? a : b, 1 + i % 2));
      h.Sleep(100);
    }
  }
  Tokens Of(const std::vector<size_t>& which) const {
    Tokens some;
    for (const size_t i : which) some.push_back(tokens[i]);
    return some;
  }

  CoreHarness h;
  SessionSlot a = kNoSession;
  SessionSlot b = kNoSession;
  Tokens tokens;
};

TEST_CASE("all tokens are listed in the order of issue") {
  TenTokens t;
  const Page page = List(&t.h, {}, 100);
  CHECK(page.tokens == t.tokens);
  CHECK(page.cursor == 0);
}

TEST_CASE("a listing is taken page by page and ends with cursor 0") {
  TenTokens t;
  const Page first = List(&t.h, {}, 4);
  CHECK(first.tokens == t.Of({0, 1, 2, 3}));
  REQUIRE(first.cursor != 0);
  const Page second = List(&t.h, {}, 4, first.cursor);
  CHECK(second.tokens == t.Of({4, 5, 6, 7}));
  const Page third = List(&t.h, {}, 4, second.cursor);
  CHECK(third.tokens == t.Of({8, 9}));
  CHECK(third.cursor == 0);
  CHECK(List(&t.h, {}, 10).cursor == 0);  // A page that just fits is the last.
}

TEST_CASE("a filter by flow, client and age shows what fits all three") {
  TenTokens t;
  CHECK(List(&t.h, Filter(FlowId{2}), 100).tokens == t.Of({1, 3, 5, 7, 9}));
  CHECK(List(&t.h, Filter(std::nullopt, "a"), 100).tokens == t.Of({0, 3, 6, 9}));
  CHECK(List(&t.h, Filter(FlowId{1}, "b"), 100).tokens == t.Of({2, 4, 8}));
  CHECK(List(&t.h, Filter(std::nullopt, std::nullopt, 800), 100).tokens == t.Of({0, 1, 2}));
  CHECK(List(&t.h, Filter(std::nullopt, std::nullopt, 801), 100).tokens == t.Of({0, 1}));
  CHECK(List(&t.h, Filter(std::nullopt, std::nullopt, 5000), 100).tokens.empty());
  CHECK(List(&t.h, Filter(FlowId{7}), 100).tokens.empty());
  CHECK(List(&t.h, Filter(std::nullopt, "nobody"), 100).tokens.empty());
}

TEST_CASE("a filter by session reads the list of the session") {
  TenTokens t;
  const auto of = [&](SessionSlot slot) {
    TokenFilter filter;
    filter.session = t.h.core().books().sessions().at(slot).id;
    return filter;
  };
  const Page first = List(&t.h, of(t.a), 3);
  CHECK(first.tokens == t.Of({0, 3, 6}));
  CHECK(List(&t.h, {}, 3, first.cursor).tokens == t.Of({9}));
  CHECK(List(&t.h, of(t.b), 100).tokens == t.Of({1, 2, 4, 5, 7, 8}));
  TokenFilter both = of(t.b);
  both.flow = FlowId{2};
  CHECK(List(&t.h, both, 100).tokens == t.Of({1, 5, 7}));
  both.client_id = "a";
  CHECK(List(&t.h, both, 100).tokens.empty());
  TokenFilter nobody;
  nobody.session = SessionId{4711};
  CHECK(List(&t.h, nobody, 100).tokens.empty());
}

TEST_CASE("the filter of the first page holds for the later ones") {
  TenTokens t;
  const Page first = List(&t.h, Filter(std::nullopt, "a"), 2);
  CHECK(first.tokens == t.Of({0, 3}));
  CHECK(List(&t.h, {}, 100, first.cursor).tokens == t.Of({6, 9}));
}

TEST_CASE("tokens that end between two pages are left out and no other is missed or repeated") {
  TenTokens t;
  const Page first = List(&t.h, {}, 3);
  for (const size_t i : {0, 3, 4, 8}) t.h.Reclaim(t.tokens[i]);  // 3 is where the cursor stands.
  const TokenId added = t.h.Take(t.a, 1);
  const Page second = List(&t.h, {}, 3, first.cursor);
  CHECK(second.tokens == t.Of({5, 6, 7}));
  const Page third = List(&t.h, {}, 3, second.cursor);
  CHECK(third.tokens == Tokens{t.tokens[9], added});
  CHECK(third.cursor == 0);
}

TEST_CASE("tokens of a session that end between two pages are left out") {
  TenTokens t;
  TokenFilter of_b;
  of_b.session = t.h.core().books().sessions().at(t.b).id;
  const Page first = List(&t.h, of_b, 2);
  CHECK(first.tokens == t.Of({1, 2}));
  for (const size_t i : {1, 4, 5, 6}) t.h.Reclaim(t.tokens[i]);  // 4 is where the cursor stands.
  const TokenId added = t.h.Take(t.b, 1);
  t.h.Take(t.a, 1);
  CHECK(List(&t.h, {}, 10, first.cursor).tokens == Tokens{t.tokens[7], t.tokens[8], added});
}

TEST_CASE("a listing whose remaining tokens all end is empty and over") {
  TenTokens t;
  const Page all = List(&t.h, {}, 3);
  const Page flow = List(&t.h, Filter(FlowId{1}), 2);
  for (const TokenId token : t.tokens) t.h.Reclaim(token);
  for (const uint64_t cursor : {all.cursor, flow.cursor}) {
    const Page rest = List(&t.h, {}, 3, cursor);
    CHECK(rest.tokens.empty());
    CHECK(rest.cursor == 0);
  }
}

TEST_CASE("a kept token keeps its place") {
  TenTokens t;
  t.h.Keep(t.a, t.tokens[0]);
  CHECK(List(&t.h, {}, 100).tokens == t.tokens);
}

TEST_CASE("a cursor that is unknown, finished or idle for too long is not found") {
  TenTokens t;
  const auto status = [&](uint64_t cursor) {
    return t.h.core().ListTokens(t.h.now(), 1, {}, 3, cursor).status();
  };
  CHECK(
      status(12345).ToString() ==
      "not_found: cursor 12345 is none of this connection, or is used up or forgotten; list again "
      "from the beginning");
  const Page first = List(&t.h, {}, 9);
  List(&t.h, {}, 9, first.cursor);
  CHECK(status(first.cursor).code() == StatusCode::kNotFound);

  const Page idle = List(&t.h, {}, 3);
  t.h.Pass(29'999);
  const Page used = List(&t.h, {}, 3, idle.cursor);
  CHECK(used.tokens.size() == 3);
  t.h.Pass(29'999);
  const Page last = List(&t.h, {}, 1, used.cursor);
  CHECK(last.tokens.size() == 1);
  t.h.Pass(30'000);
  CHECK(status(last.cursor).code() == StatusCode::kNotFound);
}

TEST_CASE("a cursor is good for one request of its connection") {
  TenTokens t;
  const Page first = List(&t.h, {}, 3);
  CHECK(t.h.core().ListTokens(t.h.now(), 2, {}, 3, first.cursor).status().code() ==
        StatusCode::kNotFound);
  const Page second = List(&t.h, {}, 3, first.cursor);
  CHECK(second.tokens == std::vector<TokenId>(t.tokens.begin() + 3, t.tokens.begin() + 6));
  CHECK(second.cursor != first.cursor);
  CHECK(t.h.core().ListTokens(t.h.now(), 1, {}, 3, first.cursor).status().code() ==
        StatusCode::kNotFound);
}

TEST_CASE("the clock is asked for the moment at which a listing becomes idle") {
  CoreHarness h;
  h.Rules({{.flow = 1, .resource_timeout_ms = 10'000'000}});
  const SessionSlot a = h.Hello("a");
  h.Take(a, 1);
  h.Take(a, 1);
  const uint64_t cursor = List(&h, {}, 1).cursor;
  REQUIRE(cursor != 0);
  CHECK(h.core().NextDeadline() == h.now() + 30'000);
  h.Pass(30'000);
  CHECK(h.core().NextDeadline() > h.now() + 1'000'000);
}

TEST_CASE("a cursor of before a restart does not go on with somebody's listing of after it") {
  CoreHarness h;
  h.Rules({{.flow = 1, .resource_timeout_ms = 10'000'000}});
  const SessionSlot a = h.Hello("a");
  for (int i = 0; i < 3; ++i) h.Take(a, 1);
  const uint64_t before = List(&h, {}, 1).cursor;
  h.Commit();
  h.Restart();
  h.Commit();
  const uint64_t after = List(&h, {}, 1).cursor;
  CHECK(after != before);
  CHECK(h.core().ListTokens(h.now(), 1, {}, 1, before).status().code() == StatusCode::kNotFound);
}

TEST_CASE("of more listings than listings_max the one unused for longest is forgotten") {
  CoreOptions options = testing::HarnessOptions();
  options.limits.listings_max = 3;
  CoreHarness h(options);
  h.Rules({{.flow = 1, .resource_timeout_ms = 10'000'000}});
  const SessionSlot a = h.Hello("a");
  for (int i = 0; i < 5; ++i) h.Take(a, 1);
  std::vector<uint64_t> cursors;
  for (int i = 0; i < 3; ++i) {
    cursors.push_back(List(&h, {}, 1).cursor);
    h.Sleep(10);
  }
  cursors[0] = List(&h, {}, 1, cursors[0]).cursor;
  h.Sleep(10);
  const uint64_t newest = List(&h, {}, 1).cursor;
  CHECK(h.core().ListTokens(h.now(), 1, {}, 1, cursors[1]).status().code() ==
        StatusCode::kNotFound);
  for (const uint64_t cursor : {cursors[0], cursors[2], newest}) {
    CHECK(h.core().ListTokens(h.now(), 1, {}, 1, cursor).ok());
  }
}

TEST_CASE("a connection with many listings loses its own, not those of others") {
  CoreHarness h;
  h.Rules({{.flow = 1, .resource_timeout_ms = 10'000'000}});
  const SessionSlot a = h.Hello("a");
  for (int i = 0; i < 3; ++i) h.Take(a, 1);
  const uint64_t others = h.core().ListTokens(h.now(), 2, {}, 1, 0)->next_cursor;
  h.Sleep(10);
  const uint64_t first = List(&h, {}, 1).cursor;
  for (int i = 0; i < 100; ++i) {
    h.Sleep(10);
    List(&h, {}, 1);
  }
  CHECK(h.core().ListTokens(h.now(), 1, {}, 1, first).status().code() == StatusCode::kNotFound);
  CHECK(h.core().ListTokens(h.now(), 2, {}, 1, others).ok());
}

TEST_CASE("many connections that leave listings behind do not end that of one who goes on") {
  CoreOptions options = testing::HarnessOptions();
  options.limits.listings_max = 8;
  options.limits.listings_per_connection_max = 2;
  CoreHarness h(options);
  h.Rules({{.flow = 1, .resource_timeout_ms = 10'000'000}});
  const SessionSlot a = h.Hello("a");
  for (int i = 0; i < 4; ++i) h.Take(a, 1);
  constexpr uint32_t kDump = 100;
  uint64_t cursor = h.core().ListTokens(h.now(), kDump, {}, 1, 0)->next_cursor;
  for (int page = 0; page < 2; ++page) {
    for (uint32_t owner = 1; owner <= 5; ++owner) {
      h.Sleep(10);
      for (int i = 0; i < 3; ++i) REQUIRE(h.core().ListTokens(h.now(), owner, {}, 1, 0).ok());
    }
    const auto next = h.core().ListTokens(h.now(), kDump, {}, 1, cursor);
    REQUIRE(next.ok());
    cursor = next->next_cursor;
  }
}

TEST_CASE("a page that finds nothing in a long list ends early and goes on with its cursor") {
  CoreHarness h;
  h.Rules({{.flow = 1, .count = 1e6, .resource_timeout_ms = 10'000'000}});
  const SessionSlot a = h.Hello("a");
  h.auto_commit = false;
  for (int i = 0; i < 50'000; ++i) h.Take(a, 1);
  const TokenId last = h.Take(h.Hello("b"), 1);
  h.Commit();
  Page page = List(&h, Filter(std::nullopt, "b"), 10);
  int pages = 1;
  while (page.cursor != 0 && page.tokens.empty()) {
    page = List(&h, Filter(std::nullopt, "b"), 10, page.cursor);
    ++pages;
  }
  CHECK(pages == 11);
  CHECK(page.tokens == Tokens{last});
}

}  // namespace
}  // namespace nowcalls::core
