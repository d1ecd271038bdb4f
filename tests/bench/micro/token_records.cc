#include "bench/micro/token_records.h"

#include <array>

namespace nowcalls::microbench {
namespace {

constexpr std::array<uint64_t, 2> kKey = {0x0123456789abcdef, 0xfedcba9876543210};
constexpr int64_t kHoldMs = 120'000;
constexpr uint64_t kOperationsPerMs = 1000;

}  // namespace

TokenRecords::TokenRecords(size_t live_tokens) : ids_(kKey), live_(live_tokens) {}

void TokenRecords::IssueAll(ledger::CommitBatch* batch) {
  for (ledger::TokenKey& key : live_) {
    const ledger::Token token = NextToken();
    batch->TokenIssued(token);
    key = token.key;
  }
}

void TokenRecords::AppendOne(ledger::CommitBatch* batch) {
  ledger::TokenKey& key = live_[oldest_];
  if (issue_next_) {
    const ledger::Token token = NextToken();
    batch->TokenIssued(token);
    key = token.key;
    oldest_ = oldest_ + 1 == live_.size() ? 0 : oldest_ + 1;
  } else {
    batch->TokenEnded(key, EndReason::kReleased);
  }
  issue_next_ = !issue_next_;
}

void TokenRecords::Seal(ledger::CommitBatch* batch) {
  batch->Sealed({.batch_number = ++batch_number_,
                 .next_fence = fence_ + 1,
                 .ledger_ms = now_ms_,
                 .live_tokens = live_.size(),
                 .live_count_sum = live_.size()});
}

ledger::Token TokenRecords::NextToken() {
  ++fence_;
  if (fence_ % kOperationsPerMs == 0) ++now_ms_;
  return {.key = {ledger::FamilyForHold(kHoldMs), now_ms_ + kHoldMs, ids_.FromFence(Fence{fence_})},
          .flow = FlowId{static_cast<int64_t>(1 + fence_ % 1000)},
          .session = SessionId{1 + fence_ % 64},
          .count = 1,
          .issued_ms = now_ms_,
          .fence = Fence{fence_}};
}

}  // namespace nowcalls::microbench
