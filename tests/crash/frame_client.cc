#include "crash/frame_client.h"

#include <algorithm>

#include "crash/rule_sets.h"

namespace nowcalls::crash {
namespace {

constexpr int kOk = 0;
constexpr int kBlocked = 1;
constexpr int kTooManyRequest = -2;
constexpr int kReleaseOk = 6;
constexpr int kAlreadyRelease = 7;

// Of a flow that ends soon without its client, and of one that lives long.
constexpr int64_t kFlows[] = {5, 2};

// How long a token of the flow is held at least; frames do not tell.
int64_t HoldMsOf(int64_t flow_id) {
  for (const FlowFacts& flow : RuleSets::Flows()) {
    if (flow.flow_id == flow_id) return 2 * flow.resource_timeout_ms;
  }
  return 0;
}

}  // namespace

bool FrameClient::Connect(const std::string& address) {
  frames_ = std::make_unique<testing::SentinelClient>(address);
  if (!frames_->Ping("default").came) return false;
  name_ = "@" + frames_->local_address();
  log_->Link(name_, true);
  return true;
}

void FrameClient::Run(const std::string& address, const std::string& log_path,
                      const LoadSignals* signals) {
  log_ = std::make_unique<HistoryWriter>(log_path);
  next_number_ = 1;
  problem_.clear();
  lost_ = false;
  if (!Connect(address)) return;
  while (!signals->stop) {
    if (prng_.Below(500) == 0) {
      log_->Link(name_, false);
      if (!Connect(address)) return;
    }
    if (DoOne(signals->drain)) continue;
    if (!lost_ || !signals->ending) {
      problem_ = "client " + name_ +
                 " of frames got: " + (problem_.empty() ? "connection closed" : problem_);
    }
    return;
  }
}

// False: what came is no answer that an honest client may see.
bool FrameClient::DoOne(bool drain) {
  constexpr size_t kHeldMax = 20;
  const uint64_t roll = prng_.Below(100);
  if (roll < 20) return CallASecond();
  if (!drain && (held_.empty() || (held_.size() < kHeldMax && roll < 60))) return Acquire();
  if (held_.empty()) return CallASecond();
  const uint64_t token = held_[prng_.Below(held_.size())];
  return Touch(roll < 92 ? Action::kRelease : Action::kKeep, token);
}

Operation FrameClient::Begin(Action action) {
  Operation operation;
  operation.number = next_number_++;
  operation.client = name_;
  operation.action = action;
  return operation;
}

bool FrameClient::Came(const testing::SentinelAnswer& answer) {
  lost_ = !answer.came;
  return answer.came;
}

bool FrameClient::Acquire() {
  Operation operation = Begin(Action::kAcquire);
  operation.flow_id = kFlows[prng_.Below(std::size(kFlows))];
  operation.count = prng_.Between(1, 5);
  log_->Ask(operation);
  const auto answer = frames_->Acquire(operation.flow_id, static_cast<int32_t>(operation.count));
  if (!Came(answer)) return false;
  if (answer.status == kOk) {
    operation.outcome = Outcome::kGranted;
    operation.token_id = static_cast<uint64_t>(answer.token());
    operation.hold_ms = HoldMsOf(operation.flow_id);
    held_.push_back(operation.token_id);
  } else if (answer.status == kBlocked) {
    operation.outcome = Outcome::kRefused;
  } else {
    problem_ = answer.ToString();
    return false;
  }
  log_->Answer(operation);
  return true;
}

// Releases or keeps a token, its own or that of a connection before.
bool FrameClient::Touch(Action action, uint64_t token_id) {
  Operation operation = Begin(action);
  operation.token_id = token_id;
  log_->Ask(operation);
  const bool release = action == Action::kRelease;
  if (release) std::erase(held_, token_id);
  const auto id = static_cast<int64_t>(token_id);
  const auto answer = release ? frames_->Release(id) : frames_->Keep(id);
  if (!Came(answer)) return false;
  if (release && answer.status == kReleaseOk) {
    operation.outcome = Outcome::kReleased;
  } else if (!release && answer.status == kOk) {
    operation.outcome = Outcome::kKept;  // For how long frames do not tell: at least until now.
  } else if (answer.status == kAlreadyRelease) {
    operation.outcome = Outcome::kGone;
    std::erase(held_, token_id);
  } else {
    problem_ = answer.ToString();
    return false;
  }
  log_->Answer(operation);
  return true;
}

// Not in the log: nobody holds anything. What the ledger has of it is verified after each kill.
bool FrameClient::CallASecond() {
  const auto answer = frames_->Flow(RuleSets::kWindowFlow, 1, prng_.Below(4) == 0);
  if (!Came(answer)) return false;
  constexpr int kShouldWait = 2;
  const int status = answer.status;
  if (status == kOk || status == kBlocked || status == kShouldWait || status == kTooManyRequest) {
    return true;
  }
  problem_ = answer.ToString();
  return false;
}

}  // namespace nowcalls::crash
