#include "store/rocks/read_ahead.h"

#include <pthread.h>
#include <rocksdb/perf_level.h>

#include <algorithm>

namespace nowcalls::store {
namespace {

// Nobody reads RocksDB's counters, some 20 ns a row.
void DisableCounters() { rocksdb::SetPerfLevel(rocksdb::PerfLevel::kDisable); }

}  // namespace

void RowBlock::Fill(rocksdb::Iterator* it) {
  used_ = 0;
  sizes_.clear();
  for (; it->Valid() && used_ < kBytesEnough; it->Next()) {
    const rocksdb::Slice key = it->key();
    const rocksdb::Slice value = it->value();
    const size_t end = used_ + key.size() + value.size();
    if (end > bytes_.size()) bytes_.resize(std::max(end, kBytesEnough + kRowBytes));
    std::copy_n(key.data(), key.size(), bytes_.data() + used_);
    std::copy_n(value.data(), value.size(), bytes_.data() + end - value.size());
    sizes_.emplace_back(static_cast<uint32_t>(key.size()), static_cast<uint32_t>(value.size()));
    used_ = end;
  }
}

ReadAhead::ReadAhead(std::vector<Open> sources) : sources_(std::move(sources)) {
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

const ReadAhead::Part* ReadAhead::Next() {
  std::unique_lock lock(mutex_);
  if (shown_ != nullptr) {
    free_.push_back(std::exchange(shown_, nullptr));
    changed_.notify_all();
  }
  changed_.wait(lock, [this] { return finished_ || !full_.empty(); });
  if (full_.empty()) return nullptr;
  shown_ = full_.front();
  full_.pop_front();
  return shown_;
}

// nullptr: stopped.
ReadAhead::Part* ReadAhead::Take() {
  std::unique_lock lock(mutex_);
  // The bound stops the thread, so memory stays below kPartsMax parts.
  changed_.wait(lock, [this] { return stopped_ || !free_.empty() || parts_.size() < kPartsMax; });
  if (stopped_) return nullptr;
  if (free_.empty()) return parts_.emplace_back(std::make_unique<Part>()).get();
  Part* const part = free_.back();
  free_.pop_back();
  return part;
}

void ReadAhead::Show(Part* part) {
  const std::lock_guard lock(mutex_);
  full_.push_back(part);
  changed_.notify_all();
}

// False: stopped.
bool ReadAhead::Read(size_t source, rocksdb::Iterator* it) {
  do {
    Part* const part = Take();
    if (part == nullptr) return false;
    part->source = source;
    part->rows.Fill(it);
    // A failure comes with the source's last rows: the caller sees all rows before it.
    part->status = it->Valid() ? rocksdb::Status::OK() : it->status();
    Show(part);
  } while (it->Valid());
  return true;
}

void ReadAhead::Run() {
  DisableCounters();
  for (size_t source = 0; source < sources_.size(); ++source) {
    if (!Read(source, sources_[source]().get())) break;
  }
  const std::lock_guard lock(mutex_);
  finished_ = true;
  changed_.notify_all();
}

}  // namespace nowcalls::store
