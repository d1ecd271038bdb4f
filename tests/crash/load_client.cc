#include "crash/load_client.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <thread>
#include <utility>

#include "crash/lanes.h"

namespace nowcalls::crash {
namespace {

constexpr int64_t kOk = 0;
constexpr int64_t kReleaseOk = 6;
constexpr int64_t kAlreadyRelease = 7;

}  // namespace

bool LoadClient::Connect(const std::string& address) {
  rpc_ = testing::RpcClient(address);
  if (!rpc_.connected()) return false;
  name_ = options_.client_id.empty() ? "@" + rpc_.local_address() : options_.client_id;
  if (!options_.client_id.empty() &&
      !rpc_.Call("hello", {1, options_.name_space, options_.client_id, {{"lost", true}}}).ok()) {
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
    if (prng_.Below(10'000) < options_.reconnects_per_10k) {
      Disconnect();
      if (!Connect(address)) return;
      SettleRequests();
    }
    const size_t window = 1 + prng_.Below(24);
    while (in_flight_.size() - waiting_ < window) SendOne(signals->drain);
    while (in_flight_.size() - waiting_ > window / 2) {
      if (!ReceiveOne(*signals)) return;
    }
  }
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
    if (wanted.token_id == 0 && roll == 0) unwanted.push_back(request_id);
    if (roll > 0 && (wanted.token_id == 0 || roll < 4)) again.push_back(request_id);
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
    std::erase_if(wanted_, [token](const auto& entry) { return entry.second.token_id == token; });
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
    const Wanted wanted = wanted_[request_id];
    SendCancel(request_id);
    // What comes behind its cancel is refused.
    if (prng_.Below(4) != 0) return;
    Operation operation;
    operation.flow_id = wanted.flow_id;
    operation.count = wanted.count;
    operation.request_id = request_id;
    Send(operation);
  } else if (!drain && (held_.empty() || (!full && roll < 50))) {
    SendAcquire();
  } else if (!held_.empty() && roll < 88) {
    SendRelease(TakeHeld(/*remove=*/roll != 87));  // One that comes again, at times.
  } else if (!held_.empty() && roll < 99) {
    SendKeep(TakeHeld(/*remove=*/false));
  } else {
    SendRelease(1 + prng_.Below(INT64_MAX));  // One that never was.
  }
}

void LoadClient::Send(Operation operation) {
  operation.number = next_number_++;
  operation.client = name_;
  log_->Ask(operation);
  uint32_t msgid = 0;
  switch (operation.action) {
    case Action::kAcquire: {
      testing::Json options = testing::Json::object();
      if (operation.request_id != 0) options["request_id"] = operation.request_id;
      if (operation.wait_ms != 0) options["wait_ms"] = operation.wait_ms;
      if (operation.wanted_ms != 0) options["hold_ms"] = operation.wanted_ms;
      if (IsKeyLane(operation.flow_id)) options["param"] = KeyOfLane(operation.flow_id);
      msgid = rpc_.Send("acquire", {FlowOfLane(operation.flow_id), operation.count, options});
      break;
    }
    case Action::kCancel:
      msgid = rpc_.Send("cancel", testing::Json::array({operation.request_id}));
      break;
    case Action::kKeep:
      msgid = rpc_.Send("keep", testing::Json::array({operation.token_id}));
      break;
    default: msgid = rpc_.Send("release", testing::Json::array({operation.token_id})); break;
  }
  if (operation.wait_ms != 0) ++waiting_;
  in_flight_[msgid] = std::move(operation);
}

void LoadClient::SendAcquire() {
  constexpr size_t kWaitingMax = 8;
  Operation operation;
  operation.flow_id = options_.flow_ids[prng_.Below(options_.flow_ids.size())];
  operation.count = prng_.Between(1, 5);
  if (prng_.Below(4) == 0) operation.wanted_ms = prng_.Between(20, 4'000);
  if (!options_.request_ids) return Send(operation);
  if (prng_.Below(2) == 0) {
    operation.request_id = next_request_++;
    wanted_[operation.request_id] = {operation.flow_id, operation.count, 0};
  }
  if (waiting_ < kWaitingMax && prng_.Below(8) == 0) operation.wait_ms = prng_.Between(1, 150);
  Send(operation);
}

void LoadClient::SendAgain(uint64_t request_id) {
  const Wanted& wanted = wanted_[request_id];
  Operation operation;
  operation.flow_id = wanted.flow_id;
  operation.count = wanted.count;
  operation.request_id = request_id;
  if (prng_.Below(4) == 0) operation.wait_ms = prng_.Between(1, 150);
  Send(operation);
}

void LoadClient::SendCancel(uint64_t request_id) {
  const auto wanted = wanted_.find(request_id);
  if (wanted != wanted_.end()) {
    std::erase(held_, wanted->second.token_id);
    wanted_.erase(wanted);
  }
  cancels_.insert(request_id);
  Operation operation;
  operation.action = Action::kCancel;
  operation.request_id = request_id;
  Send(operation);
}

void LoadClient::SendRelease(uint64_t token_id) {
  Operation operation;
  operation.action = Action::kRelease;
  operation.token_id = token_id;
  Send(operation);
}

void LoadClient::SendKeep(uint64_t token_id) {
  Operation operation;
  operation.action = Action::kKeep;
  operation.token_id = token_id;
  Send(operation);
}

bool LoadClient::ReceiveOne(const LoadSignals& signals) {
  const testing::Reply reply = rpc_.Receive();
  for (const testing::Json& notice : rpc_.TakeNotifications()) OnLost(notice);
  const auto asked = in_flight_.find(reply.msgid);
  if (reply.ok() && asked != in_flight_.end()) {
    Operation operation = asked->second;
    in_flight_.erase(asked);
    if (operation.wait_ms != 0) --waiting_;
    OnAnswer(std::move(operation), reply);
    return true;
  }
  if (reply.kind != testing::Reply::Kind::kClosed || !signals.ending) {
    problem_ = "client " + name_ + " got: " + reply.ToString();
  }
  return false;
}

void LoadClient::OnAnswer(Operation operation, const testing::Reply& reply) {
  const auto status = reply.result.at(0).get<int64_t>();
  const bool acquire = operation.action == Action::kAcquire;
  operation.outcome = Outcome::kRefused;
  if (acquire && status == kOk) {
    OnGranted(reply, &operation);
  } else if (acquire) {
    // Only who still waits for it, or was told of its token, wants it any longer.
    const auto wanted = wanted_.find(operation.request_id);
    if (wanted != wanted_.end() && wanted->second.token_id == 0 && prng_.Below(16) != 0) {
      wanted_.erase(wanted);
    }
  } else if (status == kReleaseOk) {
    operation.outcome = Outcome::kReleased;
  } else if (operation.action == Action::kKeep && status == kOk) {
    operation.outcome = Outcome::kKept;
    operation.hold_ms = reply.result.at(1).get<int64_t>();
  } else if (status == kAlreadyRelease) {
    operation.outcome = Outcome::kGone;
    std::erase(held_, operation.token_id);
    std::erase_if(wanted_, [&](const auto& entry) {
      return operation.token_id != 0 && entry.second.token_id == operation.token_id;
    });
  }
  if (operation.action == Action::kCancel) cancels_.erase(operation.request_id);
  log_->Answer(operation);
}

void LoadClient::OnLost(const testing::Json& notice) {
  if (notice.at(1) != "lost") {
    problem_ = "client " + name_ + " got: " + notice.dump();
    return;
  }
  const auto token_id = notice.at(2).at(0).get<uint64_t>();
  log_->Lost(name_, token_id, notice.at(2).at(2).get<std::string>());
  std::erase(held_, token_id);
  std::erase_if(wanted_, [&](const auto& entry) { return entry.second.token_id == token_id; });
}

void LoadClient::OnGranted(const testing::Reply& reply, Operation* operation) {
  operation->outcome = Outcome::kGranted;
  operation->token_id = reply.result.at(1).get<uint64_t>();
  operation->fence = reply.result.at(2).get<uint64_t>();
  operation->now_calls = reply.result.at(3).get<int64_t>();
  operation->level = reply.result.at(4).get<int64_t>();
  operation->hold_ms = reply.result.at(5).get<int64_t>();
  if (operation->request_id != 0) {
    const auto wanted = wanted_.find(operation->request_id);
    // Cancelled meanwhile, or released: what this answer tells of is over, or soon will be.
    if (wanted == wanted_.end()) return;
    wanted->second.token_id = operation->token_id;
  }
  if (std::find(held_.begin(), held_.end(), operation->token_id) == held_.end()) {
    held_.push_back(operation->token_id);
  }
}

}  // namespace nowcalls::crash
