// The sweep: when a scan of the ledger's expired range is due, and what becomes of what it finds.
#include <algorithm>
#include <string>

#include "base/check.h"
#include "core/core.h"

namespace nowcalls::core {

std::optional<ledger::ScanRequest> Core::BeginScan(Instant now) {
  if (sweep_.in_flight) return std::nullopt;
  if (!sweep_.resume) {
    if (deadlines_.empty() || now < sweep_.next || now.ms < deadlines_.lowest_due_ms()) {
      return std::nullopt;
    }
    sweep_ = Sweep{};
    sweep_.lower_ms = deadlines_.lowest_ms();
    sweep_.upper_ms = now.ms;
    sweep_.next = now + options_.sweep_interval_ms;
  }
  sweep_.in_flight = true;
  return ledger::ScanRequest{.lower_ms = sweep_.lower_ms,
                             .upper_ms = sweep_.upper_ms,
                             .resume = sweep_.resume,
                             .after = sweep_.after,
                             .keys_max = options_.sweep_keys_max,
                             .budget_us = options_.sweep_budget_us};
}

Status Core::OnScanDone(const Turn& turn, const ledger::ScanResult& result) {
  NOWCALLS_CHECK(sweep_.in_flight);
  sweep_.in_flight = false;
  NOWCALLS_RETURN_IF_ERROR(result.status);
  for (const ledger::TokenKey& key : result.expired) {
    const TokenSlot slot = tokens_.Find(key.id, ids_.ToFence(key.id).value);
    // Released or kept since the scan began, or the record of that is still on its way.
    if (slot == kNoToken || KeyOf(tokens_.at(slot)) != key) continue;
    if (DecideExpired(turn, slot)) {
      ++sweep_.reclaimed;
    } else {
      ++sweep_.spared;
    }
  }
  GrantWaiters(turn);
  sweep_.resume = result.more && !result.expired.empty();
  if (sweep_.resume) {
    sweep_.after = result.expired.back();
  } else if (sweep_.reclaimed + sweep_.spared > 0) {
    std::string text = "sweep: reclaimed " + std::to_string(sweep_.reclaimed) +
                       (sweep_.reclaimed == 1 ? " expired token" : " expired tokens");
    if (sweep_.spared > 0) {
      text += ", spared " + std::to_string(sweep_.spared) + " of before the restart";
    }
    Note(false, std::move(text));
  }
  return {};
}

// Reclaims an expired token, or gives one of before the restart the time that its holder needs to
// come back. True if reclaimed.
bool Core::DecideExpired(const Turn& turn, TokenSlot slot) {
  const TokenEntry& entry = tokens_.at(slot);
  if (entry.fence < first_fence_) {
    const int64_t spared_ms = ready_.ms + std::min(HoldOf(entry), options_.restart_grace_ms);
    if (spared_ms > turn.now.ms) {
      MoveToken(turn, slot, spared_ms, spared_ms - turn.now.ms);
      return false;
    }
  }
  EndToken(turn, slot, EndReason::kResourceTimeout);
  return true;
}

}  // namespace nowcalls::core
