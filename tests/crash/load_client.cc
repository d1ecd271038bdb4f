#include "crash/load_client.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "crash/lanes.h"

namespace nowcalls::crash {
namespace {

using testing::Json;

constexpr int64_t kRpcOk = 0;
constexpr int64_t kRpcReleaseOk = 6;
constexpr int64_t kRpcAlreadyRelease = 7;

}  // namespace

bool LoadClient::Connect(const std::string& address) {
  rpc_ = testing::RpcClient(address);
  if (!rpc_.connected()) return false;
  name_ = options_.client_id.empty() ? "@" + rpc_.local_address() : owner();
  Json hello = {{"lost", true}};
  if (options_.instance != 0) hello["instance"] = options_.instance;
  if (!options_.client_id.empty() &&
      !rpc_.Call("hello", {1, options_.name_space, options_.client_id, hello}).ok()) {
    return false;
  }
  log_->Link(name_, true);
  return true;
}

// What is in flight stays without an answer in the log. Sometimes it stays away for a while.
void LoadClient::Disconnect() {
  log_->Link(name_, false);
  rpc_.Close();
  if (options_.client_id.empty()) {  // They belong to the session that just ended.
    held_.clear();
    wanted_.clear();
    cancels_.clear();
  }
  if (prng_.ChancePerMillion(300'000)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(prng_.Between(1, 250)));
  }
}

void LoadClient::Run(const std::string& address, const std::string& log_path,
                     const LoadSignals* signals) {
  log_ = std::make_unique<HistoryWriter>(log_path);
  next_number_ = 1;
  problem_.clear();
  if (options_.client_id.empty()) wanted_.clear();
  if (!Connect(address)) return;
  SettleRequests();
  while (!signals->stop) {
    if (prng_.Below(10'000) < options_.reconnects_per_10k && !ComeAgain(address)) return;
    const size_t window = 1 + prng_.Below(24);
    while (in_flight_.size() - waiting_ < window) SendOne(signals->drain);
    while (in_flight_.size() - waiting_ > window / 2) {
      if (ReceiveOne(*signals)) continue;
      if (!std::exchange(gave_up_, false) || !ComeAgain(address)) return;
    }
  }
}

bool LoadClient::ComeAgain(const std::string& address) {
  Disconnect();
  if (!Connect(address)) return false;
  SettleRequests();
  return true;
}

// Behind a lost connection: what is no longer wanted is cancelled, the rest asked for again, of
// what it knows to hold a part.
void LoadClient::SettleRequests() {
  in_flight_.clear();
  waiting_ = 0;
  for (const uint64_t request_id : std::exchange(cancels_, {})) {
    if (prng_.Below(2) == 0) SendCancel(request_id);
  }
  std::vector<uint64_t> again;
  std::vector<uint64_t> unwanted;
  for (const auto& [request_id, wanted] : wanted_) {
    const uint64_t roll = prng_.Below(10);
    if (wanted.tokens.empty() && roll == 0) unwanted.push_back(request_id);
    if (roll > 0 && (wanted.tokens.empty() || roll < 4)) again.push_back(request_id);
  }
  for (const uint64_t request_id : unwanted) SendCancel(request_id);
  for (const uint64_t request_id : again) SendAgain(request_id);
}

uint64_t LoadClient::TakeHeld(bool remove) {
  const size_t at = prng_.Below(held_.size());
  const uint64_t token = held_[at];
  if (remove) {
    held_[at] = held_.back();
    held_.pop_back();
    Forget(token);
  }
  return token;
}

uint64_t LoadClient::AnyWanted() {
  auto at = wanted_.begin();
  std::advance(at, prng_.Below(wanted_.size()));
  return at->first;
}

void LoadClient::SendOne(bool drain) {
  const uint64_t roll = prng_.Below(100);
  const bool full = held_.size() >= options_.held_max;
  if (!drain && !wanted_.empty() && prng_.Below(50) == 0) {
    SendAgain(AnyWanted());
  } else if (!wanted_.empty() && prng_.Below(50) == 0) {
    const uint64_t request_id = AnyWanted();
    Call again = wanted_[request_id].items;
    SendCancel(request_id);
    // What comes behind its cancel is refused.
    if (prng_.Below(4) != 0) return;
    again.front().request_id = request_id;
    Send(std::move(again));
  } else if (!drain && (held_.empty() || (!full && roll < 50))) {
    SendAcquire();
  } else if (!held_.empty() && roll < 88) {
    // One that comes again, at times.
    SendToken(Action::kRelease, TakeHeld(/*remove=*/roll != 87));
  } else if (!held_.empty() && roll < 99) {
    SendToken(Action::kKeep, TakeHeld(/*remove=*/false));
  } else {
    SendToken(Action::kRelease, 1 + prng_.Below(INT64_MAX));  // One that never was.
  }
}

// Its first item tells what is asked for all of them.
void LoadClient::Send(Call call) {
  Operation& first = call.front();
  first.number = next_number_++;
  first.client = name_;
  log_->Ask(call);
  uint32_t msgid = 0;
  switch (first.action) {
    case Action::kAcquire: msgid = SendItems(call); break;
    case Action::kCancel: msgid = rpc_.Send("cancel", Json::array({first.request_id})); break;
    case Action::kKeep: msgid = rpc_.Send("keep", Json::array({first.token_id})); break;
    default: msgid = rpc_.Send("release", Json::array({first.token_id})); break;
  }
  if (first.wait_ms != 0) ++waiting_;
  in_flight_[msgid] = std::move(call);
}

uint32_t LoadClient::SendItems(const Call& call) {
  const Operation& first = call.front();
  Json options = Json::object();
  if (first.request_id != 0) options["request_id"] = first.request_id;
  if (first.wait_ms != 0) options["wait_ms"] = first.wait_ms;
  if (first.wanted_ms != 0) options["hold_ms"] = first.wanted_ms;
  if (call.size() == 1) {
    if (IsKeyLane(first.flow_id)) options["param"] = KeyOfLane(first.flow_id);
    return rpc_.Send("acquire", {FlowOfLane(first.flow_id), first.count, options});
  }
  Json items = Json::array();
  for (const Operation& one : call) {
    Json item = Json::array({FlowOfLane(one.flow_id), one.count});
    if (IsKeyLane(one.flow_id)) item.push_back(KeyOfLane(one.flow_id));
    items.push_back(item);
  }
  return rpc_.Send("acquire_all", Json::array({items, options}));
}

// One item, or a group of some of its flows.
LoadClient::Call LoadClient::DrawItems() {
  constexpr size_t kItemsMax = 4;
  std::vector<int64_t> flow_ids = options_.flow_ids;
  const size_t most = std::min(kItemsMax, flow_ids.size());
  const bool group = most > 1 && prng_.Below(5) == 0;
  Call items(group ? static_cast<size_t>(prng_.Between(2, static_cast<int64_t>(most))) : 1);
  for (Operation& item : items) {
    const auto at = flow_ids.begin() + static_cast<ptrdiff_t>(prng_.Below(flow_ids.size()));
    item.flow_id = *at;
    item.count = prng_.Between(1, 5);
    flow_ids.erase(at);
  }
  return items;
}

void LoadClient::SendAcquire() {
  constexpr size_t kWaitingMax = 8;
  Call call = DrawItems();
  Operation& first = call.front();
  if (options_.request_ids && prng_.Below(2) == 0) {
    wanted_[next_request_].items = call;
    first.request_id = next_request_++;
  }
  if (options_.short_holds && prng_.Below(4) == 0) first.wanted_ms = prng_.Between(20, 4'000);
  const bool may_wait = options_.request_ids && waiting_ < kWaitingMax;
  if (may_wait && prng_.Below(8) == 0) first.wait_ms = prng_.Between(1, 150);
  Send(std::move(call));
}

// The items of a group may come in any order.
void LoadClient::SendAgain(uint64_t request_id) {
  Call call = wanted_[request_id].items;
  std::swap(call.front(), call[prng_.Below(call.size())]);
  call.front().request_id = request_id;
  if (prng_.Below(4) == 0) call.front().wait_ms = prng_.Between(1, 150);
  Send(std::move(call));
}

void LoadClient::SendCancel(uint64_t request_id) {
  const auto wanted = wanted_.find(request_id);
  if (wanted != wanted_.end()) {
    for (const uint64_t token_id : wanted->second.tokens) std::erase(held_, token_id);
    wanted_.erase(wanted);
  }
  cancels_.insert(request_id);
  Operation operation;
  operation.action = Action::kCancel;
  operation.request_id = request_id;
  Send({operation});
}

void LoadClient::SendToken(Action action, uint64_t token_id) {
  Operation operation;
  operation.action = action;
  operation.token_id = token_id;
  Send({operation});
}

// Its patience may change meanwhile.
testing::Reply LoadClient::Await(const LoadSignals& signals) {
  constexpr int64_t kLookMs = 100;
  const int64_t from_ms = BoottimeMs();
  for (;;) {
    testing::Reply reply = rpc_.Receive(kLookMs);
    const bool waits = BoottimeMs() - from_ms < signals.patience_ms;
    if (reply.kind != testing::Reply::Kind::kTimeout || !waits) return reply;
  }
}

bool LoadClient::ReceiveOne(const LoadSignals& signals) {
  const testing::Reply reply = Await(signals);
  for (const Json& notice : rpc_.TakeNotifications()) OnLost(notice);
  const auto asked = in_flight_.find(reply.msgid);
  if (reply.ok() && asked != in_flight_.end()) {
    Call call = std::move(asked->second);
    in_flight_.erase(asked);
    if (call.front().wait_ms != 0) --waiting_;
    OnAnswer(std::move(call), reply);
    return problem_.empty();
  }
  gave_up_ = reply.kind == testing::Reply::Kind::kTimeout && signals.ending;
  if (gave_up_) return false;
  if (reply.kind != testing::Reply::Kind::kClosed || !signals.ending) {
    problem_ = "client " + name_ + " got: " + reply.ToString();
  }
  return false;
}

void LoadClient::OnAnswer(Call call, const testing::Reply& reply) {
  const auto status = reply.result.at(0).get<int64_t>();
  Operation& first = call.front();
  const bool acquire = first.action == Action::kAcquire;
  first.outcome = Outcome::kRefused;
  if (acquire && status == kRpcOk) {
    OnGranted(reply, &call);
  } else if (acquire) {
    // Only who still waits for it, or was told of its tokens, wants it any longer.
    const auto wanted = wanted_.find(first.request_id);
    if (wanted != wanted_.end() && wanted->second.tokens.size() < call.size() &&
        prng_.Below(16) != 0) {
      wanted_.erase(wanted);
    }
  } else if (status == kRpcReleaseOk) {
    first.outcome = Outcome::kReleased;
  } else if (first.action == Action::kKeep && status == kRpcOk) {
    first.outcome = Outcome::kKept;
    first.hold_ms = reply.result.at(1).get<int64_t>();
  } else if (status == kRpcAlreadyRelease) {
    first.outcome = Outcome::kGone;
    std::erase(held_, first.token_id);
    Forget(first.token_id);
  }
  if (first.action == Action::kCancel) cancels_.erase(first.request_id);
  if (problem_.empty()) log_->Answer(call);
}

void LoadClient::OnLost(const Json& notice) {
  if (notice.at(1) != "lost") {
    problem_ = "client " + name_ + " got: " + notice.dump();
    return;
  }
  const auto token_id = notice.at(2).at(0).get<uint64_t>();
  log_->Lost(name_, token_id, notice.at(2).at(2).get<std::string>());
  std::erase(held_, token_id);
  Forget(token_id);
}

// What is left of a group stays wanted.
void LoadClient::Forget(uint64_t token_id) {
  for (auto at = wanted_.begin(); at != wanted_.end();) {
    std::set<uint64_t>& tokens = at->second.tokens;
    const bool was_last = tokens.erase(token_id) != 0 && tokens.empty();
    at = was_last ? wanted_.erase(at) : std::next(at);
  }
}

void LoadClient::OnGranted(const testing::Reply& reply, Call* call) {
  Operation& first = call->front();
  const Json& result = reply.result;
  first.outcome = Outcome::kGranted;
  Json tokens = Json::array({{result.at(1), result.at(2), result.at(5)}});
  if (call->size() > 1) {
    tokens = result.at(1);
  } else {
    first.now_calls = result.at(3).get<int64_t>();
    first.level = result.at(4).get<int64_t>();
  }
  if (tokens.size() != call->size()) {
    problem_ = "client " + name_ + " got for " + std::to_string(call->size()) +
               " items: " + reply.ToString();
    return;
  }
  const auto wanted = wanted_.find(first.request_id);
  // Cancelled meanwhile, or released: what this answer tells of is over, or soon will be.
  const bool is_over = first.request_id != 0 && wanted == wanted_.end();
  if (wanted != wanted_.end()) wanted->second.tokens.clear();
  for (size_t i = 0; i < tokens.size(); ++i) {
    Operation& item = call->at(i);
    item.token_id = tokens.at(i).at(0).get<uint64_t>();
    item.fence = tokens.at(i).at(1).get<uint64_t>();
    item.hold_ms = tokens.at(i).at(2).get<int64_t>();
    if (is_over) continue;
    if (wanted != wanted_.end()) wanted->second.tokens.insert(item.token_id);
    if (std::find(held_.begin(), held_.end(), item.token_id) == held_.end()) {
      held_.push_back(item.token_id);
    }
  }
}

}  // namespace nowcalls::crash
