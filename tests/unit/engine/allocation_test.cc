// A busy server allocates nothing for an acquire, a release or a request for calls a second.
// Counted is what the loop thread does within the engine's calls: requests are split, decoded,
// decided and recorded, batches sealed, and replies encoded and given to the driver. Not counted is
// what is around it: the clients, and the store, which commits between the calls and in which each
// token is a row of a map. A seal has a few allocations of its own, whatever is in its batch. Some
// token is live all the time: with the last one the tree of deadlines goes, and with the next one
// it is made anew.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/engine_harness.h"
#include "unit/allocation_counter.h"
#include "wire/client_messages.h"

namespace nowcalls::engine {
namespace {

template <typename Calls>
int64_t AllocationsOf(const Calls& calls) {
  const int64_t before = testing::Allocations();
  calls();
  return testing::Allocations() - before;
}

constexpr uint32_t kRequestMsgid = 3;

// Sockets whose peers have read what was written before the call of the driver is over.
class ReadingDriver : public testing::FakeDriver {
 public:
  struct Peer {
    std::vector<uint64_t> tokens;  // Granted and not released, the oldest first.
    wire::OutputBuffer out;
  };

  void Write(std::span<Output> outputs) override {
    for (const Output& output : outputs) {
      std::string_view left = output.bytes;
      for (wire::CommonReply reply; wire::TakeCommonReply(&left, &reply); ++answers) {
        if (reply.msgid == kRequestMsgid) continue;
        if (reply.status == TokenStatus::kOk) peers[output.to].tokens.push_back(reply.token_id);
        if (reply.status == TokenStatus::kBlocked) ++refusals;
      }
      if (!left.empty()) ++others;
    }
  }

  std::vector<Peer> peers;  // By connection.
  int64_t answers = 0;      // Grants, refusals, releases and answers to requests.
  int64_t refusals = 0;
  int64_t others = 0;  // Outputs with anything else.
};

struct Load {
  bool request_ids = false;
  size_t held = 0;           // Tokens that a client keeps until it gets more.
  int turns_per_commit = 1;  // With more, a batch fills for as many turns while one is committed.
  uint32_t clients = 10;
  uint32_t acquires = 10;  // Of each client in a turn.
  bool by_key = false;     // They name keys that are warm: some token of each is live.
  uint32_t requests = 0;   // For calls a second, likewise; as many again for those of values.
};

struct Work {
  int64_t operations = 0;
  int64_t seals = 0;
  int64_t allocations = 0;  // But those of seals.
  int64_t in_seals = 0;
};

class BusyServer {
 public:
  explicit BusyServer(const Load& load)
      : load_(load),
        store_(ledger::Format{.token_id_key = testing::HarnessOptions().token_id_key}),
        core_(Options()) {
    REQUIRE(testing::LoadCore(&store_, now_, &core_).ToString() == "ok");
    engine_ = std::make_unique<Engine>(EngineOptions(), &core_, &driver_, now_);
    auto parsed = core::ParseRules(testing::RulesJson(
        {{.flow = 1, .count = 100'000}, {.flow = 2, .count = 100'000, .max_per_client = 50'000}}));
    parsed->rules.push_back(RateRule(3));
    parsed->rules.push_back(RateRule(4));
    parsed->rules.back().param.emplace();
    parsed->rules.push_back(RateRule(kFlowByKey));
    parsed->rules.back().count = 100'000;
    parsed->rules.back().param.emplace();
    REQUIRE(engine_->LoadRules({{"default", *std::move(parsed)}}, now_).ToString() == "ok");
    driver_.peers.resize(load.clients);
    for (ConnectionId id = 0; id < load.clients; ++id) {
      REQUIRE(engine_->OnConnect({.name = "127.0.0.1:1"}, now_) == id);
      const std::string name = "client-" + std::to_string(id);
      engine_->OnBytes(id, testing::HelloRequest(0, "default", name), now_);
    }
    Seal();
    Commit();
  }

  Work Run(int turns) {
    work_ = Work();
    driver_.answers = driver_.others = 0;
    for (int i = 0; i < turns; ++i) Turn();
    CHECK(driver_.refusals == 0);
    CHECK(driver_.others == 0);
    work_.operations = driver_.answers;
    return work_;
  }

 private:
  static core::CoreOptions Options() {
    core::CoreOptions options = testing::HarnessOptions();
    options.limits.namespace_qps_max = 0;
    return options;
  }
  static constexpr int64_t kFlowByKey = 5;

  static Param KeyOf(uint64_t number) {
    static const std::string keys[] = {"a", "a key of more than fifteen bytes", "c"};
    return {ParamType::kString, keys[number % 3]};
  }
  static core::Rule RateRule(int64_t flow) {
    core::Rule rule;
    rule.resource = "rate";
    rule.flow_id = FlowId{flow};
    rule.count = 50;  // A part of what is asked for.
    return rule;
  }

  void Turn() {
    now_ = now_ + 1;
    for (ReadingDriver::Peer& peer : driver_.peers) Encode(&peer);
    work_.allocations += AllocationsOf([&] {
      for (ConnectionId id = 0; id < load_.clients; ++id) {
        engine_->OnBytes(id, driver_.peers[id].out.view(), now_);
      }
      EndTurn();
    });
    Seal();
    if (++turns_ % load_.turns_per_commit == 0) Commit();
  }

  void Seal() {
    const ledger::CommitBatch* batch = nullptr;
    work_.in_seals +=
        AllocationsOf([&] { batch = engine_->BeginCommit({.boottime_ms = now_.ms}, now_); });
    REQUIRE((batch == nullptr) == (driver_.commit != nullptr));
    if (batch == nullptr) return;
    ++work_.seals;
    driver_.commit = batch;
  }

  void Commit() {
    REQUIRE(store_.Commit(*std::exchange(driver_.commit, nullptr)).ToString() == "ok");
    work_.allocations += AllocationsOf([&] {
      engine_->OnCommitDone(now_);
      EndTurn();
    });
  }

  void EndTurn() {
    engine_->ResumeInput(now_);
    if (engine_->NextDeadline() <= now_) engine_->OnTime(now_);
    REQUIRE_FALSE(engine_->BeginScan(now_).has_value());
    engine_->TurnEnd();
  }

  void Encode(ReadingDriver::Peer* peer) {
    const size_t held = std::min(peer->tokens.size(), load_.held);
    const auto released = peer->tokens.end() - static_cast<ptrdiff_t>(held);
    peer->out.Clear();
    for (auto token = peer->tokens.begin(); token != released; ++token) {
      wire::EncodeTokenRequest(1, wire::Method::kRelease, *token, &peer->out);
    }
    peer->tokens.erase(peer->tokens.begin(), released);
    for (uint32_t i = 0; i < load_.acquires; ++i) EncodeAcquire(peer);
    for (uint32_t i = 0; i < load_.requests; ++i) EncodeRequests(peer);
  }

  void EncodeAcquire(ReadingDriver::Peer* peer) {
    ++acquires_;
    wire::AcquireParams params{.flow_id = static_cast<int64_t>(1 + acquires_ % 2),
                               .count = 1,
                               .request_id = load_.request_ids ? 7000 + acquires_ : 0};
    if (load_.by_key) {
      params.flow_id = kFlowByKey;
      params.param = KeyOf(acquires_);
    }
    wire::EncodeAcquireRequest(2, params, &peer->out);
  }

  void EncodeRequests(ReadingDriver::Peer* peer) {
    const Param values[] = {KeyOf(++requests_)};
    wire::EncodeRateRequest(kRequestMsgid, {.flow_id = 3, .count = 1}, &peer->out);
    wire::EncodeValueRateRequest(kRequestMsgid, {.flow_id = 4, .count = 1}, values, &peer->out);
  }

  const Load load_;
  Instant now_{testing::CoreHarness::kStartMs};
  ReadingDriver driver_;
  store::MemoryStore store_;
  core::Core core_;
  std::unique_ptr<Engine> engine_;
  int turns_ = 0;
  uint64_t acquires_ = 0;
  uint64_t requests_ = 0;
  Work work_;
};

// Of 10,000 operations and more, when all has grown that grows, fewer than one in `operations`
// allocates.
void CheckAllocations(const Load& load, int64_t operations) {
  BusyServer server(load);
  server.Run(400);
  const Work work = server.Run(60);
  CAPTURE(load.request_ids);
  CAPTURE(load.turns_per_commit);
  CAPTURE(work.allocations);
  CHECK(work.operations > 10'000);
  CHECK(work.allocations * operations < work.operations);
  CHECK(work.in_seals <= 4 * work.seals);
}

TEST_CASE("acquires and releases allocate nothing, with request ids and without") {
  for (const bool request_ids : {false, true}) {
    for (const int turns_per_commit : {1, 3}) {
      CheckAllocations({.request_ids = request_ids, .turns_per_commit = turns_per_commit}, 1000);
    }
  }
}

TEST_CASE("acquires and releases by key allocate nothing, with request ids and without") {
  for (const bool request_ids : {false, true}) {
    for (const int turns_per_commit : {1, 3}) {
      CheckAllocations(
          {.request_ids = request_ids, .turns_per_commit = turns_per_commit, .by_key = true}, 1000);
    }
  }
}

TEST_CASE("requests for calls a second, and for those of values, allocate nothing") {
  CheckAllocations({.requests = 10}, 1000);
}

// The parts of an index grow one by one, each when more are in it than ever before.
TEST_CASE("tokens that live long allocate no more than their indexes when they grow") {
  for (const bool request_ids : {false, true}) {
    CheckAllocations({.request_ids = request_ids, .held = 2000}, 20);
  }
}

TEST_CASE("allocations are counted in all their forms") {
  void* volatile block = nullptr;
  const auto counted = [&](const auto& allocate, const auto& free) {
    const int64_t count = AllocationsOf([&] { block = allocate(); });
    free(block);
    return count;
  };
  constexpr std::align_val_t kAlign{64};
  const auto erase = [](void* p) { operator delete(p); };
  const auto erase_aligned = [](void* p) { operator delete(p, kAlign); };
  const auto erase_array = [](void* p) { operator delete[](p); };
  CHECK(counted([] { return operator new(8); }, erase) == 1);
  CHECK(counted([] { return operator new(8, std::nothrow); }, erase) == 1);
  CHECK(counted([] { return operator new(8, kAlign); }, erase_aligned) == 1);
  CHECK(counted([] { return operator new[](8); }, erase_array) == 1);
  CHECK(counted([] { return std::malloc(8); }, std::free) == 1);
  CHECK(counted([] { return std::calloc(1, 8); }, std::free) == 1);
  CHECK(counted([] { return std::realloc(nullptr, 8); }, std::free) == 1);
  wire::OutputBuffer out;
  CHECK(AllocationsOf([&] { out.Append("room"); }) == 1);  // In a library.
}

}  // namespace
}  // namespace nowcalls::engine
