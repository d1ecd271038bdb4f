#include "store/rocks/rocks_options.h"

#include <rocksdb/cache.h>
#include <rocksdb/env.h>
#include <rocksdb/listener.h>
#include <rocksdb/table.h>

#include <atomic>
#include <memory>
#include <utility>

#include "base/background_thread.h"
#include "store/disk/store_error.h"
#include "store/memtable/append_memtable.h"
#include "store/rocks/info_log.h"
#include "store/rocks/ledger_env.h"
#include "store/rocks/tombstone_collector.h"

namespace nowcalls::store {
namespace {

constexpr size_t kBlockCacheBytes = 8 * 1024 * 1024;
// A damaged sector takes a block from a repair: 65 tokens.
constexpr size_t kTableBlockBytes = 4 * 1024;
constexpr uint64_t kBytesPerSync = 1024 * 1024;
// RocksDB slows commits to 16 MB/s when all but one are full. Three waited for their flush while a
// million tokens were acquired.
constexpr int kWriteBuffersMax = 6;

class BackgroundListener : public rocksdb::EventListener {
 public:
  BackgroundListener(std::function<void(const Status&)> report, std::string dir)
      : report_(std::move(report)), dir_(std::move(dir)) {}

  void OnBackgroundError(rocksdb::BackgroundErrorReason reason, rocksdb::Status* error) override {
    if (!report_ || reported_.exchange(true)) return;
    // A compaction may also have failed to read.
    const bool compacts = reason == rocksdb::BackgroundErrorReason::kCompaction;
    report_(FromRocks(*error,
                      std::string(compacts ? "compact" : "write") + " the ledger in the background",
                      dir_));
  }
  // On a full disk RocksDB would wait and retry, whatever max_bgerror_resume_count says.
  void OnErrorRecoveryBegin(rocksdb::BackgroundErrorReason, rocksdb::Status,
                            bool* auto_recovery) override {
    *auto_recovery = false;
  }
  // Flush and compaction threads may have been started by the commit thread. Compactions step back
  // further (ServerLedger).
  void OnFlushBegin(rocksdb::DB*, const rocksdb::FlushJobInfo&) override {
    UseCpusOfProcess();
    StepBack();
  }
  void OnCompactionBegin(rocksdb::DB*, const rocksdb::CompactionJobInfo&) override {
    UseCpusOfProcess();
  }

 private:
  const std::function<void(const Status&)> report_;
  const std::string dir_;
  std::atomic<bool> reported_{false};
};

class NoLog : public rocksdb::Logger {
 public:
  using rocksdb::Logger::Logv;
  void Logv(const char*, va_list) override {}
};

rocksdb::DBOptions CommonDbOptions() {
  rocksdb::DBOptions db;
  db.paranoid_checks = true;
  // The default, point-in-time recovery, takes damage in a log for its end and silently drops
  // acknowledged batches. This mode forgives a crash only: a record cut short at the very end.
  db.wal_recovery_mode = rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
  // Every file stays open: no sweep waits for an open.
  db.max_open_files = -1;
  // Each family would start sixteen threads at open, for a handful of files.
  db.max_file_opening_threads = 1;
  // Our memtable takes one writer, and there is only one.
  db.allow_concurrent_memtable_write = false;
  // RocksDB's count would miss pairs left out of a flush; the table counts (append_memtable.h).
  db.flush_verify_memtable_count = false;
  db.stats_dump_period_sec = 0;
  db.stats_persist_period_sec = 0;
  return db;
}

}  // namespace

rocksdb::DBOptions ServerDbOptions(const RocksStoreOptions& options, const std::string& dir,
                                   std::function<void(const Status&)> report) {
  rocksdb::DBOptions db = CommonDbOptions();
  // After a failed write the disk's state is unknown: nothing is retried, the process ends,
  // recovery decides.
  db.max_bgerror_resume_count = 0;
  db.listeners.push_back(std::make_shared<BackgroundListener>(std::move(report), dir));
  // A rarely written family would pin the log for ever; this bounds the replay.
  db.max_total_wal_size = options.wal_bytes_max;
  // Recovered logs would pile up under a crashing server and its supervisor.
  db.avoid_flush_during_recovery = false;
  // A flush of tokens takes 100 ms, many times that on busy processors. With one thread the
  // history's memtables, 8 MB each, piled up until RocksDB held commits up.
  db.max_background_flushes = 2;
  db.max_background_compactions = 1;
  // Families need no common flush: the log is replayed behind each.
  db.atomic_flush = false;
  db.manual_wal_flush = false;
  db.use_fsync = false;
  // One writer gains nothing from these, and RocksDB 7.8 has bugs in their corners.
  db.enable_pipelined_write = false;
  db.unordered_write = false;
  db.two_write_queues = false;
  db.wal_compression = rocksdb::kNoCompression;
  // A recycled log cannot tell a damaged record from an older one.
  db.recycle_log_file_num = 0;
  // Flushed files trickle to the disk, so no commit waits behind a burst.
  db.bytes_per_sync = kBytesPerSync;
  db.max_manifest_file_size = options.manifest_bytes_max;
  // RocksDB's own log; its level would depend on the library's build.
  db.info_log = std::make_shared<InfoLog>(dir);
  db.info_log_level = rocksdb::InfoLogLevel::INFO_LEVEL;
  return db;
}

rocksdb::DBOptions ReaderDbOptions() {
  rocksdb::DBOptions db = CommonDbOptions();
  db.env = LedgerEnv::OfDisk();
  db.info_log = std::make_shared<NoLog>();
  return db;
}

rocksdb::ColumnFamilyOptions FamilyOptions(size_t write_buffer_bytes,
                                           std::shared_ptr<AppendMemtableFactory> memtables) {
  rocksdb::ColumnFamilyOptions family;
  // The price is a sort for each iterator, bounded by the small buffer.
  family.memtable_factory = std::move(memtables);
  family.write_buffer_size = write_buffer_bytes;
  family.max_write_buffer_number = kWriteBuffersMax;
  // Integers do not compress, and the hot path never reads: no filter, hardly any cache.
  family.compression = rocksdb::kNoCompression;
  family.bottommost_compression = rocksdb::kDisableCompressionOption;
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = rocksdb::NewLRUCache(kBlockCacheBytes);
  table.filter_policy = nullptr;
  table.block_size = kTableBlockBytes;
  family.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  family.table_properties_collector_factories.push_back(NewTombstoneCollectorFactory());
  return family;
}

rocksdb::WriteOptions CommitOptions(Durability durability) {
  rocksdb::WriteOptions write;
  write.sync = durability == Durability::kSync;
  return write;
}

uint64_t SpareLogBytes(const RocksStoreOptions& options) {
  // Only commits that wait for the disk gain. Unsynced, a power cut could leave zeros before whole
  // batches; a growing file just ends earlier.
  if (options.durability != Durability::kSync) return 0;
  // A log is about as long as its memtable.
  return options.write_buffer_bytes;
}

}  // namespace nowcalls::store
