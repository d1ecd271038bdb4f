// FutureTimes: times of a ledger that are later than its last batch.
//
// Thread: one, during a load. Only an old version wrote any, after a boot clock was set back.
#ifndef NOWCALLS_CORE_FUTURE_TIMES_H_
#define NOWCALLS_CORE_FUTURE_TIMES_H_

#include <cstdint>
#include <string>

#include "base/time.h"

namespace nowcalls::core {

class FutureTimes {
 public:
  // Until then every time is believed.
  void SetSealed(int64_t ledger_ms) { sealed_ms_ = ledger_ms; }

  // Not later than the last batch. describe() names the owner for the warning.
  template <typename Describe>
  int64_t Believed(int64_t ms, Describe&& describe) {
    if (ms <= sealed_ms_) return ms;
    Note(describe(), ms);
    return sealed_ms_;
  }
  template <typename Describe>
  bool HasCome(int64_t ms, Describe&& describe) {
    if (ms <= sealed_ms_) return true;
    Note(describe(), ms);
    return false;
  }

  // For the operator; empty: all times had come.
  std::string Warning() const;

 private:
  void Note(const std::string& what, int64_t ms);

  int64_t sealed_ms_ = kInstantMsMax;
  uint64_t count_ = 0;
  std::string first_;
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_FUTURE_TIMES_H_
