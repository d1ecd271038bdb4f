#include "store/salvage/salvaged_ledger.h"

#include <utility>
#include <vector>

#include "base/last_words.h"
#include "ledger/entity_table.h"
#include "store/meta_rows.h"
#include "store/rocks/ledger_load.h"
#include "store/rocks/rocks_options.h"
#include "store/rocks/rocks_store.h"
#include "store/salvage/key_prefix.h"

namespace nowcalls::store {
namespace {

using ledger::Family;
using NewIterator = std::function<std::unique_ptr<rocksdb::Iterator>()>;

// An iterator at `prefix` or the next row, or at the end; nullptr: unreadable. Always new, since an
// iterator that met damage does not go on.
std::unique_ptr<rocksdb::Iterator> SeekTo(KeyPrefix prefix, const NewIterator& make) {
  std::unique_ptr<rocksdb::Iterator> it = make();
  it->Seek(KeyOf(prefix));
  return it->Valid() || it->status().ok() ? std::move(it) : nullptr;
}

// Likewise for the least readable place behind `prefix`.
std::unique_ptr<rocksdb::Iterator> SeekBehindDamage(KeyPrefix prefix, const NewIterator& make) {
  // Double the step until a place is readable.
  KeyPrefix step = 1;
  while (step <= kKeyPrefixMax - prefix && SeekTo(prefix + step, make) == nullptr) {
    if (step > kKeyPrefixMax / 2) return nullptr;
    step *= 2;
  }
  if (step > kKeyPrefixMax - prefix) return nullptr;
  // Halve the distance between an unreadable and a readable place.
  KeyPrefix bad = prefix + step / 2;
  KeyPrefix good = prefix + step;
  while (good - bad > 1) {
    const KeyPrefix middle = bad + (good - bad) / 2;
    (SeekTo(middle, make) != nullptr ? good : bad) = middle;
  }
  return SeekTo(good, make);
}

}  // namespace

std::string AboutLedger(std::string text, const std::string& copy_dir,
                        const std::string& ledger_dir) {
  for (size_t at = text.find(copy_dir); at != std::string::npos;
       at = text.find(copy_dir, at + ledger_dir.size())) {
    text.replace(at, copy_dir.size(), ledger_dir);
  }
  return text;
}

SalvagedLedger::SalvagedLedger(const std::string& copy_dir, std::string ledger_dir)
    : ledger_dir_(std::move(ledger_dir)),
      database_(copy_dir, RocksStoreOptions().write_buffer_bytes) {}

StoreError SalvagedLedger::Open() {
  const rocksdb::DBOptions options = ReaderDbOptions();
  std::vector<std::string> names;
  StoreError error = ListFamilies(options, database_.dir(), &names);
  if (error.ok()) {
    error = database_.Open(Database::Access::kRead, options, nullptr, names,
                           "open a copy of the ledger");
  }
  if (!error.ok()) return error;
  // Without a readable format record, the families of the first version suffice.
  const Result<uint32_t> version = database_.FormatVersion();
  return database_.CheckFamilies(version.ok() ? *version : ledger::kFormatVersionMin);
}

Status SalvagedLedger::ShowReadable(Family family, const ShowOne& show,
                                    ledger::EntityVisitor* visitor) const {
  if (database_.HandleOf(family) == nullptr) return {};  // Of an earlier format.
  const NewIterator make = [&] {
    return std::unique_ptr<rocksdb::Iterator>(
        database_.db()->NewIterator(rocksdb::ReadOptions(), database_.HandleOf(family)));
  };
  KeyPrefix prefix = 0;
  std::unique_ptr<rocksdb::Iterator> it = make();
  it->SeekToFirst();
  while (it != nullptr) {
    for (; it->Valid(); it->Next()) {
      prefix = PrefixOf(AsView(it->key()));
      NOWCALLS_RETURN_IF_ERROR(show(AsView(it->key()), AsView(it->value())));
    }
    const StoreError error = ReadError(database_, family, it->status());
    if (error.ok()) return {};
    const Status what(error.code(), AboutLedger(error.what(), database_.dir(), ledger_dir_));
    // Told once for each gap; reading goes on behind it.
    NOWCALLS_RETURN_IF_ERROR(visitor->OnUnreadable(family, what));
    it = SeekBehindDamage(prefix, make);
  }
  return {};
}

Status SalvagedLedger::Load(ledger::EntityVisitor* visitor) const {
  const AssertionsMeanDamage reading;
  MetaRows meta;
  for (const Family family : ledger::kLoadOrder) {
    const auto show = [&](std::string_view key, std::string_view value) -> Status {
      if (family != Family::kMeta) return ledger::ShowRow({family, key, value}, visitor);
      meta.Add(key, value);
      return {};
    };
    NOWCALLS_RETURN_IF_ERROR(ShowReadable(family, show, visitor));
    if (family == Family::kMeta) NOWCALLS_RETURN_IF_ERROR(meta.Show(visitor));
  }
  return {};
}

}  // namespace nowcalls::store
