// Reads sound records of a damaged log, and writes logs.
//
// Thread: one.
#ifndef NOWCALLS_STORE_SALVAGE_LOG_SALVAGE_H_
#define NOWCALLS_STORE_SALVAGE_LOG_SALVAGE_H_

#include <rocksdb/file_system.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "store/disk/store_error.h"

namespace nowcalls::store {

struct SalvagedRecord {
  uint64_t begin = 0;
  uint64_t end = 0;
  std::string_view bytes;         // A batch in RocksDB's form.
  std::optional<uint64_t> batch;  // Its number, if it has one.
};

struct SkippedBytes {
  uint64_t begin = 0;
  uint64_t end = 0;
};

// Shows every sound record of the log at `path` in order, and skipped bytes between and behind;
// final zeros are no loss. kIo: the log cannot be read on.
StoreError SalvageLog(const std::string& path,
                      const std::function<void(const SalvagedRecord& record)>& show,
                      const std::function<void(const SkippedBytes& skipped)>& skip);

void AppendLogRecord(std::string_view bytes, std::string* log);

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_SALVAGE_LOG_SALVAGE_H_
