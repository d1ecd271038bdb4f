// How a ledger is read: every row of every family becomes a call of the visitor.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/last_words.h"
#include "ledger/codec.h"
#include "store/key_cuts.h"
#include "store/read_ahead.h"
#include "store/rocks_status.h"
#include "store/rocks_store_impl.h"
#include "store/show_rows.h"

namespace nowcalls::store {
namespace {

using ledger::Family;

// Of each file in each stretch.
constexpr size_t kReadaheadBytes = 256 * 1024;
// Of one family: each costs a readahead of each file that reaches into it.
constexpr size_t kStretchesMax = 64;

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

std::unique_ptr<rocksdb::Iterator> RocksStore::Impl::NewReader(const Stretch& stretch) const {
  rocksdb::ReadOptions read;
  if (!stretch.upper.empty()) read.iterate_upper_bound = &stretch.upper_slice;
  read.readahead_size = kReadaheadBytes;
  read.fill_cache = false;
  std::unique_ptr<rocksdb::Iterator> it(db->NewIterator(read, HandleOf(stretch.family)));
  it->Seek(stretch.lower);
  return it;
}

std::vector<KeyPrefix> RocksStore::Impl::CutsOf(Family family, KeyPrefix from) const {
  rocksdb::ColumnFamilyMetaData tables;
  db->GetColumnFamilyMetaData(HandleOf(family), &tables);
  std::vector<FileRange> ranges;
  for (const rocksdb::LevelMetaData& level : tables.levels) {
    for (const rocksdb::SstFileMetaData& file : level.files) {
      ranges.push_back({PrefixOf(file.smallestkey), PrefixOf(file.largestkey), file.size});
    }
  }
  const size_t parts = std::clamp<size_t>(tables.size / options.stretch_bytes, 1, kStretchesMax);
  return EvenCuts(ranges, from, parts);
}

std::vector<RocksStore::Impl::Stretch> RocksStore::Impl::StretchesFrom(
    const std::string& lower) const {
  std::vector<Stretch> stretches;
  for (size_t i = 1; i < ledger::kLoadOrder.size(); ++i) {
    const Family family = ledger::kLoadOrder[i];
    stretches.push_back({family, IsTokenFamily(family) ? lower : "", "", {}});
    if (for_read || !IsTokenFamily(family)) continue;
    for (const KeyPrefix cut : CutsOf(family, PrefixOf(lower))) {
      stretches.back().upper = KeyOf(cut);
      stretches.push_back({family, KeyOf(cut), "", {}});
    }
  }
  for (Stretch& stretch : stretches) stretch.upper_slice = stretch.upper;
  return stretches;
}

Status RocksStore::Impl::ReadMeta(MetaRows* meta) const {
  const std::unique_ptr<rocksdb::Iterator> it = NewReader({Family::kMeta, "", "", {}});
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
  const std::vector<Stretch> stretches = StretchesFrom(lower);
  std::vector<ReadAhead::Open> opens;
  opens.reserve(stretches.size());
  for (const Stretch& stretch : stretches) {
    opens.emplace_back([this, &stretch] { return NewReader(stretch); });
  }
  // Where nothing was cut there is little to load, or whoever loads it shows it, in order.
  const bool cut = stretches.size() > ledger::kLoadOrder.size() - 1;
  const size_t in_order = ledger::kLoadOrder.size() - 1 - ledger::kTokenFamilies.size();
  ReadAhead ahead(std::move(opens), cut ? in_order : stretches.size());
  if (meta_read.ok()) NOWCALLS_RETURN_IF_ERROR(meta.Show(visitor));
  while (const ReadAhead::Part* part = ahead.Next()) {
    const Family family = stretches[part->source].family;
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
