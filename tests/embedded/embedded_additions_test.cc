// What a program adds to an embedded service: rule sources, an expire strategy, the timeout factor.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "nowcalls/embedded.h"
#include "support/poll_until.h"
#include "support/server_process.h"
#include "support/temp_dir.h"

namespace nowcalls::testing {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): of tests.

constexpr FlowId kNine{9};

std::string RulesOfNine(int level, const Json& cluster = Json::object()) {
  return RuleSet(RuleJson(9, level, cluster)).dump();
}

std::unique_ptr<Embedded> OpenSure(EmbeddedOptions options) {
  options.timeout = Milliseconds(kPatienceMs);
  Result<std::unique_ptr<Embedded>> opened = Embedded::Open(options);
  REQUIRE_MESSAGE(opened.ok(), opened.status().message());
  return *std::move(opened);
}

// Delivers rules of the namespace "default" on the thread that calls Deliver.
class OwnRules : public RuleSource {
 public:
  explicit OwnRules(int level) : level_(level) {}

  Status Start(RuleSink* sink) override {
    sink_ = sink;
    const Status claimed = sink->Claim({.source = "own", .name_space = "default"});
    return claimed.ok() ? Deliver(level_) : claimed;
  }
  void Stop() override {
    ++stops_;
    in_stop_ = Deliver(level_ + 1).code();
  }

  Status Deliver(int level) {
    const auto set = sink_->Check("own", "default", RulesOfNine(level));
    return set.ok() ? sink_->Replace({*set}) : set.status();
  }
  RuleSink* sink() const { return sink_; }
  int stops() const { return stops_; }
  StatusCode in_stop() const { return in_stop_; }

 private:
  const int level_;
  RuleSink* sink_ = nullptr;
  std::atomic<int> stops_{0};
  std::atomic<StatusCode> in_stop_{StatusCode::kOk};
};

// Delivers on a thread of its own as fast as it can; Stop waits for the end of that thread.
class RestlessRules final : public OwnRules {
 public:
  RestlessRules() : OwnRules(1) {}

  Status Start(RuleSink* sink) override {
    Status started = OwnRules::Start(sink);
    thread_ = std::thread([this] {
      for (int level = 1; !ends_; level = 3 - level) delivered_ += Deliver(level).ok() ? 1 : 0;
    });
    return started;
  }
  void Stop() override {
    ends_ = true;
    thread_.join();
    OwnRules::Stop();
  }
  int delivered() const { return delivered_; }

 private:
  std::atomic<bool> ends_{false};
  std::atomic<int> delivered_{0};
  std::thread thread_;
};

class FailingRules final : public RuleSource {
 public:
  Status Start(RuleSink* /*sink*/) override { return Status::Unavailable("no inventory"); }
  void Stop() override { FAIL("stopped without a start"); }
};

// Extends while `patient`, and notes the hold of the last token.
class OwnStrategy final : public ExpireStrategy {
 public:
  ExpireDecision Decide(const ExpiredToken& token, const TokenHolder& /*holder*/,
                        int64_t now_ms) override {
    hold_ms = token.hold_ms;
    return patient ? ExpireDecision::ExtendUntil(now_ms + 50) : ExpireDecision::Reclaim();
  }

  std::atomic<bool> patient{true};
  std::atomic<int64_t> hold_ms{0};
};

}  // namespace

TEST_CASE("a source delivers on any thread, and its rules are in the ledger") {
  const TempDir dir;
  const auto own = std::make_shared<OwnRules>(1);
  {
    const auto tokens = OpenSure({.data_dir = dir.Sub("data"), .rule_sources = {own}});
    const Acquired first = tokens->Acquire(kNine);
    CHECK(first.ok());
    CHECK(tokens->Acquire(kNine).refused_by == RefusedBy::kLevel);
    std::thread([&] { CHECK(own->Deliver(2).ok()); }).join();
    CHECK(tokens->Acquire(kNine).ok());
    CHECK(own->Deliver(-1).code() == StatusCode::kInvalidArgument);
    const Status by_hand = tokens->LoadRules("default", RulesOfNine(5)).status();
    CHECK(by_hand.code() == StatusCode::kAlreadyExists);
    CHECK(Contains(by_hand.message(), "own"));
  }
  const auto tokens = OpenSure({.data_dir = dir.Sub("data")});
  const Acquired again = tokens->Acquire(kNine);
  CHECK(again.level == 2);
}

TEST_CASE("a source must not deliver in a callback, whose thread would wait for itself") {
  const auto own = std::make_shared<OwnRules>(1);
  const auto tokens = OpenSure({.rule_sources = {own}});
  std::promise<StatusCode> told;
  tokens->AcquireAsync(kNine, {}, [&](const Acquired&) { told.set_value(own->Deliver(2).code()); });
  CHECK(told.get_future().get() == StatusCode::kFailedPrecondition);
}

TEST_CASE("a source that delivers all the time is stopped before its service ends") {
  const auto restless = std::make_shared<RestlessRules>();
  auto tokens = OpenSure({.rule_sources = {restless}});
  CHECK(PollUntil(kPatienceMs, [&] { return restless->delivered() > 10; }));
  CHECK(restless->stops() == 0);
  CHECK(tokens->Close(1s).ok());
  CHECK(restless->stops() == 1);
  CHECK(restless->in_stop() == StatusCode::kUnavailable);
  const Status late = restless->Deliver(2);
  CHECK(late.code() == StatusCode::kUnavailable);
  CHECK(late.message() == "the service is closed");
  restless->sink()->NoteRefused("own", "default", late);
  tokens.reset();
  CHECK(restless->stops() == 1);
}

TEST_CASE(
    "a source that fails to start keeps the service from opening, and the ledger is as before") {
  const TempDir dir;
  const auto restless = std::make_shared<RestlessRules>();
  const Status refused =
      Embedded::Open({.data_dir = dir.Sub("data"),
                      .rule_sources = {restless, std::make_shared<FailingRules>()}})
          .status();
  CHECK(refused.code() == StatusCode::kUnavailable);
  CHECK(refused.message() == "a rule source of the program: no inventory");
  CHECK(restless->stops() == 1);
  const auto tokens = OpenSure({.data_dir = dir.Sub("data")});
  CHECK(tokens->Acquire(kNine).outcome == Outcome::kNoRule);
}

TEST_CASE("a source is told that the ledger failed") {
  const TempDir dir;
  const auto own = std::make_shared<OwnRules>(1);
  const auto tokens = OpenSure({.data_dir = dir.Sub("data"), .rule_sources = {own}});
  std::filesystem::rename(dir.Sub("data/ledger"), dir.Sub("aside"));
  for (const int level : {2, 3}) {
    CHECK(Contains(own->Deliver(level).message(), "the ledger failed"));
  }
}

TEST_CASE("the program's strategy decides about due tokens, whose hold has the program's factor") {
  const auto strategy = std::make_shared<OwnStrategy>();
  const auto tokens = OpenSure({.expire_strategy = strategy, .resource_timeout_factor = 3});
  REQUIRE(tokens->LoadRules("default", RulesOfNine(1, {{"resourceTimeout", 50}})).ok());
  const Acquired held = tokens->Acquire(kNine, {.keep = KeepMode::kOff});
  REQUIRE(held.ok());
  REQUIRE(PollUntil(kPatienceMs, [&] { return strategy->hold_ms > 0; }));
  CHECK(strategy->hold_ms == 150);
  CHECK(tokens->Acquire(kNine).refused_by == RefusedBy::kLevel);
  strategy->patient = false;
  CHECK(tokens->Acquire(kNine, {.wait = Milliseconds(kPatienceMs)}).ok());
}

}  // namespace nowcalls::testing
