// The ends of tokens that are kept for operators, and their recovery.
#include <algorithm>
#include <string>
#include <utility>

#include "core/core.h"

namespace nowcalls::core {

Status Core::LoadHistory(ledger::HistoryBlock block) { return history_.Load(std::move(block)); }

// What the history tells of has happened, and is over.
Status Core::CheckHistory(uint64_t next_fence) const {
  for (const ledger::HistoryBlock& block : history_.blocks()) {
    for (const ledger::HistoryEntry& entry : block) {
      NOWCALLS_RETURN_IF_ERROR(CheckEnded(entry, next_fence));
    }
  }
  return {};
}

Status Core::CheckEnded(const ledger::HistoryEntry& entry, uint64_t next_fence) const {
  const auto corrupt = [&](const std::string& what) {
    return Status::Corruption("history: entry " + std::to_string(entry.sequence) + " of token " +
                              std::to_string(entry.token_id.value) + " " + what);
  };
  if (ids_.ToFence(entry.token_id) != entry.fence) {
    return corrupt("has an id that does not belong to fence " + std::to_string(entry.fence.value));
  }
  if (std::max(entry.fence.value, entry.session.value) >= next_fence) {
    return corrupt("has a fence or session number that is not below the sealed bound " +
                   std::to_string(next_fence));
  }
  if (tokens_.Find(entry.fence.value) != kNoToken) {
    return corrupt("tells of its end, but the token is live");
  }
  return {};
}

void Core::RecordEnd(const Turn& turn, const TokenEntry& entry, EndReason reason,
                     std::string_view note) {
  if (!ledger::IsKeptInHistory(reason) || options_.limits.history_max == 0) return;
  const SessionState& session = sessions_.at(entry.session);
  ledger::HistoryEntry end;
  end.ended_ms = turn.now.ms;
  end.reason = reason;
  end.token_id = IdOf(entry);
  end.flow = flows_.at(entry.flow).id;
  end.session = session.id;
  end.count = entry.count;
  end.fence = Fence{entry.fence};
  end.issued_ms = entry.issued_ms;
  end.name_space = flows_.name_space(session.name_space).name;
  end.client_id = session.client_id;
  end.note = note;
  history_.Add(std::move(end));
}

}  // namespace nowcalls::core
