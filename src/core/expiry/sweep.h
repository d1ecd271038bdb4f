// Sweep: scans of the ledger's expired range, and their finds.
//
// Thread: loop. One scan at a time. Finds wait for room in a batch; finds that ended or moved since
// are passed over.
#ifndef NOWCALLS_CORE_EXPIRY_SWEEP_H_
#define NOWCALLS_CORE_EXPIRY_SWEEP_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/time.h"
#include "core/books.h"
#include "core/expiry/absence.h"
#include "core/expiry/expire_judge.h"
#include "core/notices.h"
#include "core/step.h"
#include "core/tables/slot.h"
#include "ledger/scan.h"
#include "nowcalls/status.h"

namespace nowcalls::core {

class Sweep {
 public:
  Sweep(Books* books, Absence* absence, ExpireJudge* judge, Notices* notices)
      : books_(books), absence_(absence), judge_(judge), notices_(notices) {}

  // Nothing: no scan is due. Else OnScanDone must follow.
  std::optional<ledger::ScanRequest> BeginScan(Instant now);
  Status OnScanDone(const Step& step, const ledger::ScanResult& result);
  void OnTime(const Step& step);  // Looks at finds while the batch has room.

  bool has_finds() const { return finds_left() > 0; }
  Instant NextScan() const;  // kNever: not before something happens.

 private:
  bool MayScan() const;
  size_t finds_left() const { return found_.size() - found_next_; }
  void LoadAhead();
  void EndOrSpare(const Step& step, TokenSlot slot);
  void NoteEnd();

  Books* const books_;
  Absence* const absence_;
  ExpireJudge* const judge_;
  Notices* const notices_;

  bool in_flight_ = false;
  bool resume_ = false;  // The scan goes on behind `after_`.
  ledger::TokenKey after_;
  int64_t lower_ms_ = 0;
  int64_t upper_ms_ = 0;
  Instant began_{};  // When the last scan began.
  // Finds; those before `found_next_` are done.
  std::vector<ledger::TokenKey> found_;
  size_t found_next_ = 0;
  std::vector<uint64_t> fences_;  // Of finds loaded ahead, the next last.
  uint64_t reclaimed_ = 0;
  uint64_t spared_ = 0;
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_EXPIRY_SWEEP_H_
