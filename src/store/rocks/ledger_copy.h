// LedgerCopy: copies a ledger's files: all batches up to one, as after a crash.
//
// Thread: any.
#ifndef NOWCALLS_STORE_ROCKS_LEDGER_COPY_H_
#define NOWCALLS_STORE_ROCKS_LEDGER_COPY_H_

#include <rocksdb/file_system.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nowcalls/status.h"
#include "store/disk/file_copy.h"
#include "store/rocks/database.h"

namespace nowcalls::store {

class LedgerCopy {
 public:
  enum class Source {
    kServed,  // This process has it open for writing.
    kAtRest,  // Nobody writes it.
  };

  // Copies `database` into `to`. `leaves_bytes` stay free on the ledger's file system. `database`
  // and `stop` outlive it.
  LedgerCopy(const Database& database, Source source, uint64_t leaves_bytes, std::string to,
             const std::atomic<bool>* stop);

  // As CopySource::CopyTo.
  Result<std::vector<CopiedFile>> Make();

 private:
  // A data file or the manifest.
  struct Part {
    std::string name;
    uint64_t bytes = 0;
    std::optional<SourceFile> file = {};
  };
  struct Log {
    std::string name;
    uint64_t bytes_max = 0;
    std::unique_ptr<rocksdb::FSSequentialFile> file = {};
  };

  Status TakeFiles();
  Status ListServed();
  Status ListAtRest();
  void LinkTables();
  Status SumBytes();
  Status OpenPart(Part* part) const;
  Status OpenLog(Log* log) const;
  Status CheckRoomFor(uint64_t bytes) const;

  Status CopyAll();
  Status CopyLog(Log log);
  Status CopyPart(Part part);
  Status Add(Result<CopiedFile> file);

  const Database& database_;
  const std::string& dir_;
  const bool is_served_;
  const std::string to_;
  const bool is_on_ledgers_disk_;
  const uint64_t leaves_bytes_;
  const std::atomic<bool>& stop_;

  std::vector<std::string> linked_;  // Data files that are in the target by now.
  std::vector<Part> tables_;         // The other data files.
  std::vector<Log> logs_;
  Part manifest_;
  uint64_t bytes_to_copy_ = 0;
  std::vector<CopiedFile> copied_;
};

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_ROCKS_LEDGER_COPY_H_
