#include "unit/store/rocks_fixture.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "store/rocks/ledger_reader.h"
#include "support/poll_until.h"
#include "support/process.h"

namespace nowcalls::store {

namespace fs = std::filesystem;

RocksStoreOptions TinyOptions() {
  RocksStoreOptions options;
  options.durability = Durability::kNone;
  options.write_buffer_bytes = kTinyBufferBytes;
  options.manifest_bytes_max = 4 * 1024;
  return options;
}

RocksStoreOptions SyncedOptions() {
  RocksStoreOptions options;
  options.write_buffer_bytes = kTinyBufferBytes;
  return options;
}

std::unique_ptr<RocksStore> OpenTiny(const std::string& data_dir) {
  auto opened = RocksStore::Open(data_dir, TinyOptions());
  REQUIRE_MESSAGE(opened.ok(), opened.status().ToString());
  return *std::move(opened);
}

Dump DumpAt(const std::string& data_dir) {
  const auto store = LedgerReader::Open(data_dir);
  REQUIRE_MESSAGE(store.ok(), store.status().ToString());
  return DumpOf(store->get());
}

void CommitMany(LedgerScript* script, int batches, int records, Store* store) {
  ledger::CommitBatch batch;
  for (int i = 0; i < batches; ++i) {
    script->NextBatch(records, &batch);
    const Status status = store->Commit(batch);
    REQUIRE_MESSAGE(status.ok(), status.ToString());
  }
}

std::vector<std::string> LedgerFiles(const std::string& data_dir, std::string_view suffix) {
  std::vector<std::string> paths;
  for (const auto& entry : fs::directory_iterator(data_dir + "/ledger")) {
    const std::string path = entry.path();
    if (path.ends_with(suffix)) paths.push_back(path);
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::map<std::string, std::string> SnapshotOf(const std::string& data_dir) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(data_dir + "/ledger")) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    const auto changed = entry.last_write_time().time_since_epoch().count();
    files[entry.path().filename()] = std::to_string(changed) + " " + bytes;
  }
  const auto changed = fs::last_write_time(data_dir + "/ledger").time_since_epoch().count();
  files["."] = std::to_string(changed);
  return files;
}

std::map<std::string, std::string> LedgerContents(const std::string& data_dir) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(data_dir + "/ledger")) {
    const std::string name = entry.path().filename();
    if (!name.starts_with("LOG")) files[name] = testing::ReadFileToString(entry.path());
  }
  return files;
}

void CopyLedger(const std::string& from, const std::string& to) {
  const std::string ledger = to + "/ledger";
  REQUIRE(testing::PollUntil(testing::kPatienceMs, [&] {
    fs::remove_all(ledger);
    fs::create_directories(to);
    try {
      const auto before = SnapshotOf(from);
      fs::copy(from + "/ledger", ledger);
      return SnapshotOf(from) == before;
    } catch (const fs::filesystem_error&) {  // A file has vanished.
      return false;
    }
  }));
}

std::vector<uint64_t> PayloadOffsets(const std::string& path) {
  constexpr size_t kBlockBytes = 32768;
  constexpr size_t kHeaderBytes = 7;  // Checksum, length (little-endian, 2 bytes), type.
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  std::vector<uint64_t> offsets;
  size_t at = 0;
  while (at + kHeaderBytes < bytes.size()) {
    const size_t in_block = kBlockBytes - at % kBlockBytes;
    if (in_block <= kHeaderBytes) {
      at += in_block;
      continue;
    }
    const size_t size = static_cast<uint8_t>(bytes[at + 4]) | static_cast<uint8_t>(bytes[at + 5])
                                                                  << 8;
    if (size == 0) break;
    offsets.push_back(at + kHeaderBytes + size / 2);
    at += kHeaderBytes + size;
  }
  return offsets;
}

uint64_t SizeOf(const std::string& path) { return fs::file_size(path); }

void ChangeBare(const std::string& data_dir, const BareChange& change) {
  const std::string dir = data_dir + "/ledger";
  std::vector<std::string> names;
  rocksdb::DBOptions options;
  if (!rocksdb::DB::ListColumnFamilies(options, dir, &names).ok()) {
    names = {"default"};
    options.create_if_missing = true;
    fs::create_directories(dir);
  }
  std::vector<rocksdb::ColumnFamilyDescriptor> descriptors;
  for (const std::string& name : names) {
    descriptors.emplace_back(name, rocksdb::ColumnFamilyOptions());
  }
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::DB* raw = nullptr;
  const rocksdb::Status status = rocksdb::DB::Open(options, dir, descriptors, &handles, &raw);
  REQUIRE_MESSAGE(status.ok(), status.ToString());
  const std::unique_ptr<rocksdb::DB> db(raw);
  change(db.get(), &handles);
  for (rocksdb::ColumnFamilyHandle* handle : handles) {
    REQUIRE(db->DestroyColumnFamilyHandle(handle).ok());
  }
  REQUIRE(db->Close().ok());
}

}  // namespace nowcalls::store
