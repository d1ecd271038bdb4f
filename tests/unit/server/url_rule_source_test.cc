// Rules of URLs: real threads and a real loop in front of a real core; answers come by hand.
#include "server/rules/url_rule_source.h"

#include <doctest/doctest.h>

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/fingerprint.h"
#include "core/tables/flow_table.h"
#include "engine/rule_intake.h"
#include "support/core_harness.h"
#include "support/only_flow.h"
#include "unit/server/loop_fixture.h"

namespace nowcalls::server {
namespace {

using testing::RulesJson;

// Answers that a test hands over, one for each Fetch.
struct Answers {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Fetched> given;
  bool interrupted = false;
  int asked_again = 0;

  void Give(Fetched fetched) {
    const std::lock_guard lock(mutex);
    given.push_back(std::move(fetched));
    changed.notify_all();
  }
};

class HandedDocument final : public RemoteDocument {
 public:
  explicit HandedDocument(Answers* answers) : answers_(answers) {}

  Fetched Fetch(bool again) override {
    std::unique_lock lock(answers_->mutex);
    if (again) ++answers_->asked_again;
    answers_->changed.wait(lock, [&] { return answers_->interrupted || !answers_->given.empty(); });
    if (std::exchange(answers_->interrupted, false)) return {};
    Fetched fetched = std::move(answers_->given.front());
    answers_->given.pop_front();
    return fetched;
  }
  void Interrupt() override {
    const std::lock_guard lock(answers_->mutex);
    answers_->interrupted = true;
    answers_->changed.notify_all();
  }

 private:
  Answers* const answers_;
};

std::string UrlOf(const std::string& name_space) { return "http://h/" + name_space; }

class AskedUrls {
 public:
  explicit AskedUrls(const std::vector<std::string>& namespaces, const RulesAtStart& at_start = {},
                     bool strict = false)
      : intake_(&h.core(), [this] { return h.step(); }) {
    std::vector<UrlRules> urls;
    for (const std::string& name_space : namespaces) {
      answers.push_back(std::make_unique<Answers>());
      urls.push_back({.url = {.name_space = name_space, .url = UrlOf(name_space), .etcd = {}},
                      .remote = std::make_unique<HandedDocument>(answers.back().get()),
                      .at_start = at_start});
    }
    source = std::make_unique<UrlRuleSource>(
        loop.get(), std::move(urls), /*takeover=*/false, strict,
        [this](Severity severity, const std::string& text, const LogFields&) {
          log += std::string(SeverityName(severity)) + " " + text + "\n";
        });
    REQUIRE(source->Start(&intake_).ToString() == "ok");
  }
  ~AskedUrls() {
    source->Stop();
    CHECK(loop.RunUntil([this] { return source->idle(); }));
    uv_run(loop.get(), UV_RUN_DEFAULT);
  }
  AskedUrls(const AskedUrls&) = delete;
  AskedUrls& operator=(const AskedUrls&) = delete;

  void Give(size_t url, const std::string& text) {
    answers[url]->Give(Fetched::Read(text, /*pause_ms=*/0));
  }
  void AwaitLog(const std::string& text) {
    const bool seen = loop.RunUntil([&] { return log.find(text) != std::string::npos; });
    INFO(log);
    REQUIRE_MESSAGE(seen, text);
  }
  int Logged(const std::string& text) const {
    int count = 0;
    for (size_t at = log.find(text); at != std::string::npos; at = log.find(text, at + 1)) ++count;
    return count;
  }
  // -1: it has no rule.
  double Level(int64_t flow) {
    const core::FlowTable& flows = h.core().flows();
    const core::FlowSlot slot = OnlyFlow(flows, flow);
    return slot == core::kNoFlow ? -1 : flows.at(slot).rule->count;
  }
  const core::RuleLoads& LoadsOf(const std::string& name_space) {
    const core::FlowTable& flows = h.core().flows();
    const core::NamespaceSlot slot = flows.FindNamespace(name_space);
    REQUIRE(slot != core::kNoNamespace);
    return flows.name_space(slot).loads;
  }

  testing::CoreHarness h;
  TestLoop loop;
  std::string log;
  std::vector<std::unique_ptr<Answers>> answers;
  std::unique_ptr<UrlRuleSource> source;

 private:
  engine::RuleIntake intake_;
};

const std::string kNoRules = "[]";

TEST_CASE("what a URL answers is in force, and the same once more is not loaded") {
  AskedUrls urls({"shop"});
  urls.Give(0, RulesJson({{.flow = 1, .count = 7}}));
  urls.AwaitLog("info rule source http://h/shop: loaded, 1 rule of namespace 'shop' in force\n");
  CHECK(urls.Level(1) == 7);
  urls.Give(0, RulesJson({{.flow = 1, .count = 7}}));
  urls.answers[0]->Give(Fetched::Unchanged(0));
  urls.Give(0, RulesJson({{.flow = 1, .count = 8}}));
  REQUIRE(urls.loop.RunUntil([&] { return urls.Level(1) == 8; }));
  CHECK(urls.Logged("loaded") == 2);
}

TEST_CASE("what the start has put in force is not loaded again") {
  const std::string text = RulesJson({{.flow = 1, .count = 7}});
  AskedUrls urls({"shop"}, {.fingerprint = Fingerprint(text)});
  urls.Give(0, text);
  urls.Give(0, kNoRules);
  urls.AwaitLog("loaded, 0 rules");
  CHECK(urls.Logged("loaded") == 1);
}

TEST_CASE("a failure is told of once, with its end, and the rules of before stay") {
  AskedUrls urls({"shop"});
  const std::string text = RulesJson({{.flow = 1, .count = 7}});
  urls.Give(0, text);
  for (int i = 0; i < 3; ++i) urls.answers[0]->Give(Fetched::Failed("answers 500", 0));
  urls.answers[0]->Give(Fetched::Failed("answers 404", 0));
  urls.AwaitLog("warn rule source http://h/shop: answers 404; the rules of before stay in force\n");
  CHECK(urls.Logged("answers 500") == 1);
  CHECK(urls.Level(1) == 7);
  CHECK(urls.LoadsOf("shop").refusal.find("the source http://h/shop answers 404") !=
        std::string::npos);
  urls.Give(0, text);
  urls.AwaitLog("info rule source http://h/shop: is back, unchanged\n");
  CHECK(urls.LoadsOf("shop").refusal.empty());
}

TEST_CASE("a refused document is refused again when it comes back behind a failure") {
  AskedUrls urls({"shop"});
  urls.Give(0, "[{");
  urls.AwaitLog("not valid JSON");
  urls.answers[0]->Give(Fetched::Failed("answers 500", 0));
  urls.Give(0, "[{");
  REQUIRE(urls.loop.RunUntil([&] { return urls.Logged("not valid JSON") == 2; }));
  CHECK(urls.Logged("is back") == 0);
}

TEST_CASE("a flow moves from one URL to another, though the two answer one after the other") {
  AskedUrls urls({"shop", "bank"});
  urls.Give(0, RulesJson({{.flow = 1, .count = 7}}));
  REQUIRE(urls.loop.RunUntil([&] { return urls.Level(1) == 7; }));
  urls.Give(1, RulesJson({{.flow = 1, .count = 8}}));
  urls.AwaitLog("warn rule source http://h/bank: ");
  CHECK(urls.Level(1) == 7);
  urls.Give(0, kNoRules);
  REQUIRE(urls.loop.RunUntil([&] { return urls.Level(1) == 8; }));
}

TEST_CASE("a set that is warned of is refused under strict") {
  AskedUrls urls({"shop"}, {}, /*strict=*/true);
  urls.Give(0, R"([{"resource": "r", "grade": 0, "count": 1, "clusterMode": true,
                    "clusterConfig": {"flowId": 1, "thresholdTyp": 1}}])");
  urls.AwaitLog("rules-strict takes none");
  CHECK(urls.Level(1) == -1);
}

TEST_CASE("somebody who asks gets an answer, whatever the URL waits for") {
  AskedUrls urls({"shop"});
  const std::string text = RulesJson({{.flow = 1, .count = 7}});
  urls.Give(0, text);
  urls.AwaitLog("loaded");
  urls.source->ReloadAll();
  urls.Give(0, text);
  urls.AwaitLog("reloaded, 1 rule of namespace 'shop' in force");
  const std::lock_guard lock(urls.answers[0]->mutex);
  CHECK(urls.answers[0]->asked_again >= 1);
}

TEST_CASE("nothing is delivered behind the end") {
  AskedUrls urls({"shop"});
  urls.source->Stop();
  urls.Give(0, RulesJson({{.flow = 1, .count = 7}}));
  CHECK(urls.loop.RunUntil([&] { return urls.source->idle(); }));
  CHECK(urls.Level(1) == -1);
  CHECK(urls.log.empty());
}

}  // namespace
}  // namespace nowcalls::server
