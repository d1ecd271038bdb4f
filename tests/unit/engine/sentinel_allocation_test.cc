// A busy server allocates nothing for a frame of Sentinel's clients. What is counted is as in
// allocation_test.cc.
#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "store/memory_store.h"
#include "support/core_harness.h"
#include "support/fake_driver.h"
#include "unit/allocation_counter.h"
#include "wire/sentinel/client_frames.h"

namespace nowcalls::engine {
namespace {

using wire::sentinel::RequestType;

constexpr uint32_t kRequestsPerTurn = 24;  // A visit has room for them.

// A peer that reads each answer before the call of the driver is over, and keeps its tokens.
class Peer : public testing::FakeDriver {
 public:
  void Write(std::span<Output> outputs) override {
    for (const Output& output : outputs) {
      std::string_view left = output.bytes;
      wire::sentinel::Response response;
      while (wire::sentinel::TakeResponse(&left, &response) == wire::sentinel::Answer::kWhole) {
        ++answers;
        if (response.status != TokenStatus::kOk && response.status != TokenStatus::kReleaseOk) {
          ++others;
        }
        const bool grant = response.type == static_cast<int8_t>(RequestType::kAcquire);
        if (grant) tokens.push_back(response.token_id());
      }
    }
  }

  std::vector<uint64_t> tokens;
  int64_t answers = 0;
  int64_t others = 0;
};

class SentinelServer {
 public:
  SentinelServer() {
    REQUIRE(testing::LoadCore(&store_, now_, &core_).ok());
    engine_ = std::make_unique<Engine>(EngineOptions(), &core_, &peer_, now_);
    auto rules = core::ParseRules(testing::RulesJson({{.flow = 1, .count = 1e9}}));
    core::Rule by_value = rules->rules.front();
    by_value.flow_id = FlowId{2};
    by_value.param.emplace();
    rules->rules.push_back(by_value);
    REQUIRE(engine_->LoadRules({{"default", *std::move(rules)}}, now_).ok());
    REQUIRE(engine_->OnConnect({.name = "10.0.0.1:1"}, now_) == ConnectionId{0});
    wire::sentinel::EncodePingRequest(0, "default", &out_);
    Turn();
  }

  // Returns how often memory was asked for, but by seals.
  int64_t Run(int turns) {
    int64_t allocations = 0;
    peer_.answers = peer_.others = 0;
    for (int i = 0; i < turns; ++i) {
      Encode();
      allocations += Turn();
    }
    CHECK(peer_.answers > turns * int64_t{kRequestsPerTurn});
    CHECK(peer_.others == 0);
    return allocations;
  }

 private:
  // Keeps and releases what was granted before, but for one: the tree of deadlines stays.
  void Encode() {
    while (peer_.tokens.size() > 1) {
      wire::sentinel::EncodeTokenRequest(1, RequestType::kKeep, peer_.tokens.back(), &out_);
      wire::sentinel::EncodeTokenRequest(1, RequestType::kRelease, peer_.tokens.back(), &out_);
      peer_.tokens.pop_back();
    }
    const Param values[] = {{ParamType::kString, "a key of more than fifteen bytes"},
                            {ParamType::kInt, std::string_view("\0\0\0\7", 4)}};
    for (uint32_t i = 0; i < kRequestsPerTurn; ++i) {
      if (i % 3 == 2) {
        wire::sentinel::EncodeParamCallRequest(i, 2, 1, values, &out_);
        continue;
      }
      const RequestType type = i % 2 == 0 ? RequestType::kFlow : RequestType::kAcquire;
      wire::sentinel::EncodeCallRequest(i, type, {1, 1, i % 4 == 0}, &out_);
    }
  }

  int64_t Turn() {
    now_ = now_ + 1;
    const int64_t before = testing::Allocations();
    engine_->OnBytes(0, out_.view(), now_);
    EndTurn();
    int64_t allocations = testing::Allocations() - before;
    out_.Clear();
    if (const auto* batch = engine_->BeginCommit({.boottime_ms = now_.ms}, now_)) {
      REQUIRE(store_.Commit(*batch).ok());
      const int64_t before_done = testing::Allocations();
      engine_->OnCommitDone(now_);
      EndTurn();
      allocations += testing::Allocations() - before_done;
    }
    return allocations;
  }

  void EndTurn() {
    engine_->ResumeInput(now_);
    if (engine_->NextDeadline() <= now_) engine_->OnTime(now_);
    engine_->TurnEnd();
  }

  Instant now_{testing::CoreHarness::kStartMs};
  Peer peer_;
  store::MemoryStore store_{ledger::Format{.token_id_key = testing::HarnessOptions().token_id_key}};
  core::Core core_{testing::HarnessOptions()};
  std::unique_ptr<Engine> engine_;
  wire::OutputBuffer out_;
};

TEST_CASE("a FLOW, a PARAM_FLOW, an acquire, a keep and a release in frames allocate nothing") {
  SentinelServer server;
  server.Run(400);
  CHECK(server.Run(100) == 0);
}

}  // namespace
}  // namespace nowcalls::engine
