// OpeningMark: notes which files an open of a ledger makes, until the open is accepted.
//
// An open that is killed before Accept (ledger_file_system.h) leaves its files, as large as what
// the logs hold. Where memory does not suffice, or a supervisor waits too short for a start, each
// start would leave more and fill the disk. So each file is noted with its inode in the file
// `opening`, and the next open removes them. Nobody was answered because of them.
//
// Nothing is removed that may be of the ledger, also when somebody has put files into the directory
// in between:
// - The mark names the ledger and its state: the manifest that CURRENT named, its size, and the
//   database's identity.
// - Each line ends with a checksum.
// - A file must be the very one that was made. A log must be without a record: no open writes one
//   before it is accepted.
// - Whoever replaces CURRENT removes the mark first, and syncs the directory.
// The mark itself is not synced: without it, files stay until an open is accepted.
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

  // Removes the files of an open that was not accepted, and begins a mark. Calls `may_delete`
  // before each deletion; `removed` gets the names. REQUIRES: the ledger is locked and has a
  // CURRENT file, and nothing was made yet.
  rocksdb::IOStatus Begin(const std::function<rocksdb::IOStatus()>& may_delete,
                          std::vector<std::string>* removed);
  // Notes the file at `path`, which is new and about to be written. Does nothing before Begin and
  // after Remove.
  rocksdb::IOStatus Made(const std::string& path);
  // Removes the mark, if there is one.
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
