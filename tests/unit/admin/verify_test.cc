#include "admin/verify.h"

#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "ledger/deadline_bound.h"
#include "unit/admin/ledger_builder.h"

namespace nowcalls::admin {
namespace {

using ledger::Family;
using ledger::HistoryBlock;

struct Found {
  std::vector<Problem> problems;
  VerifySummary summary;

  // "token_id, seal": the kinds in the order they were shown.
  std::string Kinds() const {
    std::string kinds;
    for (const Problem& problem : problems) {
      kinds += (kinds.empty() ? "" : ", ") + std::string(ProblemName(problem.kind));
    }
    return kinds;
  }
};

Found VerifyStore(store::LedgerSource* store, uint64_t problems_max = 100) {
  Found found;
  Progress progress(false, "tokens", [](std::string_view) {});
  const Result<VerifySummary> summary = Verify(
      store, problems_max, [&found](const Problem& p) { found.problems.push_back(p); }, &progress);
  REQUIRE(summary.ok());
  found.summary = *summary;
  return found;
}

Found VerifyLedger(LedgerBuilder builder, uint64_t problems_max = 100) {
  store::MemoryStore store = builder.Build();
  return VerifyStore(&store, problems_max);
}

// A MemoryStore whose walk also shows what no MemoryStore can hold.
class OddStore : public store::LedgerSource {
 public:
  OddStore(LedgerBuilder builder, std::function<Status(ledger::EntityVisitor*)> more)
      : store_(builder.Build()), more_(std::move(more)) {}

  Status Load(ledger::EntityVisitor* visitor) override {
    NOWCALLS_RETURN_IF_ERROR(store_.Load(visitor));
    return more_(visitor);
  }

 private:
  store::MemoryStore store_;
  std::function<Status(ledger::EntityVisitor*)> more_;
};

TEST_CASE("a sound ledger has no problems and its sums are told") {
  const Found found = VerifyLedger(SampleLedger());
  CHECK(found.Kinds().empty());
  CHECK(found.summary.ok());
  CHECK(found.summary.rules == 3);
  CHECK(found.summary.sessions == 2);
  CHECK(found.summary.tokens == 3);
  CHECK(found.summary.now_calls == 7);
  CHECK(found.summary.batch_number == 7);
}

TEST_CASE("a ledger that was never written to is sound") {
  store::MemoryStore store{ledger::Format{}};
  CHECK(VerifyStore(&store).summary.ok());
}

TEST_CASE("a token id that is not its fence's is found, with its place") {
  LedgerBuilder builder = SampleLedger();
  ledger::Token token = builder.MakeToken(13, 101, 1, kSealedMs - 100);
  const uint64_t right_id = token.key.id.value;
  token.key.id = TokenId(5);
  const Found found = VerifyLedger(builder.Token(token));
  REQUIRE(found.Kinds() == "token_id");
  CHECK(found.problems[0].family == "tokens_short");
  CHECK(found.problems[0].key == "00000000000f517c0000000000000005");
  CHECK(found.problems[0].detail ==
        "token 5 (flow 101, session 1, fence 13) has not the id of its fence, which is " +
            std::to_string(right_id));
}

TEST_CASE("a fence beyond every id is found and not computed with") {
  LedgerBuilder builder = SampleLedger();
  ledger::Token token = builder.MakeToken(13, 101, 1, kSealedMs - 100);
  token.fence = Fence(UINT64_MAX);
  CHECK(VerifyLedger(builder.Token(token)).Kinds() == "token_id, token_fence");
}

TEST_CASE("a token in two families is found, and both records are named") {
  LedgerBuilder builder = SampleLedger();
  ledger::Token token = builder.MakeToken(11, 101, 1, kSealedMs - 1000);
  token.key.family = Family::kTokensMedium;
  token.key.deadline_ms += 60'000;
  const Found found = VerifyLedger(builder.Token(token));
  REQUIRE(found.Kinds() == "duplicate_fence, duplicate_fence");
  CHECK(found.problems[0].family == "tokens_short");
  CHECK(found.problems[1].family == "tokens_medium");
  CHECK(found.problems[1].detail.find("fence 11) has a fence that another token has too") !=
        std::string::npos);
}

TEST_CASE("two tokens of a session with one request id are found, and both records are named") {
  LedgerBuilder builder = SampleLedger();
  const auto add = [&](uint64_t fence, uint64_t session, uint64_t request_id) {
    ledger::Token token = builder.MakeToken(fence, 101, session, kSealedMs - 200);
    token.request_id = request_id;
    builder.Token(token);
  };
  constexpr uint64_t kFar = 100 + kAcquireAllMax;
  add(100, 1, 77);
  SUBCASE("of one session") {
    add(kFar, 1, 77);
    const Found found = VerifyLedger(builder);
    REQUIRE(found.Kinds() == "request_id, request_id");
    CHECK(found.problems[0].detail.ends_with(
        "fence 100) has a request id that another token of its session has too: 77"));
    CHECK(found.problems[1].detail.find("fence 164)") != std::string::npos);
  }
  SUBCASE("one acquire_all may have issued both") {
    add(kFar - 1, 1, 77);
    CHECK(VerifyLedger(builder).Kinds().empty());
  }
  SUBCASE("each has one of its own") {
    add(kFar, 1, 78);
    CHECK(VerifyLedger(builder).Kinds().empty());
  }
  SUBCASE("another session may use the same") {
    add(kFar, 2, 77);
    CHECK(VerifyLedger(builder).Kinds().empty());
  }
}

TEST_CASE("a deadline that no rule makes is found") {
  LedgerBuilder builder = SampleLedger();
  ledger::Token token = builder.MakeToken(13, 101, 1, kSealedMs - 100);
  token.key.deadline_ms = ledger::kDeadlineMsEnd - 1;
  CHECK(VerifyLedger(LedgerBuilder(builder).Token(token)).Kinds().empty());
  token.key.deadline_ms = ledger::kDeadlineMsEnd;
  const Found found = VerifyLedger(builder.Token(token));
  REQUIRE(found.Kinds() == "token_time");
  CHECK(found.problems[0].detail.ends_with(
      "has a deadline that no rule makes: " + std::to_string(ledger::kDeadlineMsEnd) + " ms"));
}

// Shows what it is told to, and no more.
class PartStore : public OddStore {
 public:
  explicit PartStore(std::function<Status(ledger::EntityVisitor*)> show)
      : OddStore(LedgerBuilder(), nullptr), show_(std::move(show)) {}
  Status Load(ledger::EntityVisitor* visitor) override { return show_(visitor); }

 private:
  std::function<Status(ledger::EntityVisitor*)> show_;
};

TEST_CASE("a clock mark without a seal, or a seal without a clock mark, is found") {
  PartStore no_seal(
      [](ledger::EntityVisitor* visitor) { return Show(ledger::ClockMark(), visitor); });
  const Found without_seal = VerifyStore(&no_seal);
  REQUIRE(without_seal.Kinds() == "clock");
  CHECK(without_seal.problems[0].detail == "there is a clock mark, but no seal");
  PartStore no_clock([](ledger::EntityVisitor* visitor) { return Show(ledger::Seal(), visitor); });
  CHECK(VerifyStore(&no_clock).problems.at(0).detail == "there is a seal, but no clock mark");
  // It may be the record that does not decode.
  PartStore broken([](ledger::EntityVisitor* visitor) {
    NOWCALLS_RETURN_IF_ERROR(
        visitor->OnBadRecord({Family::kMeta, "636c", Status::Corruption("it is short")}));
    return Show(ledger::Seal(), visitor);
  });
  CHECK(VerifyStore(&broken).Kinds() == "undecodable");
}

TEST_CASE("of a seal that does not decode nothing else is told") {
  PartStore store([](ledger::EntityVisitor* visitor) {
    NOWCALLS_RETURN_IF_ERROR(Show(ledger::ClockMark(), visitor));
    NOWCALLS_RETURN_IF_ERROR(
        visitor->OnBadRecord({Family::kMeta, "7365", Status::Corruption("it is short")}));
    return Show(HistoryBlock{LedgerBuilder().MakeEnd(1, 20, 300, EndReason::kAdmin)}, visitor);
  });
  CHECK(VerifyStore(&store).Kinds() == "undecodable");
}

TEST_CASE("a history of a ledger that was never sealed is found") {
  PartStore store([](ledger::EntityVisitor* visitor) {
    return Show(HistoryBlock{LedgerBuilder().MakeEnd(1, 20, 300, EndReason::kAdmin)}, visitor);
  });
  CHECK(VerifyStore(&store).Kinds() == "seal");
}

TEST_CASE("a session with the number of a fence is found") {
  LedgerBuilder builder = SampleLedger();
  builder.Session(12, "shop", "cart-2");
  const Found found = VerifyLedger(builder);
  REQUIRE(found.Kinds() == "duplicate_fence");
  CHECK(found.problems[0].family == "sessions");
  CHECK(found.problems[0].key == "000000000000000c");
}

TEST_CASE("a token that is held for less than its family is for is found") {
  LedgerBuilder builder = SampleLedger();
  ledger::Token token = builder.MakeToken(13, 101, 1, kSealedMs - 100);
  token.key.family = Family::kTokensLong;
  const Found found = VerifyLedger(builder.Token(token));
  REQUIRE(found.Kinds() == "token_family");
  CHECK(found.problems[0].family == "tokens_long");
}

TEST_CASE("a kept token far from its issue is sound in any family") {
  LedgerBuilder builder = SampleLedger();
  ledger::Token token = builder.MakeToken(13, 101, 1, kSealedMs - 900'000);
  token.key.deadline_ms = kSealedMs + 4000;
  CHECK(VerifyLedger(builder.Token(token)).summary.ok());
}

TEST_CASE("a fence or session number not below next_fence is found") {
  LedgerBuilder builder = SampleLedger();
  builder.seal.next_fence = 12;
  CHECK(VerifyLedger(builder).Kinds() == "token_fence");
  LedgerBuilder other = SampleLedger();
  other.Session(1000, "shop", "cart-2");
  CHECK(VerifyLedger(other).Kinds() == "session");
}

TEST_CASE("a token of an unknown session is found") {
  LedgerBuilder builder = SampleLedger();
  builder.Token(13, 101, 99, kSealedMs - 100);
  CHECK(VerifyLedger(builder).Kinds() == "token_session");
}

TEST_CASE("a token or session from after the last seal is told of, and is no damage") {
  LedgerBuilder builder = SampleLedger();
  builder.seal.ledger_ms = kSealedMs - 1500;
  builder.mark.ledger_ms = kSealedMs - 1500;
  CHECK(VerifyLedger(builder).Kinds() == "future");
  builder = SampleLedger();
  builder.seal.ledger_ms = builder.mark.ledger_ms = kSealedMs - 100'000;
  const Found found = VerifyLedger(builder);
  CHECK(found.Kinds() == "future, future, future, future, future");
  CHECK(found.summary.ok());
  CHECK(found.summary.warnings == 5);
}

TEST_CASE("a clock mark later than the seal is told of, and is no damage") {
  LedgerBuilder builder = SampleLedger();
  builder.mark.ledger_ms = kSealedMs + 1;
  const Found found = VerifyLedger(builder);
  REQUIRE(found.Kinds() == "future");
  CHECK(found.summary.ok());
  CHECK(found.problems[0].detail ==
        "the clock mark is at 1000001 ms, after the last seal at 1000000 ms");
}

TEST_CASE("each sum of the seal is compared with the tokens") {
  LedgerBuilder builder = SampleLedger();
  builder.seal.live_count_sum += 1;
  Found found = VerifyLedger(builder);
  REQUIRE(found.Kinds() == "seal");
  CHECK(found.problems[0].detail == "the sum of counts is 7, but batch 7 was sealed over 8");
  builder = SampleLedger();
  builder.seal.live_tokens = 0;
  CHECK(VerifyLedger(builder).problems[0].detail ==
        "the number of tokens is 3, but batch 7 was sealed over 0");
  builder = SampleLedger();
  builder.seal.live_fence_sum = 34;
  CHECK(VerifyLedger(builder).problems[0].detail ==
        "the sum of fences is 33, but batch 7 was sealed over 34");
}

TEST_CASE("a lost token shows as a difference to the seal") {
  LedgerBuilder builder = SampleLedger();
  builder.seal.live_tokens += 1;
  builder.seal.live_count_sum += 1;
  builder.seal.live_fence_sum += 13;
  CHECK(VerifyLedger(builder).Kinds() == "seal, seal, seal");
}

TEST_CASE("a watermark above a deadline is found, and one above the seal is told of") {
  LedgerBuilder builder = SampleLedger();
  builder.watermark_ms = kSealedMs;
  CHECK(VerifyLedger(builder).summary.ok());
  const ledger::Token below = builder.MakeToken(13, 101, 1, kSealedMs - 5000);
  builder.seal.live_tokens += 1;
  builder.seal.live_count_sum += 1;
  builder.seal.live_fence_sum += 13;
  const auto show = [&](ledger::EntityVisitor* visitor) { return visitor->OnEntity(&below); };
  OddStore store(builder, show);
  CHECK(VerifyStore(&store).Kinds() == "watermark");
  builder.watermark_ms = kSealedMs + 1;
  OddStore late(builder, show);
  CHECK(VerifyStore(&late).Kinds() == "future");
}

TEST_CASE("a rule that does not parse, or is another flow's, is found") {
  LedgerBuilder builder = SampleLedger();
  builder.RuleText("shop", 103, "{\"resource\":\"x\"}");
  Found found = VerifyLedger(builder);
  REQUIRE(found.Kinds() == "rule");
  CHECK(found.problems[0].detail.find("the rule of flow 103 in namespace 'shop' is no rule: ") ==
        0);
  builder = SampleLedger();
  builder.RuleText("shop", 103, core::RuleToJson(GlobalRule(104, 1)));
  found = VerifyLedger(builder);
  REQUIRE(found.Kinds() == "rule");
  CHECK(found.problems[0].detail == "the rule of flow 103 in namespace 'shop' says flowId 104");
}

TEST_CASE("a token without a rule, and a removed rule without a token, are found") {
  LedgerBuilder builder = SampleLedger();
  builder.Token(13, 700, 1, kSealedMs - 100);
  Found found = VerifyLedger(builder);
  REQUIRE(found.Kinds() == "token_rule");
  CHECK(found.problems[0].detail.ends_with("is of a flow without a rule"));
  builder = SampleLedger();
  builder.Rule("shop", GlobalRule(104, 1), ledger::RuleState::kRemoved);
  found = VerifyLedger(builder);
  REQUIRE(found.Kinds() == "rule");
  CHECK(found.problems[0].detail ==
        "the rule of flow 104 in namespace 'shop' was removed, but no token of it is left");
}

TEST_CASE("a flow id that two namespaces own is found") {
  LedgerBuilder builder = SampleLedger();
  builder.Rule("bank", GlobalRule(101, 1));
  const Found found = VerifyLedger(builder);
  REQUIRE(found.Kinds() == "duplicate_flow");
  CHECK(found.problems[0].detail ==
        "the rule of flow 101 in namespace 'shop' shares its flow id with another of its kind, "
        "of namespace 'bank'");
}

TEST_CASE("two rules of one flow id are sound, in one namespace or in two") {
  core::Rule by_value = GlobalRule(101, 4);
  by_value.param.emplace();
  LedgerBuilder builder = SampleLedger();
  builder.TwoRules("shop", GlobalRule(101, 10.7), by_value);
  builder.TokenOf("x", 13, 101, 1, kSealedMs - 2000);
  Found found = VerifyLedger(builder);
  CHECK(found.Kinds().empty());
  CHECK(found.summary.rules == 4);
  CHECK(found.summary.tokens == 4);
  builder = SampleLedger();
  builder.Rule("bank", by_value).TokenOf("x", 13, 101, 1, kSealedMs - 2000);
  CHECK(VerifyLedger(builder).summary.ok());
}

TEST_CASE("a token without a rule of its kind is found from format 4 on, and is sound before") {
  LedgerBuilder builder = SampleLedger();
  builder.TokenOf("x", 13, 101, 1, kSealedMs - 2000);
  const Found found = VerifyLedger(builder);
  REQUIRE(found.Kinds() == "token_rule");
  CHECK(found.problems[0].detail.ends_with("is of a flow without a rule"));
  builder.FormatVersion(3);
  CHECK(VerifyLedger(builder).summary.ok());
  // A removed rule whose tokens are all of the other kind, too.
  builder = SampleLedger();
  builder.FormatVersion(3).Rule("bank", GlobalRule(556, 9), ledger::RuleState::kRemoved);
  builder.TokenOf("x", 13, 556, 2, kSealedMs - 2000);
  CHECK(VerifyLedger(builder).summary.ok());
}

TEST_CASE("two sessions of one client id in a namespace are found") {
  LedgerBuilder builder = SampleLedger();
  builder.Session(3, "bank", "cart-1");
  CHECK(VerifyLedger(builder).summary.ok());
  builder.Session(4, "shop", "cart-1");
  const Found found = VerifyLedger(builder);
  REQUIRE(found.Kinds() == "duplicate_client");
  CHECK(found.problems[0].detail ==
        "session 4 (namespace 'shop', client 'cart-1') shares its client id with another session");
}

TEST_CASE("a session whose name cannot be one is found") {
  LedgerBuilder builder = SampleLedger();
  builder.Session(3, "shop", "");
  CHECK(VerifyLedger(builder).Kinds() == "session");
  builder = SampleLedger();
  builder.Session(3, "shop", "no-at-sign", ledger::SessionKind::kConnection);
  CHECK(VerifyLedger(builder).Kinds() == "session");
}

// The sample ledger with three ends.
LedgerBuilder WithHistory() {
  LedgerBuilder builder = SampleLedger();
  builder.End(builder.MakeEnd(7, 20, kSealedMs - 300, EndReason::kClientOffline));
  builder.End(builder.MakeEnd(8, 21, kSealedMs - 200, EndReason::kAdmin));
  builder.End(builder.MakeEnd(9, 22, kSealedMs - 200, EndReason::kResourceTimeout));
  return builder;
}

TEST_CASE("a window of calls a second of a flow without a rule is found") {
  LedgerBuilder builder = SampleLedger();
  builder.Rate(101, kSealedMs - 1000, 5);
  CHECK(VerifyLedger(builder).summary.ok());
  builder.Rate(999, kSealedMs - 1000, 5);
  const Found found = VerifyLedger(builder);
  REQUIRE(found.Kinds() == "rate");
  CHECK(found.problems[0].family == "rates");
  CHECK(found.problems[0].key == "00000000000003e700000000000f3e58");
  CHECK(found.problems[0].detail ==
        "a window of calls a second of flow 999: it has no rule of the flow");
}

TEST_CASE("a window of calls a second from after the last seal is told of, and is no damage") {
  LedgerBuilder builder = SampleLedger();
  builder.Rate(101, kSealedMs, 5);
  CHECK(VerifyLedger(builder).summary.ok());
  builder.Rate(101, kSealedMs + 1, 5);
  const Found found = VerifyLedger(builder);
  REQUIRE(found.Kinds() == "future");
  CHECK(found.summary.ok());
  CHECK(found.problems[0].detail ==
        "a window of calls a second of flow 101 begins at 1000001 ms, after the last seal at "
        "1000000 ms");
}

TEST_CASE("a token and an end with a parameter are sound") {
  LedgerBuilder builder = SampleLedger();
  core::Rule by_value = GlobalRule(103, 4);
  by_value.param.emplace();
  builder.Rule("shop", by_value);
  ledger::Token token = builder.MakeToken(20, 103, 1, kSealedMs - 1000);
  token.param.emplace(ParamType::kString, "alice");
  builder.Token(token);
  ledger::HistoryEntry end = builder.MakeEnd(1, 21, kSealedMs - 10, EndReason::kAdmin);
  end.param = token.param;
  builder.End(end);
  CHECK(VerifyLedger(builder).summary.ok());
}

TEST_CASE("a history of ends is sound and counted") {
  const Found found = VerifyLedger(WithHistory());
  CHECK(found.Kinds().empty());
  CHECK(found.summary.history == 3);
}

TEST_CASE("a gap in the history, and ends out of order, are found with their place") {
  LedgerBuilder builder = WithHistory();
  builder.End(builder.MakeEnd(11, 23, kSealedMs - 100, EndReason::kAdmin));
  Found found = VerifyLedger(builder);
  REQUIRE(found.Kinds() == "history");
  CHECK(found.problems[0].family == "history");
  CHECK(found.problems[0].key == "000000000000000b");
  CHECK(found.problems[0].detail.ends_with(
      "flow 101, fence 23) follows entry 9: those between are missing"));
  builder = WithHistory();
  builder.End(builder.MakeEnd(10, 23, kSealedMs - 201, EndReason::kAdmin));
  found = VerifyLedger(builder);
  REQUIRE(found.Kinds() == "future");
  CHECK(found.summary.ok());
  CHECK(found.problems[0].detail.ends_with(
      "tells of an end at 999799 ms, before that of the entry before it at 999800 ms"));
}

TEST_CASE("the end of a live token, and a second end of one token, are found") {
  LedgerBuilder builder = WithHistory();
  builder.End(builder.MakeEnd(10, 11, kSealedMs - 100, EndReason::kAdmin));
  Found found = VerifyLedger(builder);
  REQUIRE(found.Kinds() == "history");
  CHECK(found.problems[0].detail == "entry 10 (fence 11) tells of the end of a token that is live");
  builder = WithHistory();
  builder.End(builder.MakeEnd(10, 21, kSealedMs - 100, EndReason::kAdmin));
  found = VerifyLedger(builder);
  REQUIRE(found.Kinds() == "history");
  CHECK(found.problems[0].detail ==
        "entry 10 (fence 21) tells of an end that entry 8 tells of too");
}

TEST_CASE("an end of a token that was never granted is found, and one in the future is told of") {
  LedgerBuilder builder = WithHistory();
  builder.End(builder.MakeEnd(10, 1000, kSealedMs - 100, EndReason::kAdmin));
  CHECK(VerifyLedger(builder).Kinds() == "history");
  builder = WithHistory();
  builder.End(builder.MakeEnd(10, 23, kSealedMs + 1, EndReason::kAdmin));
  CHECK(VerifyLedger(builder).Kinds() == "future");
  builder = WithHistory();
  ledger::HistoryEntry entry = builder.MakeEnd(10, 23, kSealedMs, EndReason::kAdmin);
  CHECK(VerifyLedger(LedgerBuilder(builder).End(entry)).summary.ok());
  entry.token_id = TokenId(5);
  CHECK(VerifyLedger(LedgerBuilder(builder).End(entry)).Kinds() == "history");
}

TEST_CASE("an entry that does not decode is not called missing too") {
  OddStore store(WithHistory(), [](ledger::EntityVisitor* visitor) {
    NOWCALLS_RETURN_IF_ERROR(visitor->OnBadRecord(
        {Family::kHistory, "000000000000000a", Status::Corruption("history value: fence is 0")}));
    return Show(HistoryBlock{LedgerBuilder().MakeEnd(11, 23, kSealedMs - 100, EndReason::kAdmin)},
                visitor);
  });
  CHECK(VerifyStore(&store).Kinds() == "undecodable");
}

TEST_CASE("a draining rule is sound without a token, unlike a removed one") {
  LedgerBuilder builder = SampleLedger();
  builder.Rule("shop", GlobalRule(104, 1), ledger::RuleState::kDraining);
  CHECK(VerifyLedger(builder).summary.ok());
}

TEST_CASE("a record that does not decode is found, and the walk goes on") {
  OddStore store(SampleLedger(), [](ledger::EntityVisitor* visitor) {
    NOWCALLS_RETURN_IF_ERROR(visitor->OnBadRecord(
        {Family::kTokensLong, "00ff", Status::Corruption("token value: fence is 0")}));
    return visitor->OnBadRecord(
        {Family::kTokensLong, "", Status::Corruption("the block has no checksum")});
  });
  const Found found = VerifyStore(&store);
  REQUIRE(found.Kinds() == "undecodable, undecodable");
  CHECK(found.problems[0].family == "tokens_long");
  CHECK(found.problems[0].key == "00ff");
  CHECK(found.problems[0].detail == "token value: fence is 0");
  CHECK(found.problems[1].family.empty());
  CHECK(found.problems[1].detail == "the block has no checksum");
}

TEST_CASE("problems beyond the limit are counted and not shown") {
  LedgerBuilder builder = SampleLedger();
  for (uint64_t fence = 13; fence < 23; ++fence) builder.Token(fence, 101, 99, kSealedMs - 100);
  builder.seal.live_count_sum = 1;
  const Found found = VerifyLedger(builder, 3);
  CHECK(found.Kinds() == "token_session, token_session, token_session");
  CHECK(found.summary.problems == 11);
  CHECK(found.summary.by_kind.at(ProblemKind::kTokenSession) == 10);
  CHECK(found.summary.by_kind.at(ProblemKind::kSeal) == 1);
}

TEST_CASE("damage that ends the walk is a problem, and what was read before is still checked") {
  LedgerBuilder builder = SampleLedger();
  builder.Token(11, 101, 99, kSealedMs - 500);
  builder.seal.live_tokens += 5;
  OddStore store(builder, [](ledger::EntityVisitor*) { return Status::Corruption("000012.sst"); });
  const Found found = VerifyStore(&store);
  REQUIRE(found.Kinds() == "token_session, unreadable, duplicate_fence, duplicate_fence");
  CHECK(found.problems[1].detail == "000012.sst");
  CHECK(found.summary.tokens == 4);
}

TEST_CASE("a family that cannot be read to its end is a problem, and those behind it are checked") {
  LedgerBuilder builder = SampleLedger();
  const ledger::Token behind = builder.MakeToken(2000, 101, 1, kSealedMs - 100);
  builder.seal.live_tokens += 7;
  OddStore store(builder, [&](ledger::EntityVisitor* visitor) {
    NOWCALLS_RETURN_IF_ERROR(
        visitor->OnUnreadable(Family::kTokensShort, Status::Corruption("000012.sst")));
    return visitor->OnEntity(&behind);
  });
  const Found found = VerifyStore(&store);
  // The sums are not compared: nobody knows what is in the part that cannot be read.
  REQUIRE(found.Kinds() == "unreadable, token_fence");
  CHECK(found.problems[0].family == "tokens_short");
  CHECK(found.problems[0].key.empty());
  CHECK(found.problems[0].detail == "000012.sst");
  CHECK(found.summary.tokens == 4);
}

TEST_CASE(
    "tokens of sessions that cannot be read are not called orphans, and the sums are checked") {
  LedgerBuilder builder = SampleLedger();
  builder.seal.live_tokens += 1;
  const ledger::Token orphan = builder.MakeToken(13, 101, 99, kSealedMs - 100);
  builder.seal.live_count_sum += 1;
  builder.seal.live_fence_sum += 14;
  OddStore store(builder, [&](ledger::EntityVisitor* visitor) {
    NOWCALLS_RETURN_IF_ERROR(visitor->OnUnreadable(Family::kSessions, Status::Corruption("bad")));
    return visitor->OnEntity(&orphan);
  });
  CHECK(VerifyStore(&store).Kinds() == "unreadable, seal");
}

TEST_CASE("duplicates are named though a family cannot be read to its end") {
  LedgerBuilder builder = SampleLedger();
  const ledger::Token twin = builder.MakeToken(12, 101, 1, kSealedMs - 100);
  OddStore store(builder, [&](ledger::EntityVisitor* visitor) {
    NOWCALLS_RETURN_IF_ERROR(
        visitor->OnUnreadable(Family::kTokensShort, Status::Corruption("bad")));
    return visitor->OnEntity(&twin);
  });
  CHECK(VerifyStore(&store).Kinds() == "unreadable, duplicate_fence, duplicate_fence");
}

TEST_CASE("a ledger that the disk refuses to give is not called anything") {
  OddStore store(SampleLedger(), [](ledger::EntityVisitor*) { return Status::IoError("gone"); });
  Progress progress(false, "tokens", [](std::string_view) {});
  const auto ignore = [](const Problem&) {};
  CHECK(Verify(&store, 100, ignore, &progress).status().ToString() == "io_error: gone");
}

}  // namespace
}  // namespace nowcalls::admin
