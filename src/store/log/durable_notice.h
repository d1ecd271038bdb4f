// DurableNotice: the moment within a commit when its batch and the log's name are on disk. The
// first batch of a log gets no early notice.
//
// Thread: Begin and End on the writer; OnAppended and OnSynced on any, ignored on others.
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
  // A batch is about to be written. OnSynced calls `durable`, if any, at most once before End,
  // which it outlives.
  void Begin(const std::function<void()>& durable) {
    durable_ = durable ? &durable : nullptr;
    appended_to_ = 0;
    writer_ = std::this_thread::get_id();
  }

  // `number` is not 0.
  void OnAppended(uint64_t number) {
    if (IsWriter()) appended_to_ = number;
  }

  // All bytes of log `number` are on disk.
  void OnSynced(uint64_t number) {
    if (!IsWriter() || number != appended_to_ || number != named_ || durable_ == nullptr) return;
    (*std::exchange(durable_, nullptr))();
  }

  void End(bool durable) {
    if (durable) named_ = appended_to_;
    durable_ = nullptr;
    writer_ = std::thread::id();
  }

 private:
  bool IsWriter() const { return writer_.load() == std::this_thread::get_id(); }

  std::atomic<std::thread::id> writer_{};  // From Begin to End.
  // Of the writer, as is the rest.
  const std::function<void()>* durable_ = nullptr;
  uint64_t appended_to_ = 0;  // The log that has the batch, or its beginning.
  uint64_t named_ = 0;        // The last log whose name is surely on the disk.
};

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_LOG_DURABLE_NOTICE_H_
