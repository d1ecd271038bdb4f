// OpeningMark: which files an open of a ledger has made, until they are kept.
//
// Thread: one at a time. An open that is killed before Keep (ledger_file_system.h) leaves the files
// that it made, as large as what the logs hold, and each further one makes more: where memory does
// not suffice, or whoever starts the server waits too short for it, they would fill the disk. So it
// notes each, with its inode, in the file `opening`, and the next open removes them. Nobody was
// answered on account of them.
//
// Nothing is removed that may be of the ledger, also when somebody has put files into the directory
// in between. The mark is about this ledger, whose CURRENT has not been replaced since: it names
// the manifest that CURRENT named, its size and the database's identity. Each line ends with a
// checksum. A file must be the very one that was made, and a log must be without a record: no open
// writes one before it is kept. Whoever replaces CURRENT removes the mark first, and syncs the
// directory. The mark itself is not synced: without it files stay until an open is kept.
#ifndef NOWCALLS_STORE_OPENING_MARK_H_
#define NOWCALLS_STORE_OPENING_MARK_H_

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

  // Removes what an open made that was not kept, and begins a mark. `may_delete` is asked before
  // each deletion; `removed` gets the names. REQUIRES: the ledger is locked, has a CURRENT file,
  // and nothing was made yet.
  rocksdb::IOStatus Begin(const std::function<rocksdb::IOStatus()>& may_delete,
                          std::vector<std::string>* removed);
  // The file at `path` is about to be written; it is new. Nothing before Begin and after Remove.
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
  std::unique_ptr<rocksdb::FSWritableFile> file_;  // Null: nothing is noted.
};

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_OPENING_MARK_H_
