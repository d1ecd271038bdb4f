// FrozenFiles: the files of a ledger as they are at one moment, though a server goes on writing it.
//
// Thread: any, once it is made.
//
// RocksDB takes away a log or a data file only after the manifest has been changed. So files that
// are all open, while the manifest is the same before and after, are one moment of the ledger, and
// stay readable whatever becomes of their names. The manifest and the newest log end behind what
// was whole in them then, so a reader takes them for a ledger at rest, with all checks of one.
// FORMAT.md has the steps.
//
// RocksDB's own way of reading beside a writer, the secondary, is not used: it keeps what it has
// read of logs that are gone since, also what data files no longer have, and passes over logs.
#ifndef NOWCALLS_STORE_FROZEN_FILES_H_
#define NOWCALLS_STORE_FROZEN_FILES_H_

#include <rocksdb/file_system.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nowcalls/status.h"
#include "store/log_scan.h"

namespace nowcalls::store {

class FrozenFiles : public rocksdb::FileSystemWrapper {
 public:
  // Of the ledger's directory `dir`, on the real disk. What damage there is stays in sight.
  // kIoError; kUnavailable: the server changes the ledger faster than its files can be opened.
  // For tests, `between` is called between two looks at the manifest.
  static Result<std::shared_ptr<FrozenFiles>> Take(const std::string& dir,
                                                   const std::function<void()>& between = {});

  // CURRENT, the manifest, logs, data files and the witness are those of the moment; all else is as
  // it is.
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
  // Those of the moment alone.
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
    std::shared_ptr<const OpenFile> file;  // nullptr: it could not be opened, for this reason.
    std::string failure = {};
    uint64_t bytes = 0;  // Shown of it.
  };

  // Changes whenever the set of files does that make up the ledger.
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
  // Lets those go that have no name any more.
  void CloseGone();
  // Opens logs and data files that are not open yet, or are others by now; whether there was a log
  // among them.
  Result<bool> OpenNew();
  // Opens one, in place of what was open under that name. False: it is gone, or cannot be opened.
  bool Open(const std::string& name);
  Status ReadCurrent(std::string* text);
  Status ReadWitness();
  // Finds what is shown of all; false: CURRENT has become another.
  Result<bool> Fix();
  rocksdb::IOStatus FixManifest();
  rocksdb::IOStatus FixTables();
  rocksdb::IOStatus FixLogs();
  // Of a file that may be written meanwhile: what is shown ends behind its last record, unless what
  // follows stays there and is nothing that a write leaves. That is judged as at rest.
  static rocksdb::IOStatus FindEnd(const OpenFile& file, LogScan* scan, uint64_t* end);

  // PathNotFound: it is none of those of the moment.
  rocksdb::IOStatus Find(const std::string& path, const Frozen** frozen) const;
  // Whether files of that kind are shown only if they are of the moment.
  bool IsOfKind(const std::string& path) const;
  bool IsOurDir(const std::string& dir) const;

  const std::string dir_;
  std::map<std::string, Frozen> files_;  // By name.
  std::string manifest_;                 // The name of the one that is scanned.
  std::optional<LogScan> manifest_scan_;
};

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_FROZEN_FILES_H_
