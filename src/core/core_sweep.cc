// The sweep: when a scan of the ledger's expired range is due, and what becomes of what it finds.
#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "base/check.h"
#include "core/core.h"

namespace nowcalls::core {

// The next step is begun before all that the last one found has been looked at, so that batches
// need not wait for scans.
bool Core::MayScan() const {
  if (sweep_.in_flight) return false;
  return sweep_.resume ? found_left() < 2 * size_t{options_.sweep_keys_max} : found_left() == 0;
}

std::optional<ledger::ScanRequest> Core::BeginScan(Instant now) {
  if (!MayScan()) return std::nullopt;
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
  const Waking waking(this, turn);
  NOWCALLS_CHECK(sweep_.in_flight);
  sweep_.in_flight = false;
  NOWCALLS_RETURN_IF_ERROR(result.status);
  sweep_.resume = result.more && !result.expired.empty();
  if (sweep_.resume) sweep_.after = result.expired.back();
  sweep_.found.erase(sweep_.found.begin(),
                     sweep_.found.begin() + static_cast<ptrdiff_t>(sweep_.found_next));
  sweep_.found_next = 0;
  sweep_.found.insert(sweep_.found.end(), result.expired.begin(), result.expired.end());
  StepFound(turn, kDuePerStep);
  return {};
}

// Looks at what scans have found, as long as the batch has room for it.
void Core::StepFound(const Turn& turn, uint32_t tokens_max) {
  constexpr size_t kAhead = 16;
  std::array<uint64_t, kAhead> fences{};
  size_t fences_left = 0;
  for (; tokens_max > 0 && found_left() > 0 && turn.has_room_for_due(); --tokens_max) {
    if (fences_left == 0) {
      fences_left = std::min(kAhead, found_left());
      for (size_t i = 0; i < fences_left; ++i) {
        const ledger::TokenKey& ahead = sweep_.found[sweep_.found_next + i];
        fences[fences_left - 1 - i] = ids_.ToFence(ahead.id).value;
        tokens_.Prefetch(fences[fences_left - 1 - i]);
      }
      for (size_t i = fences_left; i > 0; --i) tokens_.PrefetchEntry(fences[i - 1]);
    }
    const ledger::TokenKey& key = sweep_.found[sweep_.found_next++];
    const TokenSlot slot = tokens_.Find(fences[--fences_left]);
    // Released or kept since the scan began, or the record of that is still on its way.
    if (slot == kNoToken || tokens_.at(slot).deadline_ms != key.deadline_ms ||
        tokens_.at(slot).ledger_family() != key.family) {
      continue;
    }
    EndOrSpare(turn, slot);
  }
  if (found_left() == 0 && !sweep_.in_flight && !sweep_.resume) NoteSweep();
}

void Core::NoteSweep() {
  const uint64_t reclaimed = std::exchange(sweep_.reclaimed, 0);
  const uint64_t spared = std::exchange(sweep_.spared, 0);
  if (reclaimed + spared == 0) return;
  std::string text = "sweep: reclaimed " + std::to_string(reclaimed) +
                     (reclaimed == 1 ? " expired token" : " expired tokens");
  if (spared > 0) text += ", spared " + std::to_string(spared);
  Note(false, std::move(text));
}

void Core::EndOrSpare(const Turn& turn, TokenSlot slot) {
  const ExpireDecision decision = Decide(turn, slot, ExpireCause::kResourceTimeout);
  if (decision.kind() == ExpireDecision::Kind::kReclaim) {
    ++sweep_.reclaimed;
    turn.batch->CountDue();
    return EndToken(turn, slot, EndReason::kResourceTimeout);
  }
  ++sweep_.spared;
  if (decision.kind() == ExpireDecision::Kind::kExtend) {
    turn.batch->CountDue();
    MoveToken(turn, slot, decision.until_ms(), decision.until_ms() - turn.now.ms);
  }
}

// What the strategy says of a token whose time is over. An extension is into the future, and not
// further than its header promises.
ExpireDecision Core::Decide(const Turn& turn, TokenSlot slot, ExpireCause cause) {
  const TokenEntry& entry = tokens_.at(slot);
  const Flow& flow = flows_.at(entry.flow);
  const SessionState& session = sessions_.at(entry.session);
  if (!session.online()) JudgeMass(turn, entry.session, flow.client_offline_time_ms);
  const ExpiredToken token{.cause = cause,
                           .id = IdOf(entry),
                           .flow = flow.id,
                           .count = entry.count,
                           .issued_ms = entry.issued_ms,
                           .deadline_ms = entry.deadline_ms,
                           .hold_ms = flow.hold_ms,
                           .client_offline_time_ms = flow.client_offline_time_ms,
                           .restarted_ms = entry.fence < first_fence_ ? ready_.ms : 0};
  const TokenHolder holder{.online = session.online(),
                           .offline_since_ms = session.offline_since_ms,
                           .from_before_restart = session.from_before_restart,
                           .mass_offline = session.mass.mass};
  const ExpireDecision decision = expire_strategy_->Decide(token, holder, turn.now.ms);
  if (decision.kind() != ExpireDecision::Kind::kExtend) return decision;
  if (decision.until_ms() <= turn.now.ms) return ExpireDecision::Leave();
  return ExpireDecision::ExtendUntil(std::min(decision.until_ms(), turn.now.ms + kExtendMsMax));
}

}  // namespace nowcalls::core
