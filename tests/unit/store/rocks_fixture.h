// Shared by the tests of RocksStore: small ledgers in temporary directories, their files, and
// RocksDB itself to prepare what RocksStore would never write.
#ifndef NOWCALLS_UNIT_STORE_ROCKS_FIXTURE_H_
#define NOWCALLS_UNIT_STORE_ROCKS_FIXTURE_H_

#include <rocksdb/db.h>
#include <rocksdb/file_system.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "store/rocks/rocks_store.h"
#include "support/process.h"
#include "unit/store/ledger_script.h"

namespace nowcalls::store {

inline constexpr size_t kTinyBufferBytes = 64 * 1024;

// Tiny buffers, no syncs.
RocksStoreOptions TinyOptions();
// Tiny buffers, and syncs as by default.
RocksStoreOptions SyncedOptions();

// Opens for serving with TinyOptions, or fails the test.
std::unique_ptr<RocksStore> OpenTiny(const std::string& data_dir);

// What a ledger holds that nobody serves, or fails the test.
Dump DumpAt(const std::string& data_dir);

// Commits `batches` random batches of `records` records.
void CommitMany(LedgerScript* script, int batches, int records, Store* store);

// The names of the files in DATA_DIR/ledger that end with `suffix`, sorted; their paths.
std::vector<std::string> LedgerFiles(const std::string& data_dir, std::string_view suffix);

// Name, size, time of last change and bytes of every file in DATA_DIR/ledger.
std::map<std::string, std::string> SnapshotOf(const std::string& data_dir);

// Name and bytes of every file there, but for RocksDB's own log.
std::map<std::string, std::string> LedgerContents(const std::string& data_dir);

// Makes DATA_DIR/ledger of `to` what a kill would leave at this moment of what a store that nobody
// commits to has at `from`: once its threads (flushes, spares, the witness) have come to rest, or
// the copy would be of several moments.
void CopyLedger(const std::string& from, const std::string& to);

using testing::FlipByte;

// An offset within the payload of each record of a file in RocksDB's log format (a log or a
// manifest), where a checksum covers every bit.
std::vector<uint64_t> PayloadOffsets(const std::string& path);

uint64_t SizeOf(const std::string& path);

// A disk on which no new witness gets its name.
class NoWitness : public rocksdb::FileSystemWrapper {
 public:
  NoWitness() : FileSystemWrapper(rocksdb::FileSystem::Default()) {}
  const char* Name() const override { return "NoWitness"; }
  rocksdb::IOStatus RenameFile(const std::string& from, const std::string& to,
                               const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* context) override {
    if (from.ends_with("/witness.new")) return rocksdb::IOStatus::IOError(from);
    return FileSystemWrapper::RenameFile(from, to, options, context);
  }
};

// Runs `change` on the bare database with all its families, then flushes and closes it.
using BareChange = std::function<void(rocksdb::DB*, std::vector<rocksdb::ColumnFamilyHandle*>*)>;
void ChangeBare(const std::string& data_dir, const BareChange& change);

}  // namespace nowcalls::store

#endif  // NOWCALLS_UNIT_STORE_ROCKS_FIXTURE_H_
