// Script: a session, its server, whose answers a test writes, and what its callers were told.
#ifndef NOWCALLS_UNIT_CLIENT_SESSION_SCRIPT_H_
#define NOWCALLS_UNIT_CLIENT_SESSION_SCRIPT_H_

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/session.h"
#include "support/json.h"
#include "support/rpc_client.h"
#include "wire/splitter.h"

namespace nowcalls::client {
using testing::Json;

inline constexpr FlowId kSeven{7};

inline ClientOptions OptionsWith(Fallback fallback) {
  ClientOptions options;
  options.addresses = {"a:1"};
  options.client_id = "me";
  options.timeout = Milliseconds(1000);
  options.fallback = fallback;
  return options;
}

struct Script {
  explicit Script(ClientOptions options = OptionsWith(Fallback::kFail), uint64_t instance = 0)
      : session(std::move(options), Prng(1), 0, instance) {}

  // The next request as [msgid, method, params]; null if there is none.
  Json TakeRequest() {
    sent += session.output()->view();
    session.output()->Clear();
    wire::MessageSplitter splitter;
    size_t bytes = 0;
    if (splitter.Next(sent, &bytes) != wire::MessageSplitter::Outcome::kMessage) return nullptr;
    const Json message = testing::FromMessagePack(sent.substr(0, bytes));
    sent.erase(0, bytes);
    return Json::array({message[1], message[2], message[3]});
  }
  Json Expect(std::string_view method) {
    Json request = TakeRequest();
    REQUIRE_MESSAGE(!request.is_null(), "no request, instead of ", method);
    CHECK(request[1].get<std::string>() == method);
    return request;
  }
  void Receive(const Json& message) {
    REQUIRE(session.Received(testing::ToMessagePack(message), now).ok());
    Tell();
  }
  void Answer(const Json& request, const Json& result) {
    Receive(Json::array({1, request[0], nullptr, result}));
  }
  void Refuse(const Json& request, int code, const char* name) {
    Receive(Json::array({1, request[0], Json::array({code, name, "because"}), nullptr}));
  }
  void Tell() {
    ClientSession::Events events = session.TakeEvents();
    for (const HeldPtr& token : events.lost) lost.push_back(token->lost_reason);
    for (const auto& [level, line] : events.lines) lines.push_back(line);
    for (const CallPtr& call : events.finished) call->Notify();
  }
  void Tick(int64_t at) {
    now = at;
    REQUIRE(session.Tick(now).ok());
    Tell();
  }

  void Connect(uint64_t resumed = 0) {
    session.Connected(now);
    Answer(Expect("hello"), Json::array({"1.0", 9, 2, resumed}));
    CHECK(session.ready());
  }
  void Break() {
    session.Disconnected("it broke", now);
    sent.clear();
    Tell();
  }

  std::shared_ptr<AcquireCall> Acquire(AcquireOptions options = {}) {
    auto call = std::make_shared<AcquireCall>();
    call->demands = {{kSeven, options.count, options.param}};
    call->options = std::move(options);
    call->tell = [this](const nowcalls::Answer& answer, const std::vector<HeldPtr>& tokens) {
      answers.push_back(answer);
      held.insert(held.end(), tokens.begin(), tokens.end());
    };
    session.Acquire(call, now);
    Tell();
    return call;
  }
  std::shared_ptr<AcquireCall> AcquireAll(std::vector<FlowDemand> demands,
                                          AcquireOptions options = {}) {
    auto call = std::make_shared<AcquireCall>();
    call->all = true;
    call->demands = std::move(demands);
    call->options = std::move(options);
    call->tell = [this](const nowcalls::Answer& answer, const std::vector<HeldPtr>& tokens) {
      answers.push_back(answer);
      held.insert(held.end(), tokens.begin(), tokens.end());
    };
    session.Acquire(call, now);
    Tell();
    return call;
  }
  std::shared_ptr<RateCall> Request(std::vector<Value> values = {}, RequestOptions options = {}) {
    auto call = std::make_shared<RateCall>();
    call->flow = kSeven;
    call->by_value = !values.empty();
    call->values = std::move(values);
    call->options = options;
    call->tell = [this](Passed told) { passed.push_back(std::move(told)); };
    session.Request(call, now);
    Tell();
    return call;
  }
  void Release(const HeldPtr& token, CallOutcome outcome = CallOutcome::kOk) {
    session.Release(
        token, outcome, [this](Released told) { released.push_back(std::move(told)); }, now);
    Tell();
  }
  static Json Granted(uint64_t token, uint64_t hold_ms = 4000) {
    return Json::array({0, token, 5, 1, 2, hold_ms, nullptr});
  }
  // Under a rule with a resourceTimeout of 2 s.
  static Json Terms(int strategy, int64_t offline_ms = 60'000) {
    return Json::array({strategy, 2000, offline_ms});
  }
  static Json GrantedUnder(const Json& terms, uint64_t token = 1, uint64_t hold_ms = 4000) {
    return Json::array({0, token, 5, 1, 2, hold_ms, nullptr, nullptr, terms});
  }
  static Json Blocked(const char* limit) { return Json::array({1, 0, 0, 2, 2, 0, limit}); }
  static uint64_t RequestId(const Json& acquire) {
    return acquire[2][2].at("request_id").get<uint64_t>();
  }

  ClientSession session;
  int64_t now = 0;
  std::string sent;
  std::vector<nowcalls::Answer> answers;
  std::vector<HeldPtr> held;
  std::vector<Released> released;
  std::vector<Passed> passed;
  std::vector<std::string> lost;
  std::vector<std::string> lines;
};

}  // namespace nowcalls::client

#endif  // NOWCALLS_UNIT_CLIENT_SESSION_SCRIPT_H_
