#include "crash/load_client.h"

#include <chrono>
#include <thread>
#include <utility>

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
      !rpc_.Call("hello", {1, options_.name_space, options_.client_id}).ok()) {
    return false;
  }
  log_->Link(name_, true);
  return true;
}

// What is in flight stays without an answer in the log. Sometimes it stays away for a while.
void LoadClient::Disconnect() {
  log_->Link(name_, false);
  rpc_.Close();
  in_flight_.clear();
  if (options_.client_id.empty()) held_.clear();  // They belong to the session that just ended.
  if (prng_.ChancePerMillion(300'000)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(prng_.Between(1, 250)));
  }
}

void LoadClient::Run(const std::string& address, const std::string& log_path,
                     const LoadSignals* signals) {
  log_ = std::make_unique<HistoryWriter>(log_path);
  next_number_ = 1;
  in_flight_.clear();
  problem_.clear();
  if (!Connect(address)) return;
  while (!signals->stop) {
    if (prng_.Below(10'000) < options_.reconnects_per_10k) {
      Disconnect();
      if (!Connect(address)) return;
    }
    const size_t window = 1 + prng_.Below(24);
    while (in_flight_.size() < window) SendOne(signals->drain);
    while (in_flight_.size() > window / 2) {
      if (!ReceiveOne(*signals)) return;
    }
  }
}

uint64_t LoadClient::TakeHeld(bool remove) {
  const size_t at = prng_.Below(held_.size());
  const uint64_t token = held_[at];
  if (remove) {
    held_[at] = held_.back();
    held_.pop_back();
  }
  return token;
}

void LoadClient::SendOne(bool drain) {
  Operation operation;
  operation.number = next_number_++;
  const uint64_t roll = prng_.Below(100);
  const bool full = held_.size() >= options_.held_max;
  if (!drain && (held_.empty() || (!full && roll < 50))) {
    SendAcquire(&operation);
  } else if (!held_.empty() && roll < 88) {
    SendRelease(&operation, TakeHeld(/*remove=*/roll != 87));  // One that comes again, at times.
  } else if (!held_.empty() && roll < 99) {
    SendKeep(&operation, TakeHeld(/*remove=*/false));
  } else {
    SendRelease(&operation, 1 + prng_.Below(INT64_MAX));  // One that never was.
  }
}

void LoadClient::SendAcquire(Operation* operation) {
  operation->action = Action::kAcquire;
  operation->flow_id = options_.flow_ids[prng_.Below(options_.flow_ids.size())];
  operation->count = prng_.Between(1, 5);
  log_->AskAcquire(operation->number, name_, operation->flow_id, operation->count);
  in_flight_[rpc_.Send("acquire", {operation->flow_id, operation->count})] = *operation;
}

void LoadClient::SendRelease(Operation* operation, uint64_t token_id) {
  operation->action = Action::kRelease;
  operation->token_id = token_id;
  log_->AskRelease(operation->number, name_, token_id);
  in_flight_[rpc_.Send("release", testing::Json::array({token_id}))] = *operation;
}

void LoadClient::SendKeep(Operation* operation, uint64_t token_id) {
  operation->action = Action::kKeep;
  operation->token_id = token_id;
  log_->AskKeep(operation->number, name_, token_id);
  in_flight_[rpc_.Send("keep", testing::Json::array({token_id}))] = *operation;
}

bool LoadClient::ReceiveOne(const LoadSignals& signals) {
  const testing::Reply reply = rpc_.Receive();
  const auto asked = in_flight_.find(reply.msgid);
  if (reply.ok() && asked != in_flight_.end()) {
    const Operation operation = asked->second;
    in_flight_.erase(asked);
    OnAnswer(operation, reply);
    return true;
  }
  if (reply.kind != testing::Reply::Kind::kClosed || !signals.ending) {
    problem_ = "client " + name_ + " got: " + reply.ToString();
  }
  return false;
}

void LoadClient::OnAnswer(const Operation& asked, const testing::Reply& reply) {
  const auto status = reply.result.at(0).get<int64_t>();
  if (asked.action == Action::kAcquire && status == kOk) {
    Operation granted = asked;
    granted.token_id = reply.result.at(1).get<uint64_t>();
    granted.fence = reply.result.at(2).get<uint64_t>();
    granted.now_calls = reply.result.at(3).get<int64_t>();
    granted.level = reply.result.at(4).get<int64_t>();
    granted.hold_ms = reply.result.at(5).get<int64_t>();
    log_->AnswerGranted(granted);
    held_.push_back(granted.token_id);
  } else if (asked.action == Action::kRelease && status == kReleaseOk) {
    log_->Answer(asked.number, Outcome::kReleased);
  } else if (asked.action == Action::kKeep && status == kOk) {
    log_->Answer(asked.number, Outcome::kKept, reply.result.at(1).get<int64_t>());
  } else if (asked.action != Action::kAcquire && status == kAlreadyRelease) {
    log_->Answer(asked.number, Outcome::kGone);
    std::erase(held_, asked.token_id);
  } else {
    log_->Answer(asked.number, Outcome::kRefused);
  }
}

}  // namespace nowcalls::crash
