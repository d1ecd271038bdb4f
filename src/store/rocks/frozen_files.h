// FrozenFiles: a ledger's files at one moment, while a server goes on writing (FORMAT.md).
//
// Thread: any, once made.
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
  // Files in `dir` on the real disk, damage included. kIoError; kUnavailable: the server changes
  // the ledger too fast. `between`: for tests, runs between two looks at the manifest.
  static Result<std::shared_ptr<FrozenFiles>> Take(const std::string& dir,
                                                   const std::function<void()>& between = {});

  // Shows CURRENT, manifest, logs, data files and witness of the moment; other files as they are.
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
  // Only files of the moment.
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

  struct Moment {
    std::string manifest;
    uint64_t manifest_end = 0;  // Behind its last record.

    bool operator==(const Moment&) const = default;
  };

  explicit FrozenFiles(std::string dir);
  std::string PathOf(const std::string& name) const { return dir_ + "/" + name; }

  Status Freeze(const std::function<void()>& between);
  Result<Moment> LookAtManifest();
  void CloseGone();
  Result<bool> OpenNew();
  bool Open(const std::string& name);
  Status ReadCurrent(std::string* text);
  Status ReadWitness();
  Result<bool> Fix();
  rocksdb::IOStatus FixManifest();
  rocksdb::IOStatus FixTables();
  rocksdb::IOStatus FixLogs();
  static rocksdb::IOStatus FindEnd(const OpenFile& file, LogScan* scan, uint64_t* end);

  rocksdb::IOStatus Find(const std::string& path, const Frozen** frozen) const;
  bool IsOfKind(const std::string& path) const;
  bool IsOurDir(const std::string& dir) const;

  const std::string dir_;
  std::map<std::string, Frozen> files_;  // By name.
  std::string manifest_;                 // The name of the manifest that is scanned.
  std::optional<LogScan> manifest_scan_;
};

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_ROCKS_FROZEN_FILES_H_
