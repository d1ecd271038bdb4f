#include "store/scan_walk.h"

#include <algorithm>

#include "base/clock.h"
#include "ledger/codec.h"

namespace nowcalls::store {

using ledger::Family;

namespace {

// Between close keys the clock costs as much as a step, so it is read once in 16 keys. The first
// key is checked, since the way to it may have been long.
constexpr size_t kKeysPerLook = 16;

}  // namespace

ScanWalk::ScanWalk(const ledger::ScanRequest& request, ledger::ScanResult* result)
    : request_(request),
      result_(result),
      stop_at_us_(request.budget_us > 0 ? BoottimeUs() + request.budget_us : INT64_MAX) {
  result_->status = {};
  result_->expired.clear();
  result_->more = false;
}

bool ScanWalk::Visits(Family family) const {
  return !request_.resume || family >= request_.after.family;
}

KeyRange ScanWalk::RangeIn(Family family) const {
  KeyRange range;
  range.lower = ledger::TokenKeyLowerBound(request_.lower_ms);
  if (request_.resume && family == request_.after.family) {
    char after[ledger::kTokenKeyBytes];
    ledger::EncodeTokenKey(request_.after, after);
    // The least string behind the key.
    range.lower = std::max(range.lower, std::string(after, sizeof(after)) + '\0');
  }
  // upper_ms itself is expired, so the range ends with the next millisecond.
  const bool last = request_.upper_ms == INT64_MAX;
  range.upper = ledger::TokenKeyLowerBound(last ? INT64_MAX : request_.upper_ms + 1);
  return range;
}

bool ScanWalk::Take(Family family, std::string_view key) {
  const Result<ledger::TokenKey> decoded = ledger::DecodeTokenKey(family, key);
  if (!decoded.ok()) {
    // Ends the step: what was found before stays in `expired`.
    result_->status = decoded.status().WithContext(FamilyName(family));
    return false;
  }
  result_->expired.push_back(*decoded);
  const size_t taken = result_->expired.size();
  const bool out_of_time = taken % kKeysPerLook == 1 && BoottimeUs() >= stop_at_us_;
  result_->more = taken >= request_.keys_max || out_of_time;
  return !result_->more;
}

}  // namespace nowcalls::store
