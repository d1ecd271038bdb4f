#include "store/rocks/tombstone_collector.h"

#include <string>

namespace nowcalls::store {
namespace {

class TombstoneCollector : public rocksdb::TablePropertiesCollector {
 public:
  rocksdb::Status AddUserKey(const rocksdb::Slice&, const rocksdb::Slice&, rocksdb::EntryType type,
                             rocksdb::SequenceNumber, uint64_t) override {
    ++entries_;
    if (type == rocksdb::kEntrySingleDelete) ++tombstones_;
    return rocksdb::Status::OK();
  }

  rocksdb::Status Finish(rocksdb::UserCollectedProperties* properties) override {
    *properties = GetReadableProperties();
    return rocksdb::Status::OK();
  }

  rocksdb::UserCollectedProperties GetReadableProperties() const override {
    return {{kTombstonesProperty, std::to_string(tombstones_)}};
  }

  const char* Name() const override { return "nowcalls.TombstoneCollector"; }

  // A SingleDelete stays in its file until a compaction meets its Put; until then each sweep steps
  // over it.
  bool NeedCompact() const override {
    return tombstones_ >= kTombstonesDenseMin && tombstones_ * 2 >= entries_;
  }

 private:
  uint64_t entries_ = 0;
  uint64_t tombstones_ = 0;
};

class TombstoneCollectorFactory : public rocksdb::TablePropertiesCollectorFactory {
 public:
  rocksdb::TablePropertiesCollector* CreateTablePropertiesCollector(Context) override {
    return new TombstoneCollector;  // RocksDB deletes it.
  }
  const char* Name() const override { return "nowcalls.TombstoneCollectorFactory"; }
};

}  // namespace

std::shared_ptr<rocksdb::TablePropertiesCollectorFactory> NewTombstoneCollectorFactory() {
  return std::make_shared<TombstoneCollectorFactory>();
}

}  // namespace nowcalls::store
