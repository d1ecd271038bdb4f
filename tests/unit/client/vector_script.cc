#include "unit/client/vector_script.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "base/hex.h"
#include "client/answers.h"
#include "client/flow_text.h"
#include "nowcalls/flow_name.h"
#include "wire/splitter.h"

namespace nowcalls::client {
namespace {

const char* FallbackName(Fallback fallback) {
  switch (fallback) {
    case Fallback::kFail: return "fail";
    case Fallback::kByRule: return "rule";
    case Fallback::kLocal: return "local";
    case Fallback::kPass: return "pass";
  }
  return "?";
}

const char* KeepName(KeepMode keep) {
  switch (keep) {
    case KeepMode::kByRule: return "rule";
    case KeepMode::kAlways: return "always";
    case KeepMode::kOff: return "off";
  }
  return "?";
}

Json ValueOf(const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* flag = std::get_if<bool>(&value)) return *flag;
  if (const auto* number = std::get_if<int64_t>(&value)) return *number;
  if (const auto* real = std::get_if<double>(&value)) return *real;
  return nullptr;
}

Json FlowOf(FlowId flow) {
  const std::string_view name = NameOfFlow(flow);
  return name.empty() ? Json(flow.value) : Json(name);
}

Json MsOf(const std::optional<Milliseconds>& time) {
  return time ? Json(time->count()) : Json(nullptr);
}

void AddOptions(const AcquireOptions& options, Json* step) {
  (*step)["wait_ms"] = MsOf(options.wait);
  (*step)["prioritized"] = options.prioritized;
  (*step)["hold_ms"] = options.hold.count();
  (*step)["keep"] = KeepName(options.keep);
  (*step)["timeout_ms"] = MsOf(options.timeout);
}

void AddOptions(const RequestOptions& options, Json* step) {
  (*step)["count"] = options.count;
  (*step)["sleep"] = options.sleep;
  (*step)["timeout_ms"] = MsOf(options.timeout);
}

Json TokenOf(const HeldPtr& held) {
  return held == nullptr ? Json(nullptr) : Json(held->grant.token.value);
}

}  // namespace

VectorScript::VectorScript(std::string name, ClientOptions options, uint64_t instance)
    : name_(std::move(name)),
      options_(std::move(options)),
      instance_(instance),
      session_(options_, Prng(1), 0, instance),
      dials_(options_.addresses.front()) {}

// The connection.

void VectorScript::DialDue() {
  moment_.now_ms = session_.Wakeup();
  if (moment_.now_ms != session_.dialing().at_ms())
    throw std::runtime_error(name_ + ": no dial is due");
  Json step = Step("dial");
  step["due"] = true;
  step["address"] = session_.dialing().address();
  session_.dialing().Begin();
  Done(std::move(step));
}

void VectorScript::Connected() {
  asked_.clear();
  moment_.connected = true;
  session_.Connected(moment_.now_ms);
  Done(Step("connected"));
}

void VectorScript::DialFailed() {
  session_.DialFailed("refused", moment_.now_ms);
  Json step = Step("dial_failed");
  step["reason"] = "refused";
  Done(std::move(step));
}

void VectorScript::Disconnected() {
  session_.Disconnected("it broke", moment_.now_ms);
  moment_.connected = false;
  moment_.hangs_up = false;
  Json step = Step("disconnected");
  step["reason"] = "it broke";
  Done(std::move(step));
}

void VectorScript::Denied() {
  session_.Deny(PermissionDeniedOf("it refuses the certificate"), moment_.now_ms);
  Json step = Step("denied");
  step["reason"] = "it refuses the certificate";
  Done(std::move(step));
}

void VectorScript::Connect(uint64_t resumed_tokens) {
  Connected();
  Answer("hello", Json::array({"1.0", 9, 2, resumed_tokens}));
}

Json VectorScript::AnswerTo(std::string_view method, const Json& result, const Json& error) {
  const auto found = std::find_if(asked_.begin(), asked_.end(),
                                  [&](const Asked& asked) { return asked.method == method; });
  if (found == asked_.end()) {
    throw std::runtime_error(name_ + ": nothing has asked " + std::string(method));
  }
  return AnswerAt(static_cast<size_t>(found - asked_.begin()), result, error);
}

Json VectorScript::AnswerAt(size_t index, const Json& result, const Json& error) {
  const Json msgid = asked_.at(index).msgid;
  asked_.erase(asked_.begin() + static_cast<std::ptrdiff_t>(index));
  return Json::array({1, msgid, error, result});
}

void VectorScript::Answer(std::string_view method, const Json& result) {
  Receive({AnswerTo(method, result)});
}

std::vector<std::string> VectorScript::permits(bool held) const {
  std::vector<std::string> names;
  for (const auto& [name, permit] : permits_) {
    const bool on_server = permit->state == Held::State::kHeld && !permit->grant.local;
    if (!held || (on_server && !permit->IsLost(moment_.now_ms))) names.push_back(name);
  }
  return names;
}

void VectorScript::Refuse(std::string_view method, int code, const char* name) {
  Receive({AnswerTo(method, nullptr, Json::array({code, name, "because"}))});
}

void VectorScript::Lost(uint64_t token, const char* reason) {
  Receive({Json::array({2, "lost", Json::array({token, 1001, reason})})});
}

void VectorScript::Receive(const std::vector<Json>& messages) {
  std::string bytes;
  for (const Json& message : messages) bytes += testing::ToMessagePack(message);
  ReceiveBytes(bytes, messages.size() == 1 ? messages.front() : Json(messages));
}

void VectorScript::ReceiveBytes(const std::string& bytes, Json shows) {
  const Status understood = session_.Received(bytes, moment_.now_ms);
  Json step = Step("received");
  step["bytes"] = ToHex(bytes);
  if (!shows.is_null()) step["shows"] = std::move(shows);
  moment_.hangs_up = !understood.ok();
  if (moment_.hangs_up) step["hangs_up"] = understood.message();
  Done(std::move(step));
}

void VectorScript::Tick() {
  const Status ticked = session_.Tick(moment_.now_ms);
  Json step = Step("tick");
  moment_.hangs_up = !ticked.ok();
  if (moment_.hangs_up) step["hangs_up"] = ticked.message();
  Done(std::move(step));
}

void VectorScript::TickDue() {
  moment_.now_ms = session_.Wakeup();
  Tick();
  steps_.back()["due"] = true;
}

void VectorScript::HasDrawnPause() {
  steps_.back()["pause_ms"] = session_.Wakeup() - moment_.now_ms;
}

// Calls.

void VectorScript::Ask(const std::string& call, Json step,
                       const std::shared_ptr<AcquireCall>& acquire) {
  acquire->tell = [this, call, told = acquire.get()](const nowcalls::Answer& answer,
                                                     const std::vector<HeldPtr>& held) {
    Json line = Json::object();
    if (answer.ok()) {
      Json tokens = Json::array();
      for (size_t i = 0; i < held.size(); ++i) {
        tokens.push_back(TokenOf(held[i]));
        if (held[i] == nullptr) continue;
        permits_[told->all ? call + "/" + std::to_string(i) : call] = held[i];
      }
      line["tokens"] = std::move(tokens);
      line["now_calls"] = answer.now_calls;
      line["level"] = answer.level;
      if (told->all) line["wait_ms"] = told->wait.count();
    }
    Tell(call, answer, std::move(line));
  };
  step["call"] = call;
  AddOptions(acquire->options, &step);
  session_.Acquire(acquire, moment_.now_ms);
  request_ids_.push_back(acquire->request_id);
  Done(std::move(step));
}

void VectorScript::Acquire(const std::string& call, const AcquireOptions& options, FlowId flow) {
  auto acquire = std::make_shared<AcquireCall>();
  acquire->demands = {{flow, options.count, options.param}};
  acquire->options = options;
  Json step = Step("acquire");
  step["flow"] = FlowOf(flow);
  step["count"] = options.count;
  step["param"] = ValueOf(options.param);
  Ask(call, std::move(step), acquire);
}

void VectorScript::AcquireAll(const std::string& call, const std::vector<FlowDemand>& demands,
                              const AcquireOptions& options) {
  auto acquire = std::make_shared<AcquireCall>();
  acquire->all = true;
  acquire->demands = demands;
  acquire->options = options;
  Json items = Json::array();
  for (const FlowDemand& demand : demands) {
    items.push_back(Json::array(
        {FlowOf(demand.flow), demand.count, ValueOf(demand.param), demand.rate ? 1 : 0}));
  }
  Json step = Step("acquire_all");
  step["items"] = std::move(items);
  step["sleep"] = options.sleep;
  Ask(call, std::move(step), acquire);
}

void VectorScript::Ask(const std::string& call, Json step, const std::shared_ptr<RateCall>& rate) {
  rate->tell = [this, call](const Passed& passed) {
    Json line = Json::object();
    if (passed.ok()) {
      line["remaining"] = passed.remaining;
      line["wait_ms"] = passed.wait.count();
    }
    Tell(call, passed, std::move(line));
  };
  step["call"] = call;
  step["flow"] = FlowOf(rate->flow);
  AddOptions(rate->options, &step);
  session_.Request(rate, moment_.now_ms);
  Done(std::move(step));
}

void VectorScript::Request(const std::string& call, const RequestOptions& options, FlowId flow) {
  auto rate = std::make_shared<RateCall>();
  rate->flow = flow;
  rate->options = options;
  Json step = Step("request");
  step["prioritized"] = options.prioritized;
  Ask(call, std::move(step), rate);
}

void VectorScript::RequestParam(const std::string& call, const std::vector<Value>& values,
                                const RequestOptions& options, FlowId flow) {
  auto rate = std::make_shared<RateCall>();
  rate->flow = flow;
  rate->by_value = true;
  rate->values = values;
  rate->options = options;
  Json list = Json::array();
  for (const Value& value : values) list.push_back(ValueOf(value));
  Json step = Step("request_param");
  step["values"] = std::move(list);
  Ask(call, std::move(step), rate);
}

void VectorScript::Release(const std::string& permit, CallOutcome outcome) {
  Json step = Step("release");
  step["permit"] = permit;
  step["outcome"] = CallOutcomeName(outcome);
  const std::string call = "release " + permit;
  session_.Release(
      permits_.at(permit), outcome,
      [this, call](const Released& released) {
        Json line = Json::object();
        line["lost"] = released.lost;
        Tell(call, released, std::move(line));
      },
      moment_.now_ms);
  Done(std::move(step));
}

void VectorScript::Keep(const std::string& permit) {
  Json step = Step("keep");
  step["permit"] = permit;
  session_.Keep(
      permits_.at(permit),
      [this, permit](const nowcalls::Kept& kept) {
        Json line = Json::object();
        if (kept.ok()) line["hold_ms"] = kept.hold.count();
        Tell("keep " + permit, kept, std::move(line));
      },
      moment_.now_ms);
  Done(std::move(step));
}

void VectorScript::Close() {
  session_.Close(moment_.now_ms);
  closed_ = true;
  Done(Step("close"));
}

// What has come of a step.

Json VectorScript::Step(const char* what) const {
  Json step = Json::object();
  step["at_ms"] = moment_.now_ms;
  step["do"] = what;
  return step;
}

void VectorScript::Tell(const std::string& call, const nowcalls::Answer& answer, Json told) {
  told["call"] = call;
  told["outcome"] = OutcomeName(answer.outcome);
  if (answer.local) told["local"] = true;
  if (answer.outcome == Outcome::kRefused && answer.refused_by != RefusedBy::kNone) {
    told["flow"] = FlowOf(answer.flow);
    told["refused_by"] = RefusedByName(answer.refused_by);
    told["now_calls"] = answer.now_calls;
    told["level"] = answer.level;
  }
  answers_.push_back(std::move(told));
}

std::string VectorScript::NameOf(const HeldPtr& held) const {
  for (const auto& [name, permit] : permits_) {
    if (permit == held) return name;
  }
  throw std::runtime_error(name_ + ": a token is lost that no caller has");
}

void VectorScript::CollectSent(Json* step) {
  std::string sent(session_.output()->view());
  session_.output()->Clear();
  if (sent.empty()) return;
  (*step)["sent"] = ToHex(sent);
  Json shows = Json::array();
  wire::MessageSplitter splitter;
  for (size_t bytes = 0; !sent.empty(); sent.erase(0, bytes)) {
    if (splitter.Next(sent, &bytes) != wire::MessageSplitter::Outcome::kMessage) {
      throw std::runtime_error(name_ + ": a message is cut off");
    }
    shows.push_back(testing::FromMessagePack(sent.substr(0, bytes)));
    const Json& message = shows[shows.size() - 1];
    const auto method = message[2].get<std::string>();
    asked_.push_back({method, message[1], method == "acquire_all" ? message[3][0] : Json()});
  }
  (*step)["sent_shows"] = std::move(shows);
}

void VectorScript::CollectValidity(Json* step) {
  Json changed = Json::object();
  for (const auto& [name, held] : permits_) {
    const int64_t until_ms = held->validity.until_ms();
    const auto noted = valid_until_.find(name);
    if (held->grant.local || held->state != Held::State::kHeld) continue;
    if (noted != valid_until_.end() && noted->second == until_ms) continue;
    valid_until_[name] = until_ms;
    changed[name] = until_ms;
  }
  if (!changed.empty()) (*step)["valid_until_ms"] = std::move(changed);
}

// The next address if it is another, the pause before it if one was drawn.
void VectorScript::CollectDialing(Json* step) {
  Dialing& dialing = session_.dialing();
  if (dialing.address() != dials_) (*step)["dials"] = dialing.address();
  dials_ = dialing.address();
  const bool drawn = dialing.at_ms() != moment_.dials_at_ms && dialing.at_ms() != INT64_MAX;
  moment_.dials_at_ms = dialing.at_ms();
  if (drawn && moment_.dials_at_ms > moment_.now_ms)
    (*step)["pause_ms"] = moment_.dials_at_ms - moment_.now_ms;
}

void VectorScript::Done(Json step) {
  ClientSession::Events events = session_.TakeEvents();
  for (const CallPtr& call : events.finished) call->Notify();
  Json lost = Json::array();
  for (const HeldPtr& held : events.lost) {
    lost.push_back(Json{{"permit", NameOf(held)}, {"reason", held->lost_reason}});
  }
  if (!lost.empty()) step["lost"] = std::move(lost);
  if (!answers_.empty()) step["answers"] = std::exchange(answers_, Json::array());
  if (moment_.connected) CollectSent(&step);
  CollectValidity(&step);
  CollectDialing(&step);
  if (closed_ && session_.settled()) {
    step["settled"] = true;
    closed_ = false;
  }
  steps_.push_back(std::move(step));
}

std::string VectorScript::Text() const {
  Json levels = Json::object();
  for (const auto& [flow, level] : options_.local_levels) levels[FlowWord(flow)] = level;
  Json client = Json::object();
  client["addresses"] = options_.addresses;
  client["namespace"] = options_.name_space;
  client["client_id"] = options_.client_id;
  client["instance"] = instance_;
  client["timeout_ms"] = options_.timeout.count();
  client["fallback"] = FallbackName(options_.fallback);
  client["local_levels"] = std::move(levels);
  client["exclusive"] = options_.exclusive;
  if (!options_.secret.empty()) client["secret"] = options_.secret;
  std::string text = "{\n  \"name\": " + Json(name_).dump() + ",\n  \"client\": " + client.dump() +
                     ",\n  \"request_ids\": " + request_ids_.dump() + ",\n  \"steps\": [\n";
  for (size_t i = 0; i < steps_.size(); ++i) {
    text += "    " + steps_[i].dump() + (i + 1 < steps_.size() ? ",\n" : "\n");
  }
  return text + "  ]\n}\n";
}

}  // namespace nowcalls::client
