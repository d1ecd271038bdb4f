// DurableNotice: when, within a commit, its batch is on the disk.
//
// RocksDB syncs the log before it applies a batch to the memtables, which takes about a third of
// what a commit takes of a processor, and nobody has to wait for that. But not every sync of a log
// is the one: it has to be that of the log which got the batch, on the thread that commits; and
// behind the sync of a log that was begun RocksDB syncs its name, so of the first batch of each log
// nothing is told early.
//
// Thread: the writer of the store; OnAppended and OnSynced any, and of others they are ignored.
#ifndef NOWCALLS_STORE_DURABLE_NOTICE_H_
#define NOWCALLS_STORE_DURABLE_NOTICE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <utility>

namespace nowcalls::store {

class DurableNotice {
 public:
  // A batch is about to be written. `durable`, if not empty, is called at most once until End, by
  // OnSynced. It outlives that.
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

  // The batch was written; and is on the disk, with the name of its log, if it is `durable`.
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
  uint64_t named_ = 0;        // The last log whose name is on the disk for certain.
};

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_DURABLE_NOTICE_H_
