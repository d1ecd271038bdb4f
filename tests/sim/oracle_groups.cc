// Which tokens one request may have: that of an acquire, or all of an acquire_all.
#include <algorithm>

#include "sim/lanes.h"
#include "sim/oracle.h"

namespace nowcalls::sim {
namespace {

std::string GroupText(const SeenToken& seen) {
  return seen.owner + ", flow " + std::to_string(seen.flow) + ", fence " +
         std::to_string(seen.fence) + ", request id " + std::to_string(seen.request_id);
}

}  // namespace

std::vector<OpId> Oracle::AcquireAllAsked(const std::string& owner, const std::vector<Item>& items,
                                          uint64_t request_id, const AcquireTerms& terms) {
  std::vector<OpId> ops;
  for (const Item& item : items) {
    ops.push_back(AcquireAsked(owner, item.flow, item.count, request_id, terms));
    Operation& op = operations_.at(ops.back());
    op.group = ops.front();
    op.group_size = items.size();
  }
  if (request_id != 0 && !in_vain_) groups_[{owner, request_id}].push_back(ops.front());
  return ops;
}

// Tokens of one request have different flows and fences that follow each other.
bool Oracle::MayBeOfOneGroup(const SeenToken& one, const SeenToken& other) const {
  const auto groups = groups_.find({one.owner, one.request_id});
  if (groups == groups_.end() || one.flow == other.flow) return false;
  return std::any_of(groups->second.begin(), groups->second.end(), [&](OpId first) {
    const size_t size = operations_.at(first).group_size;
    const auto asks_for = [&](const SeenToken& seen) {
      for (OpId id = first; id < first + size; ++id) {
        const Operation& item = operations_.at(id);
        if (item.flow == seen.flow && item.count == seen.count) return true;
      }
      return false;
    };
    const uint64_t apart = std::max(one.fence, other.fence) - std::min(one.fence, other.fence);
    return apart < size && asks_for(one) && asks_for(other);
  });
}

// A token of an acquire_all that no answer told of is in the ledger: so all others are, or were,
// unless something may have ended them since.
void Oracle::CheckWhole(const SeenToken& seen, const std::vector<SeenToken>& ledger) {
  const auto groups = groups_.find({seen.owner, seen.request_id});
  if (seen.request_id == 0 || groups == groups_.end() || groups->second.size() > 1) return;
  const OpId first = groups->second.front();
  for (OpId id = first; id < first + operations_.at(first).group_size; ++id) {
    const Operation& item = operations_.at(id);
    const auto is_it = [&](const SeenToken& other) {
      return other.owner == seen.owner && other.request_id == seen.request_id &&
             other.flow == item.flow;
    };
    const bool there = std::any_of(ledger.begin(), ledger.end(), is_it);
    const bool was = std::any_of(tokens_.begin(), tokens_.end(),
                                 [&](const auto& token) { return is_it(token.second.seen); });
    if (there || was || MayHaveEnded(item)) continue;
    Violation("I3 a part of an acquire_all: without flow " + std::to_string(item.flow) +
              " the ledger has " + GroupText(seen));
  }
}

// A token of the acquire that no answer told of: by its time, by its session's absence, or by an
// administrator.
bool Oracle::MayHaveEnded(const Operation& item) {
  const int64_t now_ms = timeline_->now_ms();
  if (now_ms >= item.asked_ms + HoldOf(item.flow, item.terms.hold_ms)) return true;
  if (now_ms >= OfflineDueMs(item.owner, item.flow)) return true;
  if (WasAbsent(item.owner, item.flow, item.asked_ms)) return true;
  return std::any_of(operations_.begin(), operations_.end(), [&](const auto& entry) {
    const Operation& op = entry.second;
    const bool by_admin =
        op.kind == Kind::kReclaimAll || (op.kind == Kind::kRelease && op.owner.empty());
    return by_admin && op.answered > item.asked;
  });
}

void Oracle::CheckRequestId(const Token& token) {
  if (token.seen.request_id == 0) return;
  for (const uint64_t id : present_) {
    const Token& other = tokens_[id];
    const bool same =
        other.seen.owner == token.seen.owner && other.seen.request_id == token.seen.request_id;
    if (same && other.seen.fence < token.seen.fence && IsLive(other) &&
        !MayBeOfOneGroup(other.seen, token.seen)) {
      Violation("I3 " + GroupText(token.seen) + " is the second for its request id, beside " +
                GroupText(other.seen));
    }
  }
}

}  // namespace nowcalls::sim
