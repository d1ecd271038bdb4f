#include "store/read_ahead.h"

#include <pthread.h>
#include <rocksdb/perf_level.h>

#include <algorithm>

namespace nowcalls::store {
namespace {

// Nobody reads those of RocksDB, which cost some 20 ns a row.
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

ReadAhead::ReadAhead(std::vector<Open> sources, size_t in_order)
    : sources_(std::move(sources)), in_order_(in_order) {
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
  changed_.wait(lock,
                [this] { return finished_ || !full_.empty() || own_ != nullptr || MayHelp(); });
  if (!full_.empty()) {
    shown_ = full_.front();
    full_.pop_front();
    return shown_;
  }
  if (own_ == nullptr && !MayHelp()) return nullptr;
  if (own_ == nullptr) own_part_.source = begun_++;
  lock.unlock();
  return ReadOwn();
}

// What is `full_` was taken before, so no source whose order matters is still to be shown.
bool ReadAhead::MayHelp() const { return begun_ > in_order_ && begun_ < sources_.size(); }

const ReadAhead::Part* ReadAhead::ReadOwn() {
  if (own_ == nullptr) {
    DisableCounters();
    own_ = sources_[own_part_.source]();
  }
  own_part_.rows.Fill(own_.get());
  own_part_.status = own_->Valid() ? rocksdb::Status::OK() : own_->status();
  if (!own_->Valid()) own_.reset();
  return &own_part_;
}

ReadAhead::Part* ReadAhead::Take() {
  std::unique_lock lock(mutex_);
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

bool ReadAhead::Read(size_t source, rocksdb::Iterator* it) {
  do {
    Part* const part = Take();
    if (part == nullptr) return false;
    part->source = source;
    part->rows.Fill(it);
    part->status = it->Valid() ? rocksdb::Status::OK() : it->status();
    Show(part);
  } while (it->Valid());
  return true;
}

bool ReadAhead::Begin(size_t* source) {
  const std::lock_guard lock(mutex_);
  if (stopped_ || begun_ == sources_.size()) return false;
  *source = begun_++;
  // The caller may help from here on, and should not wait for this one's first rows.
  changed_.notify_all();
  return true;
}

void ReadAhead::Run() {
  DisableCounters();
  size_t source = 0;
  while (Begin(&source) && Read(source, sources_[source]().get())) {
  }
  const std::lock_guard lock(mutex_);
  finished_ = true;
  changed_.notify_all();
}

}  // namespace nowcalls::store
