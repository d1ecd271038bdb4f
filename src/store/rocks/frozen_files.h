// FrozenFiles: the files of a ledger as they are at one moment, though a server goes on writing it.
//
// RocksDB deletes a log or a data file only after it has changed the manifest. So if all files are
// open while the manifest is the same before and after, they are one moment of the ledger, and stay
// readable when their names are gone. The manifest and the newest log are shown up to their last
// whole record, so a reader takes the files for a ledger at rest, with all checks of one. FORMAT.md
// has the steps.
//
// RocksDB's own way of reading beside a writer, the secondary, is not used. It passes over logs,
// and keeps what it has read of logs that are gone, also rows that no data file has.
//
// Thread: any, once it is made.
#ifndef NOWCALLS_STORE_ROCKS_FROZEN_FILES_H_
#define NOWCALLS_STORE_ROCKS_FROZEN_FILES_H_

#include <rocksdb/file_system.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nowcalls/status.h"
#include "store/log/log_scan.h"

namespace nowcalls::store {

class FrozenFiles : public rocksdb::FileSystemWrapper {
 public:
  // The files in the ledger's directory `dir`, on the real disk, with whatever damage they have.
  // kIoError; kUnavailable: the server changes the ledger faster than its files can be opened.
  // Tests have `between` called between two looks at the manifest.
  static Result<std::shared_ptr<FrozenFiles>> Take(const std::string& dir,
                                                   const std::function<void()>& between = {});

  // CURRENT, the manifest, logs, data files and the witness are shown as at that moment, all other
  // files as they are.
  const char* Name() const override { return "nowcalls.FrozenFiles"; }
  rocksdb::IOStatus NewSequentialFile(const std::string& path, const rocksdb::FileOptions& options,
                                      std::unique_ptr<rocksdb::FSSequentialFile>* file,
                                      rocksdb::IODebugContext* context) override;
  rocksdb::IOStatus NewRandomAccessFile(const std::string& path,
                                        const rocksdb::FileOptions& options,
                                        std::unique_ptr<rocksdb::FSRandomAccessFile>* file,
                                        rocksdb::IODebugContext* context) override;
  rocksdb::IOStatus FileExists(const std::string& path, const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* context) override;
  rocksdb::IOStatus GetFileSize(const std::string& path, const rocksdb::IOOptions& options,
                                uint64_t* bytes, rocksdb::IODebugContext* context) override;
  // The files of the moment alone.
  rocksdb::IOStatus GetChildren(const std::string& dir, const rocksdb::IOOptions& options,
                                std::vector<std::string>* names,
                                rocksdb::IODebugContext* context) override;
  rocksdb::IOStatus GetChildrenFileAttributes(const std::string& dir,
                                              const rocksdb::IOOptions& options,
                                              std::vector<rocksdb::FileAttributes>* attributes,
                                              rocksdb::IODebugContext* context) override;

 private:
  class OpenFile;
  class View;
  class SequentialView;

  struct Frozen {
    std::shared_ptr<const OpenFile> file;  // nullptr: it could not be opened.
    std::string failure = {};              // Why not.
    uint64_t bytes = 0;                    // The length that is shown.
  };

  // Changes whenever the set of the ledger's files changes.
  struct Moment {
    std::string manifest;
    uint64_t manifest_end = 0;  // Behind its last record.

    bool operator==(const Moment&) const = default;
  };

  explicit FrozenFiles(std::string dir);
  std::string PathOf(const std::string& name) const { return dir_ + "/" + name; }

  Status Freeze(const std::function<void()>& between);
  // Also opens the manifest.
  Result<Moment> LookAtManifest();
  // Closes files that have no name any more.
  void CloseGone();
  // Opens logs and data files that are not open yet, or that another file has replaced. True: there
  // was a log among them.
  Result<bool> OpenNew();
  // Opens a file in place of what was open under that name. False: it is gone, or cannot be opened.
  bool Open(const std::string& name);
  Status ReadCurrent(std::string* text);
  Status ReadWitness();
  // Finds what is shown of each file. False: CURRENT has changed.
  Result<bool> Fix();
  rocksdb::IOStatus FixManifest();
  rocksdb::IOStatus FixTables();
  rocksdb::IOStatus FixLogs();
  // Finds the end of a file that may be written meanwhile: behind its last record. If what follows
  // stays there and no write leaves such bytes, it is shown too, and judged as in a file at rest.
  static rocksdb::IOStatus FindEnd(const OpenFile& file, LogScan* scan, uint64_t* end);

  // PathNotFound: it is no file of the moment.
  rocksdb::IOStatus Find(const std::string& path, const Frozen** frozen) const;
  // Whether files of that kind are shown only if they are of the moment.
  bool IsOfKind(const std::string& path) const;
  bool IsOurDir(const std::string& dir) const;

  const std::string dir_;
  std::map<std::string, Frozen> files_;  // By name.
  std::string manifest_;                 // The name of the manifest that is scanned.
  std::optional<LogScan> manifest_scan_;
};

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_ROCKS_FROZEN_FILES_H_
