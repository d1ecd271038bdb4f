// What becomes of entities that contradict each other: SalvageEntities makes a ledger of them, and
// rather keeps a token than drops it.
#include "admin/repair.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "core/rules/rule_json.h"
#include "core/tables/token_ids.h"
#include "ledger/fence_line.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace nowcalls::admin {
namespace {

constexpr int64_t kRepairedMs = 1'800'000'000'000;

class Entities {
 public:
  Entities() {
    read.format.emplace();
    read.format->token_id_key = {11, 22};
    read.mark = ledger::ClockMark{kRepairedMs, {1000, kRepairedMs, {1}}};
    read.seal = ledger::Seal{.batch_number = 9, .next_fence = 1000, .ledger_ms = kRepairedMs};
    Rule("shop", 7);
    Session(1, "cart");
  }

  void Rule(const std::string& name_space, int64_t flow,
            ledger::RuleState state = ledger::RuleState::kActive, FlowKind kind = FlowKind::kFlow) {
    core::Rule rule;
    rule.resource = "db";
    rule.flow_id = FlowId(flow);
    if (kind == FlowKind::kValue) rule.param.emplace();
    read.rules.push_back({name_space, FlowId(flow), state, core::RuleToJson(rule)});
  }
  void Session(uint64_t id, const std::string& client) {
    read.sessions.push_back(
        {SessionId(id), ledger::SessionKind::kNamed, kRepairedMs - 5000, "shop", client});
  }
  ledger::Token& Token(uint64_t fence, uint64_t session = 1, int64_t flow = 7) {
    ledger::Token token;
    const core::TokenIds ids({11, 22});
    token.key = {ledger::Family::kTokensMedium, kRepairedMs + 60'000, ids.FromFence(Fence(fence))};
    token.flow = FlowId(flow);
    token.session = SessionId(session);
    token.count = 2;
    token.issued_ms = kRepairedMs - 1000;
    token.fence = Fence(fence);
    read.tokens.push_back(token);
    return read.tokens.back();
  }
  void End(uint64_t fence, uint64_t sequence) {
    ledger::HistoryEntry entry;
    const core::TokenIds ids({11, 22});
    entry.sequence = sequence;
    entry.ended_ms = kRepairedMs - 500;
    entry.token_id = ids.FromFence(Fence(fence));
    entry.fence = Fence(fence);
    entry.flow = FlowId(7);
    entry.session = SessionId(1);
    entry.count = 1;
    entry.issued_ms = kRepairedMs - 1000;
    read.history.push_back(entry);
  }
  SalvagedEntities Salvage() const {
    return SalvageEntities(read, {2000, kRepairedMs + 1000, {1}});
  }

  ReadEntities read;
};

TEST_CASE("entities that belong together are kept as they are, and fences skip") {
  Entities entities;
  entities.Token(20);
  entities.End(21, 4);
  const SalvagedEntities salvaged = entities.Salvage();
  CHECK(salvaged.changes.empty());
  CHECK(salvaged.tokens.at(20) == entities.read.tokens[0]);
  CHECK(salvaged.sessions.size() == 1);
  CHECK(salvaged.history.at(0).sequence == 1);
  CHECK(salvaged.now_calls() == 2);
  CHECK(salvaged.next_fence == ledger::FenceLine(kRepairedMs + 1000));
  CHECK(salvaged.mark.ledger_ms == kRepairedMs + 1000);
}

TEST_CASE("a token keeps its parameter, and a window of calls a second its rule") {
  Entities entities;
  entities.Rule("shop", 7, ledger::RuleState::kActive, FlowKind::kValue);
  entities.Token(20).param.emplace(ParamType::kLong, std::string(8, '\1'));
  entities.read.rates = {{{FlowId(7), 1000}, 3, 0}, {{FlowId(7), 1000}, 5, 0}};
  entities.read.rates.push_back({{FlowId(8), 1000}, 9, 0});
  // A server drops calls of the future.
  entities.read.rates.push_back({{FlowId(7), kRepairedMs + 1001}, 9, 0});
  const SalvagedEntities salvaged = entities.Salvage();
  CHECK(salvaged.tokens.at(20) == entities.read.tokens[0]);
  REQUIRE(salvaged.rates.size() == 1);
  CHECK(salvaged.rates.begin()->second.passed == 5);
  CHECK(salvaged.changes ==
        std::vector<std::string>{
            "a window of calls a second is left out: flow 8 has no rule of the flow",
            "a window of calls a second of flow 7 is left out: it begins in the future"});
}

TEST_CASE("without a seal fences skip behind every number that was found") {
  Entities entities;
  entities.read.seal.reset();
  entities.Token(20);
  // Of a ledger that a wrong clock had sent beyond the line, only what was found can tell.
  entities.Session(1 << 20, "till");
  CHECK(entities.Salvage().next_fence == ledger::FenceLine(kRepairedMs + 1000));
  const uint64_t beyond = ledger::FenceLine(kRepairedMs) * 2;
  entities.Session(beyond, "bank");
  CHECK(entities.Salvage().next_fence == beyond + 1 + ledger::kFencesSkippedBlindly);
}

TEST_CASE("a clock that was set back lets fences skip behind what was found, beyond the line") {
  Entities entities;
  entities.read.seal->next_fence = ledger::FenceLine(kRepairedMs);
  for (const int64_t ahead_ms : {int64_t{1000}, int64_t{1001}}) {
    entities.read.mark->machine.wall_ms = kRepairedMs + ahead_ms;
    const uint64_t next = entities.Salvage().next_fence;
    CHECK(next >= ledger::FenceLine(kRepairedMs + 1000));
    CHECK((next >= ledger::FenceLine(kRepairedMs) + ledger::kFencesSkippedBlindly) ==
          (ahead_ms == 1001));
  }
}

TEST_CASE("a token keeps counting when its session or its rule is lost") {
  Entities entities;
  entities.Token(20, 5, 7);
  entities.Token(21, 1, 8);
  const SalvagedEntities salvaged = entities.Salvage();
  CHECK(salvaged.tokens.size() == 2);
  CHECK(salvaged.changes.size() == 2);
  CHECK(salvaged.sessions.at(5).kind == ledger::SessionKind::kConnection);
  CHECK(salvaged.sessions.at(5).name_space == "shop");
  CHECK(salvaged.rules.at({FlowId(8), FlowKind::kFlow}).state == ledger::RuleState::kRemoved);
}

TEST_CASE("both rules of a flow id are kept, and a token whose kind has none gets one") {
  Entities entities;
  entities.Rule("shop", 7, ledger::RuleState::kDraining, FlowKind::kValue);
  entities.Token(20).param.emplace(ParamType::kString, "x");
  entities.Rule("shop", 8);
  entities.Token(21, 1, 8).param.emplace(ParamType::kString, "x");
  SalvagedEntities salvaged = entities.Salvage();
  CHECK(salvaged.rules.size() == 4);
  CHECK(salvaged.rules.at({FlowId(7), FlowKind::kValue}).state == ledger::RuleState::kDraining);
  CHECK(salvaged.rules.at({FlowId(8), FlowKind::kValue}).state == ledger::RuleState::kRemoved);
  CHECK(salvaged.changes.size() == 1);
  // Before format 4 one rule was for all tokens of the id.
  entities.read.format->version = 3;
  salvaged = entities.Salvage();
  const ledger::RuleEntry& made = salvaged.rules.at({FlowId(8), FlowKind::kValue});
  CHECK(core::ParseRule(made.json)->resource == "db");
  CHECK(made.state == ledger::RuleState::kRemoved);
  CHECK(salvaged.changes.empty());
}

TEST_CASE("of a token that is there twice the later deadline counts") {
  Entities entities;
  entities.Token(20);
  entities.Token(20).key.deadline_ms += 400'000;
  const SalvagedEntities salvaged = entities.Salvage();
  CHECK(salvaged.tokens.size() == 1);
  CHECK(salvaged.tokens.at(20).key.deadline_ms == kRepairedMs + 460'000);
  CHECK(salvaged.tokens.at(20).key.family == ledger::Family::kTokensLong);
}

TEST_CASE(
    "a token whose end is in the history, or whose id is not that of its fence, is left out") {
  Entities entities;
  entities.Token(20);
  entities.End(20, 1);
  entities.Token(21).key.id = TokenId(5);
  const SalvagedEntities salvaged = entities.Salvage();
  CHECK(salvaged.tokens.empty());
  CHECK(salvaged.history.size() == 1);
  CHECK(salvaged.changes.size() == 2);
}

TEST_CASE("two sessions of one client become the later one, with the tokens of both") {
  Entities entities;
  entities.Session(5, "cart");
  entities.Session(9, "cart");
  for (const uint64_t session : {1, 5, 9}) {
    entities.Token(100 * session, session).request_id = 77;
  }
  const SalvagedEntities salvaged = entities.Salvage();
  CHECK(salvaged.sessions.size() == 1);
  CHECK(salvaged.sessions.contains(9));
  size_t with_request = 0;
  for (const auto& [fence, token] : salvaged.tokens) {
    CHECK(token.session == SessionId(9));
    with_request += token.request_id == 77 ? 1 : 0;
  }
  CHECK(salvaged.tokens.size() == 3);
  CHECK(with_request == 1);
}

TEST_CASE("tokens that one acquire_all issued keep their request id") {
  Entities entities;
  for (const uint64_t fence : {100, 101, 163}) entities.Token(fence).request_id = 77;
  CHECK(entities.Salvage().changes.empty());
  entities.Token(164).request_id = 77;
  const SalvagedEntities salvaged = entities.Salvage();
  CHECK(salvaged.changes.size() == 1);
  CHECK(salvaged.tokens.at(163).request_id == 77);
  CHECK(salvaged.tokens.at(164).request_id == 0);
}

TEST_CASE("rules that are none, of two namespaces or of no token are left out") {
  Entities entities;
  entities.Rule("other", 7);
  entities.Rule("shop", 8, ledger::RuleState::kRemoved);
  entities.read.rules.push_back({"shop", FlowId(9), ledger::RuleState::kActive, "{"});
  entities.read.namespaces = {{"shop", "rpc"}, {"gone", "rpc"}};
  const SalvagedEntities salvaged = entities.Salvage();
  CHECK(salvaged.rules.size() == 1);
  CHECK(salvaged.rules.at({FlowId(7), FlowKind::kFlow}).name_space == "shop");
  CHECK(salvaged.namespaces.size() == 1);
  CHECK(salvaged.changes.size() == 4);
}

TEST_CASE("numbers that no ledger gives are left out, so that the next one can be given") {
  Entities entities;
  entities.Session(ledger::kFenceMax, "huge");
  entities.Session(0, "none");
  entities.Token(20, ledger::kFenceMax);
  entities.Token(ledger::kFenceMax);
  entities.Token(22);
  entities.End(ledger::kFenceMax, 1);
  const SalvagedEntities salvaged = entities.Salvage();
  CHECK(salvaged.changes.size() == 5);
  CHECK(salvaged.sessions.size() == 1);
  CHECK(salvaged.tokens.size() == 1);
  CHECK(salvaged.tokens.contains(22));
  CHECK(salvaged.history.empty());
  CHECK(salvaged.next_fence == ledger::FenceLine(kRepairedMs + 1000));
}

TEST_CASE("names that no rule, session or source can have are left out, and the tokens stay") {
  Entities entities;
  entities.Rule("a\nb", 8);
  entities.Session(2, "");
  entities.Session(3, "@cart");
  entities.read.sessions.push_back(
      {SessionId(4), ledger::SessionKind::kConnection, kRepairedMs - 5000, "shop", "cart"});
  for (const uint64_t session : {2, 3, 4}) entities.Token(20 + session, session);
  entities.Token(30, 1, 8);
  entities.read.namespaces = {{"shop", ""}};
  const SalvagedEntities salvaged = entities.Salvage();
  CAPTURE(salvaged.changes);
  CHECK(salvaged.tokens.size() == 4);
  CHECK(salvaged.sessions.size() == 4);
  CHECK(salvaged.sessions.at(2).client_id == "@salvaged:2");
  CHECK(salvaged.rules.at({FlowId(8), FlowKind::kFlow}).state == ledger::RuleState::kRemoved);
  CHECK(salvaged.namespaces.empty());
  // Each that is left out, and each that is made up for the sake of a token.
  CHECK(salvaged.changes.size() == 9);
}

TEST_CASE("without the format record no token can be kept, but the rules are") {
  Entities entities;
  entities.read.format.reset();
  entities.Token(20);
  entities.End(21, 1);
  const SalvagedEntities salvaged = entities.Salvage();
  CHECK(salvaged.tokens.empty());
  CHECK(salvaged.history.empty());
  CHECK(salvaged.rules.size() == 1);
  CHECK(salvaged.changes.size() == 1);
  CHECK(salvaged.next_fence == ledger::FenceLine(kRepairedMs + 1000));
}

TEST_CASE("what differs from the seal is told, also when only fences do") {
  Entities entities;
  entities.Token(20);
  entities.Token(22);
  const SalvagedEntities salvaged = entities.Salvage();
  CHECK(salvaged.fence_sum() == 42);
  RepairSummary summary;
  summary.seal = ledger::Seal{9, 1000, kRepairedMs, 2, 4, 42};
  summary.newest_batch = 9;
  summary.tokens = salvaged.tokens.size();
  summary.now_calls = salvaged.now_calls();
  summary.fence_sum = salvaged.fence_sum();
  summary.sessions = 1;
  summary.next_fence = 77;
  const std::string kept =
      "salvaged into new: 2 tokens with nowCalls 4, 1 session, 0 rules, 0 history rows; fences go "
      "on at 77\n";
  CHECK(RepairText(summary, "new") == kept);
  summary.seal->live_fence_sum = 43;
  CHECK(RepairText(summary, "new") ==
        "differs: batch 9 was sealed over 2 tokens with nowCalls 4, but not these: some are lost, "
        "and as many that had ended are back\n" +
            kept);
  summary.seal->live_count_sum = 5;
  CHECK(RepairText(summary, "new") ==
        "differs: batch 9 was sealed over 2 tokens with nowCalls 5\n" + kept);
  summary.seal->live_tokens = 1;
  summary.newest_batch = 12;
  summary.lost = {"a file"};
  summary.changes = {"a record"};
  CHECK(RepairText(summary, "new") ==
        "lost: a file\nlost: batches 10 to 12, and perhaps later ones that nothing tells of: the "
        "last that is left is batch 9\n"
        "differs: batch 9 was sealed over 1 token with nowCalls 5\nchanged: a record\n" +
            kept);
  summary.seal.reset();
  CHECK(RepairText(summary, "new") ==
        "lost: a file\nlost: the seal; which batch was the last, and how many tokens it left, is "
        "unknown\nchanged: a record\n" +
            kept);
}

TEST_CASE("no ledger is salvaged into a backup, which must stay as it is") {
  namespace fs = std::filesystem;
  const testing::TempDir dir;
  for (const char* ledger : {"data/ledger", "bk/1/ledger"}) fs::create_directories(dir.Sub(ledger));
  testing::WriteStringToFile(dir.Sub("bk/1/backup.json"), "{}");
  const Status refused = Repair(dir.Sub("data"), dir.Sub("bk/1/x")).status();
  CHECK(refused.ToString() ==
        "invalid_argument: --to: " + dir.Sub("bk/1/x") +
            " lies within a backup, which must stay as it is: choose a directory outside of " +
            fs::canonical(dir.Sub("bk/1")).string());
  CHECK_FALSE(fs::exists(dir.Sub("bk/1/x.partial")));
}

TEST_CASE("a target that a repair left without its ledger is told, and what to do") {
  namespace fs = std::filesystem;
  const testing::TempDir dir;
  // As a crash leaves it between the renames of the target and of the ledger in it.
  for (const char* made : {"data/ledger", "to/repairing/ledger"}) {
    fs::create_directories(dir.Sub(made));
  }
  const Status refused = Repair(dir.Sub("data"), dir.Sub("to")).status();
  CHECK(refused.ToString() ==
        "invalid_argument: --to: a repair to " + dir.Sub("to") + " did not end: there is " +
            dir.Sub("to/repairing") +
            " and no ledger, and a new one would be empty. If no repair is running, remove " +
            dir.Sub("to") + " and run `nowcalls-admin repair` again");
  CHECK(fs::exists(dir.Sub("to/repairing/ledger")));
}

}  // namespace
}  // namespace nowcalls::admin
