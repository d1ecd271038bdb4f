#include "store/read_ahead.h"

#include <pthread.h>
#include <rocksdb/perf_level.h>

namespace nowcalls::store {

void RowBlock::Fill(rocksdb::Iterator* it) {
  bytes_.clear();
  sizes_.clear();
  for (; it->Valid() && bytes_.size() < kBytesEnough; it->Next()) {
    const rocksdb::Slice key = it->key();
    const rocksdb::Slice value = it->value();
    bytes_.append(key.data(), key.size());
    bytes_.append(value.data(), value.size());
    sizes_.emplace_back(key.size(), value.size());
  }
}

ReadAhead::ReadAhead(rocksdb::Iterator* it) : it_(it) {
  for (RowBlock& block : blocks_) free_.push_back(&block);
  thread_ = std::thread([this] { Run(); });
  pthread_setname_np(thread_.native_handle(), "nc-load");
}

ReadAhead::~ReadAhead() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

const RowBlock* ReadAhead::Next() {
  std::unique_lock lock(mutex_);
  if (shown_ != nullptr) {
    free_.push_back(shown_);
    shown_ = nullptr;
    changed_.notify_all();
  }
  changed_.wait(lock, [this] { return finished_ || !full_.empty(); });
  if (full_.empty()) return nullptr;
  shown_ = full_.front();
  full_.pop_front();
  return shown_;
}

void ReadAhead::Run() {
  // Nobody reads its counters, which cost some 20 ns a row.
  rocksdb::SetPerfLevel(rocksdb::PerfLevel::kDisable);
  while (it_->Valid()) {
    RowBlock* block = nullptr;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stopped_ || !free_.empty(); });
      if (stopped_) return;
      block = free_.front();
      free_.pop_front();
    }
    block->Fill(it_);
    const std::lock_guard lock(mutex_);
    full_.push_back(block);
    changed_.notify_all();
  }
  const std::lock_guard lock(mutex_);
  finished_ = true;
  changed_.notify_all();
}

}  // namespace nowcalls::store
