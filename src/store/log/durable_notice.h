// DurableNotice: finds the moment within a commit when its batch is on the disk.
//
// RocksDB syncs the log before it applies a batch to the memtables. Applying takes a third of a
// commit's processor time, and nobody has to wait for it. A sync counts only if it is of the log
// that got the batch, on the thread that commits. RocksDB syncs the name of a new log behind its
// first bytes, so the first batch of each log gets no early notice.
//
// Thread: Begin and End on the writer of the store; OnAppended and OnSynced on any, which are
// ignored on others.
#ifndef NOWCALLS_STORE_LOG_DURABLE_NOTICE_H_
#define NOWCALLS_STORE_LOG_DURABLE_NOTICE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <utility>

namespace nowcalls::store {

class DurableNotice {
 public:
  // A batch is about to be written. OnSynced calls `durable`, if not empty, at most once before
  // End. `durable` outlives End.
  void Begin(const std::function<void()>& durable) {
    durable_ = durable ? &durable : nullptr;
    appended_to_ = 0;
    writer_ = std::this_thread::get_id();
  }

  // Bytes were added to log `number`, which is not 0.
  void OnAppended(uint64_t number) {
    if (IsWriter()) appended_to_ = number;
  }

  // All bytes of log `number` are on the disk.
  void OnSynced(uint64_t number) {
    if (!IsWriter() || number != appended_to_ || number != named_ || durable_ == nullptr) return;
    (*std::exchange(durable_, nullptr))();
  }

  // The commit is over. With `durable` the batch and the name of its log are on the disk.
  void End(bool durable) {
    if (durable) named_ = appended_to_;
    durable_ = nullptr;
    writer_ = std::thread::id();
  }

 private:
  bool IsWriter() const { return writer_.load() == std::this_thread::get_id(); }

  std::atomic<std::thread::id> writer_{};  // From Begin to End.
  // The writer's, as is the rest.
  const std::function<void()>* durable_ = nullptr;
  uint64_t appended_to_ = 0;  // The log that has the batch, or its beginning.
  uint64_t named_ = 0;        // The last log whose name is surely on the disk.
};

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_LOG_DURABLE_NOTICE_H_
