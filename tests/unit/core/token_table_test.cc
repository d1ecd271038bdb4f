#include "core/tables/token_table.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "base/prng.h"

namespace nowcalls::core {
namespace {

TEST_CASE("when a hold began is exact for 24 days, and then less than a second too late") {
  constexpr int64_t kDayMs = 24LL * 3600 * 1000;
  TokenEntry entry;
  entry.issued_ms = 1'700'000'000'123;
  const auto told = [&entry](int64_t since_issue_ms) {
    entry.SetHeldSince(entry.issued_ms + since_issue_ms);
    return entry.held_since_ms() - entry.issued_ms;
  };
  for (const int64_t exact : {int64_t{0}, int64_t{1}, 24 * kDayMs, (int64_t{1} << 31) - 1}) {
    CHECK(told(exact) == exact);
  }
  CHECK(told(-5) == 0);
  for (const int64_t late : {int64_t{1} << 31, 50 * kDayMs + 1, 20'000 * kDayMs + 999}) {
    CAPTURE(late);
    CHECK(told(late) >= late);
    CHECK(told(late) < late + 1000);
  }
  CHECK(told(60 * kDayMs) == 60 * kDayMs);
  CHECK(told(INT64_MAX / 4) == ((int64_t{1} << 31) - 1) * 1000);
}

// A table with three flows and three sessions.
struct Lists {
  TokenSlot Add(uint64_t fence, size_t flow = 0, size_t session = 0) {
    const TokenSlot slot = table.Insert(fence);
    table.at(slot).flow_slot = FlowSlot(static_cast<uint32_t>(flow));
    table.at(slot).session_slot = SessionSlot(static_cast<uint32_t>(session));
    table.Link(slot, &flows[flow], &sessions[session]);
    return slot;
  }
  void Remove(TokenSlot slot) {
    const TokenEntry& entry = table.at(slot);
    table.Erase(slot, &flows[entry.flow_slot.value], &sessions[entry.session_slot.value]);
  }
  std::vector<uint64_t> Fences(const TokenList& list, TokenOrder order) const {
    std::vector<uint64_t> fences;
    for (TokenSlot slot = list.head; slot != kNoToken; slot = table.at(slot).next(order)) {
      fences.push_back(table.at(slot).fence);
    }
    return fences;
  }

  // With a request id of its session.
  TokenSlot AddRequest(uint64_t fence, size_t session, uint64_t request_id) {
    const TokenSlot slot = Add(fence, 0, session);
    table.SetRequest(slot, request_id);
    return slot;
  }

  TokenTable table{{1, 2}};
  std::array<TokenList, 3> flows;
  std::array<TokenList, 3> sessions;
};

using Fences = std::vector<uint64_t>;

TEST_CASE("an empty table finds nothing") {
  const TokenTable table({1, 2});
  CHECK(table.Find(7) == kNoToken);
  CHECK(table.FindRequest(SessionSlot(0), 7) == kNoToken);
  CHECK(table.size() == 0);
  CHECK(table.all().head == kNoToken);
}

// Fences that are `stride` apart; short lives, or long ones when many are wanted at a time.
void CompareWithMap(uint64_t seed, uint64_t stride, size_t tokens) {
  Prng prng(seed);
  Lists books;
  std::map<uint64_t, TokenSlot> model;  // By fence.
  uint64_t issued = 0;
  for (int step = 0; step < 30'000; ++step) {
    const bool grow = model.size() < 10 || (model.size() < tokens && prng.Below(2) == 0);
    if (grow) {
      const uint64_t fence = ++issued * stride;
      model.emplace(fence, books.Add(fence, prng.Below(3), prng.Below(3)));
    } else {
      auto it = model.lower_bound(prng.Below(issued * stride));
      if (it == model.end()) it = model.begin();
      books.Remove(it->second);
      model.erase(it);
    }
    REQUIRE(books.table.size() == model.size());
    if (step % 1000 != 0) continue;
    for (uint64_t fence = stride; fence <= (issued + 1) * stride; fence += stride) {
      const auto it = model.find(fence);
      const TokenSlot expected = it == model.end() ? kNoToken : it->second;
      if (books.table.Find(fence) != expected) FAIL("fence " << fence);
    }
  }
}

TEST_CASE("random inserts, finds and erases agree with std::map") {
  for (const uint64_t stride : {1, 7, 4096, 16'384, 1 << 20}) {
    for (const size_t tokens : {size_t{20}, size_t{700}, size_t{100'000}}) {
      CAPTURE(stride);
      CAPTURE(tokens);
      CompareWithMap(stride + tokens, stride, tokens);
    }
  }
}

TEST_CASE("a token is found as well when many younger ones have come") {
  Lists books;
  const TokenSlot old = books.Add(5);
  const TokenSlot other = books.Add(6);
  for (uint64_t fence = 7; fence < 100'000; ++fence) books.Remove(books.Add(fence));
  CHECK(books.table.Find(5) == old);
  books.Remove(other);
  CHECK(books.table.Find(6) == kNoToken);
  CHECK(books.table.Find(5) == old);
  CHECK(books.table.Find(5 + 16'384) == kNoToken);
  books.Remove(old);
  CHECK(books.table.Find(5) == kNoToken);
}

TEST_CASE("each list keeps the order of issue while tokens come and go") {
  Lists books;
  std::map<uint64_t, TokenSlot> slots;
  for (uint64_t fence = 1; fence <= 9; ++fence) {
    slots[fence] = books.Add(fence, fence % 3, fence % 2);
  }
  books.Remove(slots[1]);  // Head of all.
  books.Remove(slots[9]);  // Tail of all.
  books.Remove(slots[5]);  // In the middle.
  books.Add(10);
  CHECK(books.Fences(books.table.all(), TokenOrder::kAll) == Fences{2, 3, 4, 6, 7, 8, 10});
  CHECK(books.Fences(books.flows[0], TokenOrder::kFlow) == Fences{3, 6, 10});
  CHECK(books.Fences(books.flows[1], TokenOrder::kFlow) == Fences{4, 7});
  CHECK(books.Fences(books.flows[2], TokenOrder::kFlow) == Fences{2, 8});
  CHECK(books.Fences(books.sessions[0], TokenOrder::kSession) == Fences{2, 4, 6, 8, 10});
  CHECK(books.Fences(books.sessions[1], TokenOrder::kSession) == Fences{3, 7});
  CHECK(books.flows[0].size == 3);
  CHECK(books.sessions[0].size == 5);
  CHECK(books.table.all().size == 7);
}

TEST_CASE("a list whose last token ends is empty at both ends") {
  Lists books;
  const TokenSlot slot = books.Add(1, 1, 1);
  books.Remove(slot);
  CHECK(books.flows[1].head == kNoToken);
  CHECK(books.flows[1].tail == kNoToken);
  CHECK(books.flows[1].size == 0);
  CHECK(books.table.all().tail == kNoToken);
}

TEST_CASE("a freed slot is used again, and begins with nothing of its last token") {
  Lists books;
  const TokenSlot first = books.Add(1);
  books.table.at(first).count = 77;
  books.table.at(first).deadline_ms = 99;
  books.Remove(first);
  const TokenSlot again = books.table.Insert(2);
  CHECK(again == first);
  CHECK(books.table.at(again).count == 0);
  CHECK(int64_t{books.table.at(again).deadline_ms} == 0);
  CHECK(books.table.at(again).fence == 2);
  CHECK(books.table.Find(1) == kNoToken);
}

TEST_CASE("slots do not leak: a million short calls fit in the first chunk") {
  Lists books;
  const TokenSlot stays = books.Add(1);
  uint64_t fence = 2;
  const auto call = [&] {
    books.Remove(books.Add(fence));
    ++fence;
  };
  while (fence <= 20'000) call();
  const size_t memory = books.table.MemoryBytes();
  while (fence <= 1'000'000) call();
  CHECK(books.table.MemoryBytes() == memory);
  CHECK(books.table.Find(1) == stays);
  CHECK(books.table.size() == 1);
}

TEST_CASE("a cursor moves on when its token ends, and keeps its place when others end") {
  Lists books;
  std::vector<TokenSlot> slots;
  for (uint64_t fence = 1; fence <= 5; ++fence) slots.push_back(books.Add(fence));
  TokenCursor all{TokenOrder::kAll, slots[1]};
  TokenCursor flow{TokenOrder::kFlow, slots[3]};
  TokenCursor last{TokenOrder::kSession, slots[4]};
  TokenCursor detached{TokenOrder::kAll, slots[1]};
  for (TokenCursor* cursor : {&all, &flow, &last}) books.table.Attach(cursor);
  books.table.Attach(&detached);
  books.table.Detach(&detached);

  books.Remove(slots[0]);
  CHECK(all.next == slots[1]);
  books.Remove(slots[1]);
  CHECK(all.next == slots[2]);
  CHECK(detached.next == slots[1]);
  books.Remove(slots[2]);
  CHECK(all.next == slots[3]);
  books.Remove(slots[3]);
  CHECK(all.next == slots[4]);
  CHECK(flow.next == slots[4]);
  books.Remove(slots[4]);
  CHECK(all.next == kNoToken);
  CHECK(flow.next == kNoToken);
  CHECK(last.next == kNoToken);
  for (TokenCursor* cursor : {&all, &flow, &last}) books.table.Detach(cursor);
}

TEST_CASE("a cursor follows its own list, not that of all tokens") {
  Lists books;
  const TokenSlot a = books.Add(1, /*flow=*/0);
  books.Add(2, /*flow=*/1);
  const TokenSlot c = books.Add(3, /*flow=*/0);
  TokenCursor cursor{TokenOrder::kFlow, a};
  books.table.Attach(&cursor);
  books.Remove(a);
  CHECK(cursor.next == c);
  books.table.Detach(&cursor);
}

constexpr uint64_t kChunk = 16'384;
constexpr uint64_t kRecent = 16'384;

struct Steps {
  size_t largest_recent = 0;  // While all tokens are recent ones.
  size_t largest = 0;         // After that.
};

// The most that one insert made the table grow, but for new chunks, of 300,000 with the request ids
// 1, 2, 3 and so on, or with none; shifted, as clients may choose them.
Steps LargestSteps(bool with_requests, int shift = 0) {
  Lists books;
  Steps steps;
  size_t before = books.table.MemoryBytes();
  for (uint64_t fence = 1; fence <= 300'000; ++fence) {
    if (with_requests) {
      books.AddRequest(fence, 0, std::rotl(fence, shift));
    } else {
      books.Add(fence);
    }
    const size_t now = books.table.MemoryBytes();
    const bool new_chunk = fence % kChunk == 1;
    size_t& largest = fence <= kRecent ? steps.largest_recent : steps.largest;
    if (!new_chunk) largest = std::max(largest, now - before);
    before = now;
  }
  return steps;
}

TEST_CASE("no insert makes more of the index grow than a shard") {
  const Steps steps = LargestSteps(/*with_requests=*/false);
  CHECK(steps.largest_recent == 0);
  CHECK(steps.largest > 0);
  CHECK(steps.largest <= 8 * 1024);
}

TEST_CASE("no insert of a request id makes much grow, whatever ids a client chooses") {
  for (const int shift : {0, 10, 32, 42, 54}) {
    CAPTURE(shift);
    const Steps steps = LargestSteps(/*with_requests=*/true, shift);
    CHECK(steps.largest > 0);
    CHECK(steps.largest <= 8 * 1024);
    // The table of the recent ones' is one, but never large.
    CHECK(steps.largest_recent > 0);
    CHECK(steps.largest_recent <= kRecent / 2 * 8);
  }
}

TEST_CASE("a request id finds the token of its session, until that ends") {
  Lists books;
  const TokenSlot a = books.AddRequest(1, /*session=*/0, /*request_id=*/7);
  const TokenSlot b = books.AddRequest(2, /*session=*/1, /*request_id=*/7);
  const TokenSlot c = books.AddRequest(3, /*session=*/0, /*request_id=*/8);
  const TokenSlot none = books.Add(4);
  CHECK(books.table.FindRequest(SessionSlot(0), 7) == a);
  CHECK(books.table.FindRequest(SessionSlot(1), 7) == b);
  CHECK(books.table.FindRequest(SessionSlot(0), 8) == c);
  CHECK(books.table.FindRequest(SessionSlot(1), 8) == kNoToken);
  CHECK(books.table.RequestIdOf(c) == 8);
  CHECK(books.table.RequestIdOf(none) == 0);
  books.Remove(a);
  CHECK(books.table.FindRequest(SessionSlot(0), 7) == kNoToken);
  CHECK(books.table.FindRequest(SessionSlot(1), 7) == b);
  const TokenSlot again = books.Add(5);
  REQUIRE(again == a);
  CHECK(books.table.RequestIdOf(again) == 0);
  CHECK(books.table.FindRequest(SessionSlot(0), 7) == kNoToken);
  books.table.SetRequest(again, 7);
  CHECK(books.table.FindRequest(SessionSlot(0), 7) == again);
}

TEST_CASE("a request id finds its token as well when many younger ones have come") {
  Lists books;
  const TokenSlot old = books.AddRequest(1, /*session=*/0, /*request_id=*/7);
  const TokenSlot other = books.AddRequest(2, /*session=*/0, /*request_id=*/8);
  const TokenSlot third = books.AddRequest(3, /*session=*/0, /*request_id=*/9);
  for (uint64_t fence = 4; fence <= kRecent + 2; ++fence) {
    books.Remove(books.AddRequest(fence, 0, 1'000'000 + fence));
  }
  CHECK(books.table.FindRequest(SessionSlot(0), 7) == old);    // Out of the ring.
  CHECK(books.table.FindRequest(SessionSlot(0), 8) == other);  // The same.
  CHECK(books.table.FindRequest(SessionSlot(0), 9) == third);  // Still in it.
  books.Remove(other);
  CHECK(books.table.FindRequest(SessionSlot(0), 8) == kNoToken);
  const TokenSlot again = books.AddRequest(kRecent + 3, 0, 8);
  CHECK(books.table.FindRequest(SessionSlot(0), 8) == again);
  CHECK(books.table.FindRequest(SessionSlot(0), 9) == third);
  // One in the ring and one out of it whose places there would be the same.
  REQUIRE(books.table.at(again).fence % kRecent == books.table.at(third).fence % kRecent);
  for (const TokenSlot slot : {old, third, again}) books.Remove(slot);
  for (const uint64_t id : {7, 8, 9})
    CHECK(books.table.FindRequest(SessionSlot(0), id) == kNoToken);
}

TEST_CASE("a recent token is guessed, one that has no place in the ring is not") {
  Lists books;
  CHECK(books.table.GuessRecent(1) == kNoToken);
  const TokenSlot first = books.Add(1);
  CHECK(books.table.GuessRecent(1) == first);
  for (uint64_t fence = 2; fence <= kRecent; ++fence) books.Add(fence);
  CHECK(books.table.GuessRecent(1) == first);
  books.Remove(books.Add(kRecent + 1));
  CHECK(books.table.GuessRecent(1) == kNoToken);
  CHECK(books.table.Find(1) == first);
}

TEST_CASE("random request ids come and go as in std::map") {
  Prng prng(1);
  Lists books;
  std::map<std::pair<size_t, uint64_t>, TokenSlot> model;
  for (uint64_t fence = 1; fence <= 40'000; ++fence) {
    const std::pair<size_t, uint64_t> key{prng.Below(3), 1 + prng.Below(4000)};
    const auto known = model.find(key);
    const TokenSlot expected = known == model.end() ? kNoToken : known->second;
    const TokenSlot found =
        books.table.FindRequest(SessionSlot(static_cast<uint32_t>(key.first)), key.second);
    if (found != expected) FAIL("fence " << fence);
    if (known == model.end()) {
      model[key] = books.AddRequest(fence, key.first, key.second);
    } else {
      books.Remove(known->second);
      model.erase(known);
    }
  }
  CHECK(model.size() == books.table.size());
}

TEST_CASE("the table counts the memory of request ids from the first of a chunk on") {
  Lists books;
  books.Add(1);
  const size_t without = books.table.MemoryBytes();
  books.AddRequest(2, 0, 7);
  const size_t with = books.table.MemoryBytes();
  CHECK(with >= without + kChunk * sizeof(uint64_t));
  books.AddRequest(3, 0, 8);
  CHECK(books.table.MemoryBytes() < with + 1024);
}

TEST_CASE("an entry is one cache line and the table knows what it holds") {
  CHECK(sizeof(TokenEntry) == 64);
  Lists books;
  for (uint64_t fence = 1; fence <= kChunk; ++fence) books.Add(fence);
  const size_t one_chunk = books.table.MemoryBytes();
  books.Add(kChunk + 1);
  CHECK(books.table.MemoryBytes() >= one_chunk + 1024 * 1024);
  CHECK(books.table.size() == kChunk + 1);
}

TEST_CASE("tokens that were loaded are found and end like others") {
  constexpr uint64_t kTokens = 1000;
  Lists books;
  books.table.Reserve(kTokens);
  std::vector<TokenSlot> slots;
  for (uint64_t i = 0; i < kTokens; ++i) {
    const uint64_t fence = 1 + (i * 7919) % kTokens;  // In no order.
    const TokenSlot slot = books.table.InsertLoaded(fence);
    books.table.at(slot).flow_slot = FlowSlot(0);
    books.table.at(slot).session_slot = SessionSlot(static_cast<uint32_t>(i % 3));
    if (i % 2 == 0) books.table.SetLoadedRequest(slot, fence);
    slots.push_back(slot);
  }
  REQUIRE(books.table.IndexLoaded() == kNoToken);
  CHECK(books.table.size() == kTokens);
  for (const TokenSlot slot : slots) {
    const TokenEntry& entry = books.table.at(slot);
    books.table.Link(slot, &books.flows[0], &books.sessions[entry.session_slot.value]);
    if (books.table.Find(entry.fence) != slot) FAIL("fence " << entry.fence);
    const TokenSlot with = entry.has_request != 0 ? slot : kNoToken;
    if (books.table.FindRequest(entry.session_slot, entry.fence) != with)
      FAIL("slot " << slot.value);
  }
  books.Add(kTokens + 1);
  for (const TokenSlot slot : slots) books.Remove(slot);
  CHECK(books.table.size() == 1);
  CHECK(books.table.Find(1) == kNoToken);
  CHECK(books.table.Find(kTokens + 1) != kNoToken);
}

TEST_CASE(
    "of two loaded tokens of a session with one request id one is named, but of a group none") {
  TokenTable table({1, 2});
  const auto load = [&](uint64_t fence, SessionSlot session) {
    const TokenSlot slot = table.InsertLoaded(fence);
    table.at(slot).session_slot = session;
    table.SetLoadedRequest(slot, 7);
    return slot;
  };
  const TokenSlot first = load(100, SessionSlot(0));
  load(101, SessionSlot(1));
  const TokenSlot last = load(100 + kAcquireAllMax - 1, SessionSlot(0));
  SUBCASE("they may have been issued together") {
    CHECK(table.IndexLoaded() == kNoToken);
    std::vector<TokenSlot> found;
    table.ForEachOfRequest(SessionSlot(0), 7, [&](TokenSlot slot) { found.push_back(slot); });
    CHECK(found == std::vector<TokenSlot>{first, last});
  }
  SUBCASE("their fences are too far apart") {
    const TokenSlot twin = load(100 + kAcquireAllMax, SessionSlot(0));
    CHECK(table.IndexLoaded() == twin);
  }
}

}  // namespace
}  // namespace nowcalls::core
