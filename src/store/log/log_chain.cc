#include "store/log/log_chain.h"

#include <memory>

#include "store/disk/file_names.h"
#include "store/disk/ledger_files.h"
#include "store/disk/store_error.h"
#include "store/disk/witness_file.h"

namespace nowcalls::store {
namespace {

std::string Batches(uint64_t first, uint64_t last) {
  if (first == last) return "batch " + std::to_string(first);
  return "batches " + std::to_string(first) + " to " + std::to_string(last);
}

StoreError Lost(const std::string& dir, uint64_t first, uint64_t last, const std::string& where) {
  return StoreError::Damaged("the ledger in " + dir + " has lost " + Batches(first, last) + ": " +
                             where);
}

std::string EndsWith(const LogSegment& segment) {
  return segment.path + " ends at byte " + std::to_string(segment.end) + " with batch " +
         std::to_string(segment.batches.last);
}

const LogSegment* LastWithBatches(const std::map<uint64_t, LogSegment>& segments) {
  const LogSegment* last = nullptr;
  for (const auto& [number, segment] : segments) {
    if (!segment.batches.empty) last = &segment;
  }
  return last;
}

Status CheckInside(const LogSegment& segment) {
  if (!segment.batches.broken.has_value()) return {};
  const BatchRun::Break& broken = *segment.batches.broken;
  return StoreError::Damaged(segment.path + " is damaged at byte " + std::to_string(broken.at) +
                             ": batch " + std::to_string(broken.found) + " follows batch " +
                             std::to_string(broken.before));
}

// `next` must go on where `last` ended, or where data files have the rest.
Status CheckBetween(const std::string& dir, const LogSegment& last, const LogSegment& next,
                    uint64_t floor) {
  const uint64_t end = last.batches.last;
  const uint64_t begin = next.batches.first;
  if (begin <= end) {
    return StoreError::Damaged(next.path + " begins with batch " + std::to_string(begin) +
                               ", though " + EndsWith(last));
  }
  if (begin == end + 1 || begin <= floor + 1) return {};
  return Lost(dir, end + 1, begin - 1,
              EndsWith(last) + ", and the next, " + next.path + ", begins with batch " +
                  std::to_string(begin));
}

// The opened ledger must reach the batch that the witness knows. Later batches may have existed.
Status CheckReach(const std::string& ledger_dir, const std::map<uint64_t, LogSegment>& segments,
                  const KnownBatches& known) {
  if (known.sealed >= known.witnessed) return {};
  const LogSegment* last = LastWithBatches(segments);
  const std::string end = last != nullptr ? EndsWith(*last) : "no log has a batch";
  return Lost(ledger_dir, known.sealed + 1, known.witnessed,
              "batch " + std::to_string(known.witnessed) + " was on the disk, as " +
                  WitnessPath(ledger_dir) + " tells, and there may have been later ones, but " +
                  end);
}

}  // namespace

Status CheckChain(const std::string& ledger_dir, const std::map<uint64_t, LogSegment>& segments,
                  const KnownBatches& known) {
  // Step 1: the end. The witness knows of batches that were on disk.
  NOWCALLS_RETURN_IF_ERROR(CheckReach(ledger_dir, segments, known));
  const uint64_t floor = known.floor.value_or(0);
  const LogSegment* last = nullptr;
  // Step 2: no gap within a log, between logs, or before the first. Data files have all up to
  // `floor`.
  for (const auto& [number, segment] : segments) {
    NOWCALLS_RETURN_IF_ERROR(CheckInside(segment));
    if (segment.batches.empty) continue;
    const uint64_t begin = segment.batches.first;
    if (last != nullptr) {
      NOWCALLS_RETURN_IF_ERROR(CheckBetween(ledger_dir, *last, segment, floor));
    } else if (known.floor.has_value() && begin > floor + 1) {
      return Lost(ledger_dir, floor + 1, begin - 1,
                  "the data files need not have them, and the first log, " + segment.path +
                      ", begins with batch " + std::to_string(begin));
    }
    last = &segment;
  }
  // Step 3: the seal may come from a data file of one family; logs must reach it for the others.
  const uint64_t end = last != nullptr ? last->batches.last : floor;
  if (end >= known.sealed || floor >= known.sealed) return {};
  if (last != nullptr) {
    return Lost(ledger_dir, end + 1, known.sealed,
                "only some of the data files have them, and " + EndsWith(*last));
  }
  // Without a floor nothing tells which batches the data files have: another program wrote last.
  if (!known.floor.has_value()) return {};
  return Lost(ledger_dir, end + 1, known.sealed,
              "only some of the data files have them, and no log has a batch");
}

StoreError CheckManifest(rocksdb::FileSystem* files, const std::string& ledger_dir,
                         const std::optional<ledger::Witness>& witness, bool* floor_counts) {
  *floor_counts = false;
  std::string name;
  StoreError read = ReadCurrent(files, ledger_dir, &name);
  if (!read.ok()) return read;
  const std::string path = ledger_dir + "/" + name;
  uint64_t size = 0;
  std::unique_ptr<rocksdb::FSRandomAccessFile> file;
  rocksdb::IOStatus status =
      files->NewRandomAccessFile(path, rocksdb::FileOptions(), &file, nullptr);
  if (status.ok()) status = files->GetFileSize(path, rocksdb::IOOptions(), &size, nullptr);
  // RocksDB reports an unreadable or missing manifest in its own words.
  if (!status.ok() || !IsManifest(name)) return {};
  LogScan scan(file.get(), LogScan::Kind::kManifest);
  LogScan::Rest rest{};
  uint64_t content_end = 0;
  status = scan.Advance();
  if (status.ok()) status = scan.LookBehind(size, &rest, &content_end);
  if (!status.ok()) return ErrorFromRocks(status, "read the manifest", ledger_dir);
  // A witness of an earlier manifest: another program wrote the ledger since, and its floor says
  // nothing.
  *floor_counts = witness.has_value() && witness->manifest >= ManifestNumber(name);
  const std::string place = path + " is damaged at byte " + std::to_string(scan.end());
  if (rest == LogScan::Rest::kRecord || rest == LogScan::Rest::kDamaged) {
    return StoreError::Damaged(place);
  }
  // Only the same manifest can be compared by size.
  const bool same = *floor_counts && witness->manifest == ManifestNumber(name);
  if (same && scan.end() < witness->manifest_bytes) {
    return StoreError::Damaged(place +
                               ", or cut short there: " + std::to_string(witness->manifest_bytes) +
                               " bytes of it were on the disk");
  }
  return {};
}

}  // namespace nowcalls::store
