// Seals: the end of each commit batch: clock mark, watermark, history, seal.
//
// Thread: loop.
#ifndef NOWCALLS_CORE_SEALS_H_
#define NOWCALLS_CORE_SEALS_H_

#include <cstdint>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/time.h"
#include "core/books.h"
#include "core/loading.h"
#include "core/step.h"
#include "ledger/commit_batch.h"
#include "ledger/entities.h"

namespace nowcalls::core {

class Seals {
 public:
  Seals(Books* books, History* history) : books_(books), history_(history) {}

  void SetFirst(FirstRecords records) { first_ = std::move(records); }  // For the next batch.

  // See Core.
  Instant NextMark() const;
  void Seal(const Step& step, const ClockSample& clock, bool may_be_last);

 private:
  void RecordFirst(const Step& step);

  Books* const books_;
  History* const history_;
  std::optional<FirstRecords> first_;
  // Last written by this process.
  std::optional<int64_t> clock_marked_ms_;
  std::optional<int64_t> watermark_ms_;
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_SEALS_H_
