#include "store/rocks/ledger_load.h"

#include <memory>
#include <string>
#include <vector>

#include "base/last_words.h"
#include "ledger/codec.h"
#include "ledger/entity_table.h"
#include "store/meta_rows.h"
#include "store/rocks/read_ahead.h"

namespace nowcalls::store {
namespace {

using ledger::Family;

// Of each data file.
constexpr size_t kReadaheadBytes = 256 * 1024;

// At a family's first row from `lower` on. Thread: any.
std::unique_ptr<rocksdb::Iterator> NewReader(const Database& database, Family family,
                                             const std::string& lower) {
  rocksdb::ReadOptions read;
  read.readahead_size = kReadaheadBytes;
  read.fill_cache = false;
  std::unique_ptr<rocksdb::Iterator> it(
      database.db()->NewIterator(read, database.HandleOf(family)));
  it->Seek(lower);
  return it;
}

Status ReadMeta(const Database& database, MetaRows* meta) {
  const auto it = NewReader(database, Family::kMeta, "");
  for (; it->Valid(); it->Next()) meta->Add(AsView(it->key()), AsView(it->value()));
  return ReadError(database, Family::kMeta, it->status());
}

}  // namespace

StoreError ReadError(const Database& database, Family family, const rocksdb::Status& status) {
  return ErrorFromRocks(status, "read column family " + std::string(FamilyName(family)),
                        database.dir());
}

Status LoadLedger(const Database& database, LoadFrom from, ledger::EntityVisitor* visitor) {
  const AssertionsMeanDamage reading;
  // Only damage is shown to the visitor. A failed read in disguise ends the load.
  const auto unread = [&database, visitor](Family family, const Status& read) -> Status {
    if (read.code() != StatusCode::kCorruption) return read;
    NOWCALLS_RETURN_IF_ERROR(database.CheckAllRead());
    return visitor->OnUnreadable(family, read);
  };
  // Meta first: its watermark tells where tokens begin. Without it, all tokens are shown.
  MetaRows meta;
  const Status meta_read = ReadMeta(database, &meta);
  if (!meta_read.ok()) NOWCALLS_RETURN_IF_ERROR(unread(Family::kMeta, meta_read));
  const bool all = from == LoadFrom::kBeginning || !meta_read.ok();
  const std::string lower = all ? "" : ledger::TokenKeyLowerBound(meta.WatermarkMs());

  // From here on a thread reads the other families ahead.
  std::vector<Family> families;
  std::vector<ReadAhead::Open> opens;
  for (const Family family : ledger::kLoadOrder) {
    // An absent family holds nothing.
    if (family == Family::kMeta || database.HandleOf(family) == nullptr) continue;
    families.push_back(family);
    opens.emplace_back([&database, family, begin = IsTokenFamily(family) ? lower : ""] {
      return NewReader(database, family, begin);
    });
  }
  ReadAhead ahead(std::move(opens));

  if (meta_read.ok()) NOWCALLS_RETURN_IF_ERROR(meta.Show(visitor));
  while (const ReadAhead::Part* part = ahead.Next()) {
    const Family family = families[part->source];
    NOWCALLS_RETURN_IF_ERROR(part->rows.ForEach([&](std::string_view key, std::string_view value) {
      return ledger::ShowRow({family, key, value}, visitor);
    }));
    if (part->status.ok()) continue;
    NOWCALLS_RETURN_IF_ERROR(unread(family, ReadError(database, family, part->status)));
  }
  // RocksDB may have gone on without unreadable parts.
  return database.CheckAllRead();
}

}  // namespace nowcalls::store
