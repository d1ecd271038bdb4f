#include "admin/offline_source.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "unit/admin/ledger_builder.h"

namespace nowcalls::admin {
namespace {

using wire::FlowRow;
using wire::SessionRow;
using wire::TokenRow;

// A moment two seconds after the clock mark of the sample ledger, on the same boot.
ClockSample Machine() { return {.boottime_ms = 52'000, .wall_ms = 9'000'000, .boot_id = {1}}; }
constexpr int64_t kNowMs = kSealedMs - 500 + 2000;

struct Offline {
  explicit Offline(LedgerBuilder builder) : store(builder.Build()) {}

  std::vector<TokenRow> Tokens(const RowFilter& filter) {
    std::vector<TokenRow> rows;
    status = source.Tokens(filter, [&rows](const TokenRow& row) {
      rows.push_back(row);
      return Status::Ok();
    });
    std::sort(rows.begin(), rows.end(),
              [](const TokenRow& a, const TokenRow& b) { return a.fence < b.fence; });
    return rows;
  }
  std::vector<uint64_t> Fences(const RowFilter& filter) {
    std::vector<uint64_t> fences;
    for (const TokenRow& row : Tokens(filter)) fences.push_back(row.fence);
    return fences;
  }
  std::vector<FlowRow> Flows() {
    std::vector<FlowRow> rows;
    status = source.Flows([&rows](const FlowRow& row) {
      rows.push_back(row);
      return Status::Ok();
    });
    return rows;
  }
  std::vector<SessionRow> Sessions() {
    std::vector<SessionRow> rows;
    status = source.Sessions([&rows](const SessionRow& row) {
      rows.push_back(row);
      return Status::Ok();
    });
    return rows;
  }

  store::MemoryStore store;
  Progress progress{false, "tokens", [](std::string_view) {}};
  OfflineSource source{&store, Machine(), &progress};
  Status status;
};

TEST_CASE("a token read offline names its session's namespace and client, and nothing live") {
  Offline offline(SampleLedger());
  const std::vector<TokenRow> rows = offline.Tokens({});
  REQUIRE(offline.status.ok());
  REQUIRE(rows.size() == 3);
  CHECK(rows[0] == TokenRow{.token_id = SampleLedger().MakeToken(10, 1, 1, 0).key.id.value,
                            .flow_id = 101,
                            .name_space = "shop",
                            .client_id = "cart-1",
                            .session = 1,
                            .count = 2,
                            .fence = 10,
                            .issued_ms = kSealedMs - 3000,
                            .deadline_ms = kSealedMs + 1000,
                            .online = std::nullopt});
  CHECK(rows[2].name_space == "bank");
  CHECK(rows[2].flow_id == 555);
}

TEST_CASE("now is recovered from the clock mark, as the server does") {
  CHECK(*Offline(SampleLedger()).source.NowMs() == kNowMs);
}

TEST_CASE("now is never before the last seal") {
  LedgerBuilder builder = SampleLedger();
  builder.seal.ledger_ms = kSealedMs + 60'000;
  CHECK(*Offline(builder).source.NowMs() == kSealedMs + 60'000);
}

TEST_CASE("filters select by flow, client, namespace and age, and by all of them") {
  Offline offline(SampleLedger());
  using Fences = std::vector<uint64_t>;
  CHECK(offline.Fences({.flow_id = 101}) == Fences{10, 11});
  CHECK(offline.Fences({.client_id = "teller-1"}) == Fences{12});
  CHECK(offline.Fences({.name_space = "shop"}) == Fences{10, 11});
  CHECK(offline.Fences({.min_age_ms = kNowMs - (kSealedMs - 2000)}) == Fences{10, 12});
  CHECK(offline.Fences({.min_age_ms = kNowMs - (kSealedMs - 2000) + 1}) == Fences{10});
  CHECK(offline.Fences({.flow_id = 101, .client_id = "teller-1"}).empty());
}

TEST_CASE("the oldest tokens come oldest first, as many as asked for") {
  Offline offline(SampleLedger());
  std::vector<uint64_t> fences;
  const auto sink = [&fences](const TokenRow& row) {
    fences.push_back(row.fence);
    return Status::Ok();
  };
  REQUIRE(offline.source.OldestTokens({}, 2, sink).ok());
  CHECK(fences == std::vector<uint64_t>{10, 12});
}

TEST_CASE("flows are the sums of their tokens joined with the rules") {
  Offline offline(SampleLedger());
  const std::vector<FlowRow> rows = offline.Flows();
  REQUIRE(offline.status.ok());
  REQUIRE(rows.size() == 3);
  FlowRow global;
  global.flow_id = 101;
  global.name_space = "shop";
  global.resource = "resource-101";
  global.level = 10;
  global.now_calls = 3;
  global.tokens = 2;
  global.oldest_issued_ms = kSealedMs - 3000;
  CHECK(rows[0] == global);
  FlowRow average;
  average.flow_id = 102;
  average.name_space = "bank";
  average.resource = "resource-102";
  CHECK(rows[1] == average);
  FlowRow removed;
  removed.flow_id = 555;
  removed.name_space = "bank";
  removed.resource = "resource-555";
  removed.removed = true;
  removed.now_calls = 4;
  removed.tokens = 1;
  removed.oldest_issued_ms = kSealedMs - 2000;
  CHECK(rows[2] == removed);
}

// Flow 101 has both rules, with two tokens of the flow and one by value.
LedgerBuilder TwoKinds() {
  LedgerBuilder builder;
  core::Rule by_value = GlobalRule(101, 4);
  by_value.param.emplace();
  builder.TwoRules("shop", GlobalRule(101, 10), by_value);
  builder.Session(1, "shop", "cart-1");
  builder.Token(10, 101, 1, kSealedMs - 3000, 2).Token(11, 101, 1, kSealedMs - 1000);
  builder.TokenOf("x", 12, 101, 1, kSealedMs - 2000);
  return builder;
}

TEST_CASE("a flow id with two rules has two rows offline, and tokens of either kind") {
  Offline offline(TwoKinds());
  const std::vector<FlowRow> rows = offline.Flows();
  REQUIRE(offline.status.ok());
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].kind == "flow");
  CHECK(rows[0].now_calls == 3);
  CHECK(rows[0].level == 10);
  CHECK(rows[1].kind == "value");
  CHECK(rows[1].now_calls == 1);
  CHECK_FALSE(rows[1].level.has_value());
  CHECK(offline.source.Flow(FlowId{101})->size() == 2);
  CHECK(offline.source.Flow({FlowId{101}, FlowKind::kValue})->at(0).now_calls == 1);
  CHECK(offline.Fences({.flow_id = 101, .kind = FlowKind::kValue}) == std::vector<uint64_t>{12});
  CHECK(offline.Fences({.flow_id = 101}).size() == 3);
  CHECK(offline.source.Flow({FlowId{555}, FlowKind::kValue}).status().message() ==
        "flow 555 by value has neither a rule nor tokens");
}

TEST_CASE("tokens of format 3 without a rule of their kind have the row of a removed one") {
  LedgerBuilder builder = SampleLedger();
  builder.FormatVersion(3).TokenOf("x", 13, 101, 1, kSealedMs - 2000);
  Offline offline(std::move(builder));
  const std::vector<FlowRow> rows = offline.Flows();
  REQUIRE(offline.status.ok());
  REQUIRE(rows.size() == 4);
  CHECK(rows[1].kind == "value");
  CHECK(rows[1].resource == "resource-101");
  CHECK(rows[1].removed);
}

TEST_CASE("one flow is found by its id, with or without a rule") {
  Offline offline(SampleLedger());
  CHECK(offline.source.Flow(FlowId{101})->at(0).now_calls == 3);
  CHECK(offline.source.Flow(FlowId{555})->at(0).removed);
  const auto unknown = offline.source.Flow(FlowId{77});
  CHECK(unknown.status().code() == StatusCode::kNotFound);
  CHECK(unknown.status().message() == "flow 77 has neither a rule nor tokens");
}

TEST_CASE("sessions show what they hold, also those that hold nothing") {
  LedgerBuilder builder = SampleLedger();
  builder.Session(3, "shop", "@10.0.0.1:999", ledger::SessionKind::kConnection);
  Offline offline(builder);
  const std::vector<SessionRow> rows = offline.Sessions();
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].session == 1);
  CHECK(rows[0].kind == "named");
  CHECK(rows[0].tokens == 2);
  CHECK(rows[0].now_calls == 3);
  CHECK_FALSE(rows[0].online.has_value());
  CHECK(rows[2].client_id == "@10.0.0.1:999");
  CHECK(rows[2].kind == "connection");
  CHECK(rows[2].tokens == 0);
}

TEST_CASE("the history comes newest first, as much as asked for, and filtered") {
  LedgerBuilder builder = SampleLedger();
  builder.End(builder.MakeEnd(5, 20, kSealedMs - 400, EndReason::kAdmin));
  builder.End(builder.MakeEnd(6, 21, kSealedMs - 300, EndReason::kClientOffline));
  ledger::HistoryEntry other = builder.MakeEnd(7, 22, kSealedMs - 200, EndReason::kAdmin);
  other.flow = FlowId(102);
  other.name_space = "bank";
  other.client_id = "teller-1";
  other.note = "stuck";
  builder.End(other);
  Offline offline(builder);
  const auto sequences = [&](const HistoryFilter& filter, size_t limit = 100) {
    std::vector<uint64_t> numbers;
    const Status status = offline.source.History(filter, limit, [&](const wire::HistoryRow& row) {
      numbers.push_back(row.sequence);
      return Status::Ok();
    });
    CHECK(status.ToString() == "ok");
    return numbers;
  };
  using Numbers = std::vector<uint64_t>;
  CHECK(sequences({}) == Numbers{7, 6, 5});
  CHECK(sequences({}, 2) == Numbers{7, 6});
  CHECK(sequences({.flow_id = 101}) == Numbers{6, 5});
  CHECK(sequences({.flow_id = 101}, 1) == Numbers{6});
  CHECK(sequences({.client_id = "teller-1"}) == Numbers{7});
  CHECK(sequences({.name_space = "shop"}) == Numbers{6, 5});
  CHECK(sequences({.reason = "admin"}) == Numbers{7, 5});
  CHECK(sequences({.flow_id = 101, .reason = "admin"}) == Numbers{5});
  CHECK(sequences({.reason = "rule_removed"}).empty());
  // The ages of the entries now.
  const int64_t sealed_ago_ms = offline.source.NowMs().value() - kSealedMs;
  CHECK(sequences({.max_age_ms = sealed_ago_ms + 300}) == Numbers{7, 6});
  CHECK(sequences({.min_age_ms = sealed_ago_ms + 300}) == Numbers{6, 5});
  CHECK(sequences({.max_age_ms = sealed_ago_ms + 399, .min_age_ms = sealed_ago_ms + 201}) ==
        Numbers{6});
  wire::HistoryRow row;
  const auto keep_last = [&](const wire::HistoryRow& shown) {
    row = shown;
    return Status::Ok();
  };
  REQUIRE(offline.source.History({.client_id = "teller-1"}, 1, keep_last).ok());
  CHECK(row == wire::HistoryRow{.sequence = 7,
                                .ended_ms = kSealedMs - 200,
                                .reason = "admin",
                                .token_id = other.token_id.value,
                                .flow_id = 102,
                                .name_space = "bank",
                                .client_id = "teller-1",
                                .session = 1,
                                .count = 2,
                                .fence = 22,
                                .issued_ms = kSealedMs - 3200,
                                .held_ms = 3000,
                                .note = "stuck"});
}

TEST_CASE("a walk for the clock, the rules or the history does not go through the tokens") {
  LedgerBuilder builder = SampleLedger();
  builder.Token(13, 101, 99, kSealedMs - 100);  // An orphan would be damage.
  builder.End(builder.MakeEnd(5, 20, kSealedMs - 400, EndReason::kAdmin));
  Offline offline(builder);
  CHECK(offline.source.History({}, 10, [](const wire::HistoryRow&) { return Status::Ok(); }).ok());
  CHECK(offline.source.NowMs().ok());
  CHECK(offline.source.Rules(std::nullopt, [](const RuleRow&) { return Status::Ok(); }).ok());
}

TEST_CASE("a draining flow is shown as draining offline") {
  LedgerBuilder builder = SampleLedger();
  builder.Rule("shop", GlobalRule(104, 1), ledger::RuleState::kDraining);
  Offline offline(builder);
  CHECK(offline.source.Flow(FlowId{104})->at(0).draining);
  CHECK(offline.source.Flow(FlowId{104})->at(0).level == 1);
  CHECK_FALSE(offline.source.Flow(FlowId{101})->at(0).draining);
}

TEST_CASE("rules come by flow id, of one namespace or of all") {
  Offline offline(SampleLedger());
  std::vector<std::string> rules;
  const auto sink = [&rules](const RuleRow& row) {
    rules.push_back(row.name_space + "/" + std::to_string(row.rule.flow_id.value));
    return Status::Ok();
  };
  REQUIRE(offline.source.Rules(std::nullopt, sink).ok());
  REQUIRE(offline.source.Rules("bank", sink).ok());
  CHECK(rules == std::vector<std::string>{"shop/101", "bank/102", "bank/102"});
}

TEST_CASE("a sink that fails ends the walk with its failure") {
  Offline offline(SampleLedger());
  int rows = 0;
  const Status status = offline.source.Tokens({}, [&rows](const TokenRow&) {
    ++rows;
    return Status::IoError("full");
  });
  CHECK(status.ToString() == "io_error: full");
  CHECK(rows == 1);
}

TEST_CASE("tokens without a session are shown, and the ledger is called damaged") {
  LedgerBuilder builder = SampleLedger();
  builder.Token(13, 101, 99, kSealedMs - 100);
  Offline offline(builder);
  const std::vector<TokenRow> rows = offline.Tokens({});
  CHECK(rows.size() == 4);
  CHECK(rows[3].client_id.empty());
  CHECK(offline.status.code() == StatusCode::kCorruption);
  CHECK(offline.status.message().ends_with(
      " is of session 99, which is not in the ledger; `nowcalls-admin verify` lists all that is "
      "wrong"));
}

// A ledger of which the rules and one family of tokens cannot be read.
class HalfReadable : public store::LedgerSource {
 public:
  Status Load(ledger::EntityVisitor* visitor) override {
    NOWCALLS_RETURN_IF_ERROR(
        visitor->OnUnreadable(ledger::Family::kRules, Status::Corruption("000007.sst")));
    NOWCALLS_RETURN_IF_ERROR(
        visitor->OnUnreadable(ledger::Family::kTokensLong, Status::Corruption("000008.sst")));
    return LoadAll(visitor);
  }

 protected:
  Status LoadAll(ledger::EntityVisitor* visitor) { return store_.Load(visitor); }

 private:
  store::MemoryStore store_ = SampleLedger().Build();
};

TEST_CASE("what can be read of a damaged ledger is shown, and the damage is told") {
  HalfReadable store;
  Progress progress(false, "tokens", [](std::string_view) {});
  OfflineSource source(&store, Machine(), &progress);
  int rows = 0;
  const Status status = source.Tokens({}, [&rows](const TokenRow&) {
    ++rows;
    return Status::Ok();
  });
  CHECK(rows == 3);
  CHECK(status.ToString() ==
        "corruption: 2 places are damaged, the first: 000007.sst; `nowcalls-admin verify` lists "
        "all that is wrong");
}

TEST_CASE("of a ledger that could not be read to its end no sums are shown") {
  HalfReadable store;
  Progress progress(false, "tokens", [](std::string_view) {});
  OfflineSource source(&store, Machine(), &progress);
  CHECK(source.Flows([](const FlowRow&) { return Status::IoError("a row"); }).code() ==
        StatusCode::kCorruption);
  CHECK(source.Sessions([](const SessionRow&) { return Status::IoError("a row"); }).code() ==
        StatusCode::kCorruption);
  CHECK(source.Namespaces([](const wire::NamespaceRow&) { return Status::IoError("a row"); })
            .code() == StatusCode::kCorruption);
}

TEST_CASE("damage in the history alone leaves sums as they are, and is told behind them") {
  class WithoutHistory : public HalfReadable {
   public:
    Status Load(ledger::EntityVisitor* visitor) override {
      NOWCALLS_RETURN_IF_ERROR(
          visitor->OnUnreadable(ledger::Family::kHistory, Status::Corruption("000009.sst")));
      NOWCALLS_RETURN_IF_ERROR(visitor->OnBadRecord(
          {ledger::Family::kHistory, "01", Status::Corruption("it is short")}));
      return LoadAll(visitor);
    }
  };
  WithoutHistory store;
  Progress progress(false, "tokens", [](std::string_view) {});
  OfflineSource source(&store, Machine(), &progress);
  int flows = 0;
  int sessions = 0;
  const auto count = [](int* rows) {
    return [rows](const auto&) {
      ++*rows;
      return Status::Ok();
    };
  };
  CHECK(source.Flows(count(&flows)).code() == StatusCode::kCorruption);
  CHECK(source.Sessions(count(&sessions)).code() == StatusCode::kCorruption);
  CHECK(flows == 3);
  CHECK(sessions == 2);
}

TEST_CASE("damage behind what was asked for is not told") {
  class RulesAlone : public HalfReadable {
   public:
    Status Load(ledger::EntityVisitor* visitor) override {
      LedgerBuilder builder;
      builder.Rule("shop", GlobalRule(101, 5));
      store::MemoryStore rules = builder.Build();
      NOWCALLS_RETURN_IF_ERROR(rules.Load(visitor));
      return visitor->OnUnreadable(ledger::Family::kHistory, Status::Corruption("000009.sst"));
    }
  };
  RulesAlone store;
  Progress progress(false, "tokens", [](std::string_view) {});
  OfflineSource source(&store, Machine(), &progress);
  int rows = 0;
  const Status status = source.Namespaces([&rows](const wire::NamespaceRow&) {
    ++rows;
    return Status::Ok();
  });
  CHECK(status.ToString() == "ok");
  CHECK(rows == 1);
}

TEST_CASE("a ledger that was never written to has no rows and a now of zero") {
  store::MemoryStore store{ledger::Format{}};
  Progress progress(false, "tokens", [](std::string_view) {});
  OfflineSource source(&store, Machine(), &progress);
  CHECK(*source.NowMs() == 0);
  CHECK(source.Flows([](const FlowRow&) { return Status::IoError("a row"); }).ok());
  CHECK(source.Tokens({}, [](const TokenRow&) { return Status::IoError("a row"); }).ok());
}

TEST_CASE("a flow is found by its resource, a rule in force before a removed one") {
  const auto rule = [](int64_t flow_id, const char* resource, bool by_value = false) {
    core::Rule made = GlobalRule(flow_id, 5);
    made.resource = resource;
    if (by_value) made.param.emplace();
    return made;
  };
  Offline offline(LedgerBuilder()
                      .Rule("shop", rule(7, "checkout"))
                      .Rule("shop", rule(8, "chat", true))
                      .TwoRules("shop", rule(9, "both"), rule(9, "both", true))
                      .Rule("shop", rule(10, "twice"))
                      .Rule("bank", rule(11, "twice")));
  const auto found = [&](const char* name, std::optional<FlowKind> kind = {}) -> std::string {
    const Result<FlowChoice> choice = offline.source.FindFlow(name, kind);
    if (!choice.ok()) return choice.status().message();
    return std::to_string(choice->id.value) +
           (choice->kind.has_value() ? " " + std::string(FlowKindName(*choice->kind)) : "");
  };
  CHECK(found("checkout") == "7 flow");
  CHECK(found("checkout", FlowKind::kValue) ==
        "flow 'checkout' by value has neither a rule nor tokens");
  CHECK(found("chat") == "8 value");
  CHECK(found("both") == "9");
  CHECK(found("both", FlowKind::kValue) == "9 value");
  CHECK(found("twice") ==
        "flow 'twice' is the resource of several rules: 10 of namespace shop, 11 of namespace "
        "bank; ask by number");
  CHECK(found("Checkout") == "flow 'Checkout' has neither a rule nor tokens");
}

}  // namespace
}  // namespace nowcalls::admin
