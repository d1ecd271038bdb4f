#include "crash/checker_times.h"

#include <algorithm>

namespace nowcalls::crash {

int64_t DueUs(int64_t from_us, int64_t duration_ms) {
  constexpr int64_t kUsPerMs = 1'000;
  return (from_us / kUsPerMs + duration_ms) * kUsPerMs;
}

int64_t RuleHoldMs(const FlowFacts& flow) {
  constexpr int64_t kResourceTimeoutFactor = 2;  // The server's default.
  const int64_t hold_ms = kResourceTimeoutFactor * flow.resource_timeout_ms;
  return flow.max_hold_ms > 0 ? std::min(hold_ms, flow.max_hold_ms) : hold_ms;
}

Gaps OfflineGaps(const Cycle& cycle) {
  auto links = cycle.history.links;
  std::stable_sort(links.begin(), links.end(),
                   [](const LinkEvent& a, const LinkEvent& b) { return a.at_us < b.at_us; });
  Gaps gaps;
  std::map<std::string, Gap> open;
  for (const auto& link : links) {
    const auto [gap, is_first] = open.try_emplace(link.client, Gap{cycle.started_us, 0, true});
    if (link.up) {
      gap->second.to_us = link.at_us;
      gaps[link.client].push_back(gap->second);
    } else if (!is_first) {
      gap->second = {link.at_us, cycle.dead_us, false};
    }
  }
  // Clients that are not up at the end have an open gap; one that is up gets a gap of no length.
  for (auto& [client, gap] : open) {
    if (!gap.since_restart && gap.to_us == cycle.dead_us) gaps[client].push_back(gap);
  }
  return gaps;
}

int64_t OfflineUs(const std::vector<Gap>& gaps, const FlowFacts& flow, int64_t restart_grace_ms,
                  int64_t after_us) {
  int64_t offline_us = kNeverUs;
  for (const Gap& gap : gaps) {
    if (gap.from_us < after_us) continue;
    int64_t spared_ms = flow.client_offline_ms;
    if (gap.since_restart) spared_ms = std::max(spared_ms, restart_grace_ms);
    const int64_t may_end_us = DueUs(gap.from_us, spared_ms);
    if (may_end_us <= gap.to_us) offline_us = std::min(offline_us, may_end_us);
  }
  return offline_us;
}

}  // namespace nowcalls::crash
