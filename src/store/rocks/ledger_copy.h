// LedgerCopy: copies the files of a ledger, while its server writes it or at rest.
//
// Beside a server RocksDB first flushes its memtables. It then names the files that make up the
// database, and how much of the growing ones belongs to the copy. Data files never change, so they
// are linked where possible. Logs and the manifest are copied. Logs are read through LogViews, so a
// copy has neither the zeros behind a log nor what a power cut left of its last record. The copied
// logs end later than the manifest knows: the copy is all batches up to one, as after a crash.
//
// RocksDB deletes nothing until each file is linked or open, which waits for the ledger's own disk
// only. A target that is slow, or that hangs, keeps no file alive that the ledger needs no more: an
// open file stays what it was, since no log is reused while it is open, and what grows is read up
// to a length.
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

  // Of `database`, in the directory `to`. The copy leaves `leaves_bytes` free on the ledger's file
  // system. `database` and `stop` outlive it.
  LedgerCopy(const Database& database, Source source, uint64_t leaves_bytes, std::string to,
             const std::atomic<bool>* stop);

  // Makes the copy; the files and their names are on the disk when it returns. kIoError;
  // kUnavailable: `stop` was set.
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

  // Finds out what the copy consists of, and links or opens all of it.
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
