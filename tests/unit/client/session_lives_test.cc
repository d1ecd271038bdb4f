// Random lives of a session as vectors, which sessions of other languages play: more than anybody
// would write by hand.
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/prng.h"
#include "nowcalls/flow_name.h"
#include "unit/client/vector_cases.h"

namespace nowcalls::client {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): of tests.

template <typename T, size_t N>
T OneOf(Prng* prng, const T (&choices)[N]) {
  return choices[prng->Below(N)];
}

bool Chance(Prng* prng, uint64_t percent) { return prng->Below(100) < percent; }

ClientOptions DrawOptions(Prng* prng) {
  ClientOptions options = Shop(OneOf(prng, {Fallback::kFail, Fallback::kByRule, Fallback::kByRule,
                                            Fallback::kLocal, Fallback::kPass}));
  options.timeout = Milliseconds(OneOf(prng, {300, 1000, 5000}));
  options.exclusive = Chance(prng, 10);
  if (Chance(prng, 40)) options.addresses.emplace_back("b:2");
  if (Chance(prng, 15)) options.secret = "nc-0123456789abcdef";
  if (Chance(prng, 40)) options.local_levels = {{FlowId(1001), 2}, {FlowNamed("checkout"), 1}};
  return options;
}

class Life {
 public:
  explicit Life(uint64_t seed)
      : prng_(seed),
        script_("life " + std::to_string(seed), DrawOptions(&prng_), Chance(&prng_, 90) ? 7 : 0) {}

  std::string Live() {
    for (int event = 0; event < 80; ++event) {
      const int64_t pauses[] = {0, 0, 0, 5, 50, 400, 3000};
      TimePasses(script_.moment().now_ms + OneOf(&prng_, pauses));
      Act();
      if (script_.moment().hangs_up) script_.Disconnected();
    }
    return script_.Text();
  }

 private:
  // The owner does what is due on time, but for a few times.
  void TimePasses(int64_t until_ms) {
    const bool late = Chance(&prng_, 3);
    while (!late && script_.session().Wakeup() <= until_ms) {
      const int64_t due_ms = script_.session().Wakeup();
      const bool on_time = due_ms >= script_.moment().now_ms;
      if (!script_.moment().connected && due_ms == script_.moment().dials_at_ms) {
        if (on_time) script_.DialDue();
        Chance(&prng_, 40) ? script_.DialFailed() : script_.Connected();
      } else {
        on_time ? script_.TickDue() : script_.Tick();
      }
      if (script_.moment().hangs_up) script_.Disconnected();
    }
    script_.At(until_ms);
  }

  void Act() {
    if (!script_.asked().empty() && script_.moment().connected && Chance(&prng_, 55))
      return Answer();
    const uint64_t act = prng_.Below(100);
    if (act < 40) return Acquire();
    if (act < 50) return AcquireAll();
    if (act < 60) return Request();
    if (act < 82) return UsePermit();
    if (act < 92 && script_.moment().connected) return script_.Disconnected();
    if (act < 95 && script_.moment().connected) {
      return script_.Lost(100 + prng_.Below(token_ - 99),
                          OneOf(&prng_, {"admin", "client_offline"}));
    }
    if (act < 96 && script_.moment().connected) return script_.ReceiveBytes("\xc1");
    if (act < 97 && Chance(&prng_, 30)) return script_.Close();
    script_.Tick();
  }

  FlowId Flow() {
    const FlowId flows[] = {FlowId(1001), FlowId(1001), FlowId(4001), FlowNamed("checkout")};
    return OneOf(&prng_, flows);
  }

  Value Param() {
    const Value params[] = {{}, {}, {}, "key", int64_t{7}, true, 0.5};
    return OneOf(&prng_, params);
  }

  AcquireOptions Options() {
    AcquireOptions options;
    if (Chance(&prng_, 30)) options.wait = Milliseconds(OneOf(&prng_, {0, 200, 2000}));
    if (Chance(&prng_, 20)) options.timeout = Milliseconds(OneOf(&prng_, {100, 1500}));
    if (Chance(&prng_, 10)) options.hold = 1500ms;
    options.keep =
        OneOf(&prng_, {KeepMode::kByRule, KeepMode::kByRule, KeepMode::kAlways, KeepMode::kOff});
    return options;
  }

  std::string Name() { return "c" + std::to_string(++calls_); }

  void Acquire() {
    AcquireOptions options = Options();
    options.count = static_cast<uint32_t>(OneOf(&prng_, {1, 1, 2}));
    options.param = Param();
    options.prioritized = Chance(&prng_, 20);
    script_.Acquire(Name(), options, Flow());
  }

  void AcquireAll() {
    AcquireOptions options = Options();
    options.sleep = false;  // A token that is lost in its caller's sleep has no name.
    std::vector<FlowDemand> demands;
    for (uint64_t i = 0; i < 1 + prng_.Below(3); ++i) {
      demands.push_back({Flow(), 1, Param(), Chance(&prng_, 30)});
    }
    script_.AcquireAll(Name(), demands, options);
  }

  void Request() {
    RequestOptions options;
    options.sleep = Chance(&prng_, 60);
    if (Chance(&prng_, 30)) options.timeout = 200ms;
    if (Chance(&prng_, 50)) {
      script_.RequestParam(Name(), {"key", int64_t{7}}, options, Flow());
    } else {
      options.prioritized = Chance(&prng_, 20);
      script_.Request(Name(), options, Flow());
    }
  }

  void UsePermit() {
    const bool keeps = Chance(&prng_, 30);
    const std::vector<std::string> permits = script_.permits(keeps);
    if (permits.empty()) return Acquire();
    const std::string& permit = permits[prng_.Below(permits.size())];
    if (keeps) return script_.Keep(permit);
    if (!released_.insert(permit).second) return Acquire();
    script_.Release(permit, OneOf(&prng_, {CallOutcome::kOk, CallOutcome::kFailed}));
  }

  Json DrawTerms() {
    if (Chance(&prng_, 10)) return nullptr;
    const int64_t offlines[] = {900, 3000, 60'000, 60'000};
    return Terms(OneOf(&prng_, {0, 1, 2, 2, 3}), OneOf(&prng_, offlines));
  }

  Json Token() {
    const uint64_t token = Chance(&prng_, 2) ? token_ : ++token_;
    return Json::array({token, 5, OneOf(&prng_, {500, 2000, 4000, 4000}), DrawTerms()});
  }

  void Answer() {
    const auto& asked = script_.asked();
    const size_t index = Chance(&prng_, 60) ? 0 : prng_.Below(asked.size());
    if (Chance(&prng_, 5)) {
      const int code = OneOf(&prng_, {2, 3, 5, 7, 8, 9, 11});
      const Json error = Json::array({code, "NAME", "because"});
      return script_.Receive({script_.AnswerAt(index, nullptr, error)});
    }
    const std::string method = asked[index].method;
    const Json result = ResultOf(method, index);
    script_.Receive({script_.AnswerAt(index, result)});
  }

  Json ResultOf(const std::string& method, size_t index) {
    if (method == "hello") {
      const uint64_t held = script_.session().stats().held;
      const uint64_t resumed[] = {0, held, held, held + 1, held - (held > 0 ? 1 : 0)};
      return Json::array({"1.0", 9, 1 + prng_.Below(3), OneOf(&prng_, resumed)});
    }
    if (method == "identify") return Json::array({"me", "client", "secret", nullptr});
    if (method == "acquire") return Acquired();
    if (method == "acquire_all") return AllAcquired(script_.asked()[index].items);
    if (method == "keep") {
      if (Chance(&prng_, 15)) return Json::array({7, 0});
      return Json::array({0, OneOf(&prng_, {500, 4000}), DrawTerms()});
    }
    if (method == "release" || method == "cancel") return Json::array({OneOf(&prng_, {6, 6, 7})});
    if (method == "ping") return Json::array({1'700'000'000'000});
    if (method == "rules_list") return DrawRules();
    switch (prng_.Below(5)) {
      case 0: return Json::array({2, 0, OneOf(&prng_, {50, 500}), nullptr});
      case 1: return Json::array({1, 0, 0, "rate"});
      case 2: return Json::array({-2, 0, 0, "namespace_qps"});
      default: return Json::array({0, 4, 0, nullptr});
    }
  }

  const char* Word() {
    return OneOf(&prng_, {"level", "queue_full", "over_level", "queue_timeout"});
  }

  Json Acquired() {
    switch (prng_.Below(8)) {
      case 0: return Json::array({1, 0, 0, 2, 2, 0, Word()});
      case 1: return Json::array({-2, 0, 0, 2, 2, 0, "token_limit"});
      case 2: return Json::array({OneOf(&prng_, {3, 5, -4}), 0, 0, 0, 0, 0, nullptr});
      default: break;
    }
    const Json token = Token();
    return Json::array({0, token[0], token[1], 1, 2, token[2], nullptr, nullptr, token[3]});
  }

  Json AllAcquired(const Json& items) {
    if (Chance(&prng_, 30)) {
      if (Chance(&prng_, 20)) return Json::array({-4, Json::array(), "request_id", 0, 0, 0});
      return Json::array({OneOf(&prng_, {1, 1, -2, -4}), Json::array(), Word(),
                          OneOf(&prng_, {1001, 77, 0}), 1, 1});
    }
    Json tokens = Json::array();
    for (const Json& item : items) {
      const bool rate = item.size() > 3;
      tokens.push_back(rate ? Json::array({0, 0, OneOf(&prng_, {0, 50, 500})}) : Token());
    }
    return Json::array({0, tokens, nullptr, 0, 0, 0});
  }

  Json DrawRules() {
    if (Chance(&prng_, 20)) return Json::array({Json::array(), nullptr});
    Json rows = Json::array();
    const int64_t flows[] = {1001, 4001, 77};
    const int64_t flow = OneOf(&prng_, flows);
    for (const char* kind : {"flow", "value"}) {
      Json page = Rules(flow, OneOf(&prng_, {0.5, 2.0, 3.0, 7.0}), Chance(&prng_, 70), kind,
                        Json{{"acquireRefuseStrategy", OneOf(&prng_, {0, 3})}});
      Json rule = page[0][0];
      if (flow == 77) rule["resource"] = "checkout";
      rows.push_back(rule);
    }
    return Json::array({rows, nullptr});
  }

  Prng prng_;
  VectorScript script_;
  uint64_t token_ = 100;
  int calls_ = 0;
  std::set<std::string> released_;
};

TEST_CASE("random lives go the same way again, and are written for others") {
  for (uint64_t seed = 1; seed <= 20; ++seed) CHECK(Life(seed).Live() == Life(seed).Live());
  const char* const directory = std::getenv("NOWCALLS_LIVES_DIR");
  if (directory == nullptr) return;
  const char* const number = std::getenv("NOWCALLS_LIVES");
  const uint64_t lives = number == nullptr ? 100 : std::strtoull(number, nullptr, 10);
  for (uint64_t seed = 1; seed <= lives; ++seed) {
    std::ofstream(std::filesystem::path(directory) / (std::to_string(seed) + ".json"))
        << Life(seed).Live();
  }
}

}  // namespace
}  // namespace nowcalls::client
