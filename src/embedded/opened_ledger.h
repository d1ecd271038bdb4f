// OpenedLedger: the ledger of an embedded service, opened as nowcalls-server does it.
//
// Thread: that of Open, then the driver of EngineFront; StoreFailure any.
#ifndef NOWCALLS_EMBEDDED_OPENED_LEDGER_H_
#define NOWCALLS_EMBEDDED_OPENED_LEDGER_H_

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/limits.h"
#include "nowcalls/embedded.h"
#include "nowcalls/status.h"
#include "recovery/machine_clock.h"
#include "recovery/recovery.h"
#include "store/store.h"

namespace nowcalls::embedded {

// A failure on a thread of the store. Outlives the store.
class StoreFailure {
 public:
  // The first one counts.
  void Set(const Status& what);
  std::optional<Status> Get() const;

 private:
  mutable std::mutex mutex_;
  std::optional<Status> what_;
};

struct OpenedLedger {
  std::string data_dir;  // Absolute; empty: in memory.
  std::shared_ptr<StoreFailure> failure = std::make_shared<StoreFailure>();
  std::unique_ptr<store::Store> store;
  // As of RocksStore::Close.
  std::function<Status()> close;
  std::optional<recovery::RecoveredLedger> recovered;
  std::optional<recovery::MachineClock> clock;  // Of `recovered`.
  std::vector<std::string> notes;               // What an operator should know, as sentences.
};

// Errors as of Embedded::Open; then the directory is as it was.
Result<OpenedLedger> OpenLedger(const EmbeddedOptions& options, const Limits& limits);

}  // namespace nowcalls::embedded

#endif  // NOWCALLS_EMBEDDED_OPENED_LEDGER_H_
