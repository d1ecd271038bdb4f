// FutureTimes: what a ledger says of times behind its last batch.
//
// Thread: one, during a load. No such time is written any more. A version of nowcalls that followed
// a boot clock that was set back may have left some, and they are no reason to refuse a ledger.
#ifndef NOWCALLS_CORE_FUTURE_TIMES_H_
#define NOWCALLS_CORE_FUTURE_TIMES_H_

#include <cstdint>
#include <string>

#include "base/time.h"

namespace nowcalls::core {

class FutureTimes {
 public:
  // When the last batch was sealed. Before it is known, every time is believed.
  void SetSealed(int64_t ledger_ms) { sealed_ms_ = ledger_ms; }

  // The time that counts for `ms`: the last batch's if `ms` is behind that. describe() names the
  // owner of the time, for the warning.
  template <typename Describe>
  int64_t Believed(int64_t ms, Describe&& describe) {
    if (ms <= sealed_ms_) return ms;
    Note(describe(), ms);
    return sealed_ms_;
  }
  // Whether `ms` has come. Notes the owner if it has not.
  template <typename Describe>
  bool HasCome(int64_t ms, Describe&& describe) {
    if (ms <= sealed_ms_) return true;
    Note(describe(), ms);
    return false;
  }

  // One sentence for the operator; empty if all times had come.
  std::string Warning() const;

 private:
  void Note(const std::string& what, int64_t ms);

  int64_t sealed_ms_ = kInstantMsMax;
  uint64_t count_ = 0;
  std::string first_;
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_FUTURE_TIMES_H_
