// OpeningMark: up to which number a ledger had files when an open of it began.
//
// Thread: one at a time. An open that is killed before Keep (ledger_file_system.h) leaves the files
// that it made, as large as what the logs hold, and each further one makes more: where memory does
// not suffice, or whoever starts the server waits too short for it, they would fill the disk. So
// the greatest number that was there is written down first, in the file `opening`, and the next
// open removes what is above it. Nobody was answered on account of it.
//
// What is removed is no part of the ledger: the mark is whole (it ends with a checksum) and is
// about this ledger, whose CURRENT has not been replaced since. It names the manifest that CURRENT
// named, its size and the database's identity. Whoever replaces CURRENT removes the mark first, and
// syncs the directory. The mark itself is not synced: without it files stay until an open is kept.
#ifndef NOWCALLS_STORE_OPENING_MARK_H_
#define NOWCALLS_STORE_OPENING_MARK_H_

#include <rocksdb/file_system.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace nowcalls::store {

// The number in the name of a file that RocksDB makes while it opens a database: a data file, log,
// manifest, file of options, or a temporary one. 0: it is none.
uint64_t MadeFileNumber(std::string_view name);

class OpeningMark {
 public:
  OpeningMark(std::shared_ptr<rocksdb::FileSystem> files, std::string ledger_dir);

  // Removes what opens made that were not kept, and writes the mark. REQUIRES: the ledger is
  // locked, has a CURRENT file, and nothing was made yet.
  rocksdb::IOStatus Begin();
  // Removes the mark, if there is one.
  rocksdb::IOStatus Remove();

 private:
  std::string LedgerText() const;
  rocksdb::IOStatus RemoveAbove(uint64_t number, std::vector<std::string>* names);
  rocksdb::IOStatus Write(const std::string& text);

  const std::shared_ptr<rocksdb::FileSystem> files_;
  const std::string dir_;
  const std::string path_;
};

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_OPENING_MARK_H_
