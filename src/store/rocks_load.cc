// How a ledger is read: every row of every family becomes a call of the visitor.
#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/last_words.h"
#include "ledger/codec.h"
#include "store/key_prefix.h"
#include "store/read_ahead.h"
#include "store/rocks_status.h"
#include "store/rocks_store_impl.h"
#include "store/show_rows.h"

namespace nowcalls::store {
namespace {

using ledger::Family;

// Of each data file.
constexpr size_t kReadaheadBytes = 256 * 1024;

using NewIterator = std::function<std::unique_ptr<rocksdb::Iterator>()>;

// An iterator at `prefix`, the first row behind it, or the end; nullptr when that cannot be read.
// Each is new, since one that has met damage does not go on.
std::unique_ptr<rocksdb::Iterator> SeekTo(KeyPrefix prefix, const NewIterator& make) {
  std::unique_ptr<rocksdb::Iterator> it = make();
  it->Seek(KeyOf(prefix));
  return it->Valid() || it->status().ok() ? std::move(it) : nullptr;
}

// The same for the least place behind `prefix` that can be read.
std::unique_ptr<rocksdb::Iterator> SeekBehindDamage(KeyPrefix prefix, const NewIterator& make) {
  KeyPrefix step = 1;
  while (step <= kKeyPrefixMax - prefix && SeekTo(prefix + step, make) == nullptr) {
    if (step > kKeyPrefixMax / 2) return nullptr;
    step *= 2;
  }
  if (step > kKeyPrefixMax - prefix) return nullptr;
  KeyPrefix bad = prefix + step / 2;
  KeyPrefix good = prefix + step;
  while (good - bad > 1) {
    const KeyPrefix middle = bad + (good - bad) / 2;
    (SeekTo(middle, make) != nullptr ? good : bad) = middle;
  }
  return SeekTo(good, make);
}

}  // namespace

Status RocksStore::Impl::ReadStatus(Family family, const rocksdb::Status& status) const {
  return FromRocks(status, "read column family " + std::string(FamilyName(family)), dir);
}

std::unique_ptr<rocksdb::Iterator> RocksStore::Impl::NewReader(Family family,
                                                               const std::string& lower) const {
  rocksdb::ReadOptions read;
  read.readahead_size = kReadaheadBytes;
  read.fill_cache = false;
  std::unique_ptr<rocksdb::Iterator> it(db->NewIterator(read, HandleOf(family)));
  it->Seek(lower);
  return it;
}

Status RocksStore::Impl::ReadMeta(MetaRows* meta) const {
  const std::unique_ptr<rocksdb::Iterator> it = NewReader(Family::kMeta, "");
  for (; it->Valid(); it->Next()) meta->Add(AsView(it->key()), AsView(it->value()));
  return ReadStatus(Family::kMeta, it->status());
}

Status RocksStore::Impl::ShowReadable(Family family, const ShowOne& show,
                                      LedgerVisitor* visitor) const {
  const NewIterator make = [&] {
    return std::unique_ptr<rocksdb::Iterator>(
        db->NewIterator(rocksdb::ReadOptions(), HandleOf(family)));
  };
  KeyPrefix prefix = 0;
  std::unique_ptr<rocksdb::Iterator> it = make();
  it->SeekToFirst();
  while (it != nullptr) {
    for (; it->Valid(); it->Next()) {
      prefix = PrefixOf(AsView(it->key()));
      NOWCALLS_RETURN_IF_ERROR(show(AsView(it->key()), AsView(it->value())));
    }
    if (it->status().ok()) return {};
    NOWCALLS_RETURN_IF_ERROR(visitor->OnUnreadable(family, ReadStatus(family, it->status())));
    it = SeekBehindDamage(prefix, make);
  }
  return {};
}

Status RocksStore::Impl::LoadReadable(LedgerVisitor* visitor) const {
  MetaRows meta;
  for (const Family family : ledger::kLoadOrder) {
    const auto show = [&](std::string_view key, std::string_view value) -> Status {
      if (family != Family::kMeta) return ShowRow(family, key, value, visitor);
      meta.Add(key, value);
      return {};
    };
    NOWCALLS_RETURN_IF_ERROR(ShowReadable(family, show, visitor));
    if (family == Family::kMeta) NOWCALLS_RETURN_IF_ERROR(meta.Show(visitor));
  }
  return {};
}

Status RocksStore::Impl::LoadAhead(LedgerVisitor* visitor) const {
  const auto unread = [visitor](Family family, const Status& read) -> Status {
    return read.code() == StatusCode::kCorruption ? visitor->OnUnreadable(family, read) : read;
  };
  MetaRows meta;
  const Status meta_read = ReadMeta(&meta);
  if (!meta_read.ok()) NOWCALLS_RETURN_IF_ERROR(unread(Family::kMeta, meta_read));
  // A reader looks at every row, since one below the watermark is just what a verifier is after.
  // A server starts at the watermark, behind the tombstones of all that has ended.
  const bool all = for_read || !meta_read.ok();
  const std::string lower = all ? "" : ledger::TokenKeyLowerBound(meta.WatermarkMs());
  const std::span families_behind(ledger::kLoadOrder.begin() + 1, ledger::kLoadOrder.end());
  std::vector<ReadAhead::Open> opens;
  for (const Family family : families_behind) {
    opens.emplace_back([this, family, from = IsTokenFamily(family) ? lower : std::string()] {
      return NewReader(family, from);
    });
  }
  ReadAhead ahead(std::move(opens));
  if (meta_read.ok()) NOWCALLS_RETURN_IF_ERROR(meta.Show(visitor));
  while (const ReadAhead::Part* part = ahead.Next()) {
    const Family family = families_behind[part->source];
    NOWCALLS_RETURN_IF_ERROR(part->rows.ForEach([&](std::string_view key, std::string_view value) {
      return ShowRow(family, key, value, visitor);
    }));
    if (part->status.ok()) continue;
    NOWCALLS_RETURN_IF_ERROR(unread(family, ReadStatus(family, part->status)));
  }
  return {};
}

Status RocksStore::Load(LedgerVisitor* visitor) {
  if (impl_->db == nullptr) return Status::FailedPrecondition("the ledger is closed");
  const AssertionsMeanDamage reading;
  return impl_->for_salvage ? impl_->LoadReadable(visitor) : impl_->LoadAhead(visitor);
}

}  // namespace nowcalls::store
