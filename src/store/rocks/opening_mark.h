// OpeningMark: notes files made by an open in `opening`, until it is accepted, so that the next
// open removes a killed one's.
//
// Unsynced: without the mark, files stay until an open is accepted.
//
// Thread: one at a time.
#ifndef NOWCALLS_STORE_ROCKS_OPENING_MARK_H_
#define NOWCALLS_STORE_ROCKS_OPENING_MARK_H_

#include <rocksdb/file_system.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace nowcalls::store {

class OpeningMark {
 public:
  // `files` outlives all calls, and shows files as they are.
  OpeningMark(rocksdb::FileSystem* files, std::string ledger_dir);

  // Removes the files of an unaccepted open, named in `removed`, and begins a mark. Calls
  // `may_delete` before each deletion. REQUIRES: lock, CURRENT, nothing made yet.
  rocksdb::IOStatus Begin(const std::function<rocksdb::IOStatus()>& may_delete,
                          std::vector<std::string>* removed);
  // Notes `path`, new and not yet written. No-op before Begin and after Remove.
  rocksdb::IOStatus Made(const std::string& path);
  rocksdb::IOStatus Remove();

 private:
  std::string Head() const;
  rocksdb::IOStatus RemoveMade(std::string_view text, const std::string& head,
                               const std::function<rocksdb::IOStatus()>& may_delete,
                               std::vector<std::string>* removed);
  rocksdb::IOStatus HasContent(const std::string& path, bool* content) const;

  rocksdb::FileSystem* const files_;
  const std::string dir_;
  const std::string path_;
  std::unique_ptr<rocksdb::FSWritableFile> file_;  // nullptr: nothing is noted.
};

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_ROCKS_OPENING_MARK_H_
