#include "core/rates/top_values.h"

#include <algorithm>
#include <cstddef>
#include <tuple>
#include <utility>

namespace nowcalls::core {
namespace {

// Keeps the first `limit` of uses that come in any order, in memory for 2 x `limit`.
class FirstUses {
 public:
  // REQUIRES: `limit` is at least 1.
  FirstUses(size_t limit, TopBy by) : limit_(limit), by_(by) { uses_.reserve(2 * limit); }

  void Add(const ValueUse& use) {
    const auto before = [this](const ValueUse& a, const ValueUse& b) { return RanksBefore(a, b); };
    if (cut_ && RanksBefore(uses_[limit_ - 1], use)) return;
    uses_.push_back(use);
    if (uses_.size() < 2 * limit_) return;
    // Drops the half that ranks behind. The last of those kept lies at limit_ - 1, and cuts off
    // later ones.
    const auto last = uses_.begin() + static_cast<ptrdiff_t>(limit_ - 1);
    std::nth_element(uses_.begin(), last, uses_.end(), before);
    uses_.resize(limit_);
    cut_ = true;
  }

  std::vector<ValueUse> Take() {
    std::sort(uses_.begin(), uses_.end(),
              [this](const ValueUse& a, const ValueUse& b) { return RanksBefore(a, b); });
    if (uses_.size() > limit_) uses_.resize(limit_);
    return std::move(uses_);
  }

 private:
  const RecentCalls::Counts& CountsOf(const ValueUse& use) const {
    return by_ == TopBy::kMinute ? use.minute : use.recent;
  }
  bool RanksBefore(const ValueUse& a, const ValueUse& b) const {
    const RecentCalls::Counts& of_a = CountsOf(a);
    const RecentCalls::Counts& of_b = CountsOf(b);
    // Slots last: the order is the same in every run.
    return std::tuple(b.now_calls, of_b.passed, of_b.blocked, a.key, a.value) <
           std::tuple(a.now_calls, of_a.passed, of_a.blocked, b.key, b.value);
  }

  const size_t limit_;
  const TopBy by_;
  bool cut_ = false;  // The use at limit_ - 1 ranks last of those before it.
  std::vector<ValueUse> uses_;
};

}  // namespace

std::vector<ValueUse> TopValues(const Books& books, FlowSlot slot, size_t limit, int64_t now_ms,
                                TopBy by) {
  const KeyTable& keys = books.flows().keys();
  const ParamValues& values = books.rates().values();
  const Flow& flow = books.flows().at(slot);
  FirstUses first(limit, by);

  // Values with calls a second, joined with their keys if they have any.
  std::vector<bool> seen(flow.keys > 0 ? keys.slots() : 0);
  if (const RateState* rate = books.rates().Find(slot); rate != nullptr) {
    books.looks() += rate->values.list.size;
    for (ValueSlot at = rate->values.list.newest; at != kNoValue; at = values.Older(at)) {
      const ValueRate& value = values.at(at);
      ValueUse use{.value = at};
      use.recent = value.recent.At(now_ms, flow.rule->rate_interval_ms());
      use.minute = value.minute.At(now_ms, RecentCalls::kMinuteMs);
      if (flow.keys > 0) use.key = keys.Find(slot, value.value.view());
      if (use.key != kNoKey) {
        use.now_calls = keys.at(use.key).lane.now_calls;
        seen[use.key.value] = true;
      } else if (use.recent == RecentCalls::Counts{} && use.minute == RecentCalls::Counts{}) {
        continue;
      }
      first.Add(use);
    }
  }
  // Keys without calls a second.
  if (flow.keys > 0) {
    books.looks() += keys.slots();
    keys.ForEachOf(slot, [&](KeySlot key) {
      if (seen[key.value]) return;
      first.Add({.key = key, .now_calls = keys.at(key).lane.now_calls});
    });
  }
  return first.Take();
}

}  // namespace nowcalls::core
