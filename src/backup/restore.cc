#include "backup/restore.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "backup/backup.h"
#include "base/os_error.h"
#include "ledger/commit_batch.h"
#include "ledger/fence_line.h"
#include "store/disk/data_dir.h"
#include "store/disk/file_copy.h"
#include "store/disk/ledger_files.h"
#include "store/rocks/rocks_store.h"

namespace nowcalls::backup {
namespace {

namespace fs = std::filesystem;

using store::RocksStore;

constexpr mode_t kDirMode = 0700;

// True: made now, so a failure removes it again.
Result<bool> MakeDataDir(const std::string& data_dir) {
  if (mkdir(data_dir.c_str(), kDirMode) == 0) {
    NOWCALLS_RETURN_IF_ERROR(store::SyncDir(store::ParentOf(data_dir)));
    return true;
  }
  if (errno != EEXIST) return store::CannotMakeDirectory(data_dir, errno);
  std::error_code error;
  if (!fs::is_directory(data_dir, error)) {
    return Status::InvalidArgument(data_dir + " is not a directory: name a new one");
  }
  fs::directory_iterator entries(data_dir, error);
  if (error) return Status::IoError("cannot look at " + data_dir + ": " + error.message());
  // A server that was killed leaves its socket behind; nothing is lost with it.
  while (entries != fs::directory_iterator() && entries->is_socket(error)) entries.increment(error);
  if (entries == fs::directory_iterator()) {
    // The name may be new and unsynced. A process that cannot read the parent did not make it just
    // now.
    const std::string parent = store::ParentOf(data_dir);
    if (::access(parent.c_str(), R_OK) == 0) NOWCALLS_RETURN_IF_ERROR(store::SyncDir(parent));
    return false;
  }
  const std::string found = entries->path().filename();
  return Status::InvalidArgument(data_dir + " is not empty: it holds " + found +
                                 (found == store::kRestoringName
                                      ? ", what a restore left that did not end: remove that first"
                                      : ". Nothing is ever overwritten: name a new directory"));
}

Status CopyVerbatim(const Manifest& manifest, const std::string& from, const std::string& to,
                    const std::atomic<bool>& stop) {
  // Room is checked first: a small disk refuses before gigabytes are copied.
  NOWCALLS_RETURN_IF_ERROR(store::CheckRoom(to, manifest.bytes()));
  for (const store::CopiedFile& wanted : manifest.files) {
    const std::string path = from + "/" + wanted.name;
    const Result<bool> there = store::IsThere(path);
    if (!there.ok()) return there.status();
    std::error_code ignored;
    // A missing or short file is damage of the backup; a failing call is not.
    if (!*there || !fs::is_regular_file(path, ignored)) {
      return Status::Corruption("the backup is damaged: " + path + " is missing");
    }
    const Result<uint64_t> bytes = store::FileBytes(path);
    if (!bytes.ok()) return bytes.status();
    if (*bytes != wanted.bytes) {
      return Status::Corruption("the backup is damaged: " + path + " has " +
                                std::to_string(*bytes) + " bytes instead of " +
                                std::to_string(wanted.bytes));
    }
    // The checksum is that of the bytes copied, so the source is read once.
    const Result<store::CopiedFile> copied =
        store::CopyFile(path, to + "/" + wanted.name, wanted.bytes, stop);
    if (!copied.ok()) return copied.status();
    if (copied->crc32c != wanted.crc32c) {
      return Status::Corruption("the backup is damaged: " + path +
                                " has not the checksum that its manifest tells");
    }
  }
  return store::SyncDir(to);
}

Status CheckCounts(const Manifest& manifest, const VerifySummary& summary) {
  // The checksums match by now. This finds a manifest with false counts.
  Manifest found = manifest;
  found.SetCounts(summary);
  if (found == manifest) return {};
  return Status::Corruption("the backup is damaged: its manifest tells of " +
                            manifest.CountsText() + ", and its files hold " + found.CountsText());
}

// Writes the batch that moves fences on to `next_fence`. Its seal keeps the sums and the clock.
Status Mark(const std::string& data_dir, const std::optional<ledger::Seal>& last,
            uint64_t next_fence, const ClockSample& now) {
  Result<std::unique_ptr<RocksStore>> store = RocksStore::Open(data_dir, {});
  if (!store.ok()) return store.status();
  ledger::CommitBatch batch;
  ledger::Seal seal = last.value_or(ledger::Seal{});
  if (!last.has_value()) {
    // A first seal needs a clock mark. As in a new ledger, the clock begins with the wall clock.
    seal.ledger_ms = std::max<int64_t>(0, now.wall_ms);
    batch.ClockMarked({.ledger_ms = seal.ledger_ms, .machine = now});
  }
  ++seal.batch_number;
  seal.next_fence = next_fence;
  batch.Sealed(seal);
  NOWCALLS_RETURN_IF_ERROR((*store)->Commit(batch));
  return (*store)->Close();
}

// In `work`, a data directory of its own.
Result<Restored> RestoreTo(const std::string& from, const std::string& work, Manifest manifest,
                           const ClockSample& now, const std::atomic<bool>& stop) {
  // Step 1: copy and compare with the manifest's sizes and checksums.
  const std::string ledger = store::LedgerDir(work);
  if (mkdir(ledger.c_str(), kDirMode) != 0) return store::CannotMakeDirectory(ledger, errno);
  NOWCALLS_RETURN_IF_ERROR(CopyVerbatim(manifest, store::LedgerDir(from), ledger, stop));
  // Step 2: verify in this process, which serves nothing else.
  const Result<VerifySummary> summary = VerifyCopy(work, stop);
  if (!summary.ok()) return summary.status();
  NOWCALLS_RETURN_IF_ERROR(CheckCounts(manifest, *summary));
  // Step 3: fences go on beyond all copies, as far as the wall clocks can tell.
  Restored restored;
  restored.age_ms = now.wall_ms - manifest.made_wall_ms;
  const uint64_t next = summary->seal ? summary->seal->next_fence : 1;
  restored.is_beyond_copies = ledger::WallClockIsPlausible(manifest.made_wall_ms, now.wall_ms) &&
                              next <= ledger::FenceLine(now.wall_ms);
  restored.next_fence = ledger::FenceAfterGap(next, manifest.made_wall_ms, now.wall_ms);
  if (restored.next_fence >= ledger::kFenceMax) {
    return Status::Corruption("the fences of the backup are used up, or the wall clock is wrong");
  }
  // Step 4: mark the copy. It must be on disk before it gets the name of a ledger.
  NOWCALLS_RETURN_IF_ERROR(Mark(work, summary->seal, restored.next_fence, now));
  NOWCALLS_RETURN_IF_ERROR(store::SyncDir(ledger));
  restored.manifest = std::move(manifest);
  return restored;
}

// The rename is the moment at which the directory has a ledger.
Status MoveIntoPlace(const std::string& work, const std::string& data_dir) {
  const std::string ledger = store::LedgerDir(data_dir);
  if (rename(store::LedgerDir(work).c_str(), ledger.c_str()) != 0) {
    return OsError("rename the restored ledger to", ledger);
  }
  std::error_code ignored;
  Status synced = store::SyncDir(data_dir);
  if (!synced.ok()) {
    // A power cut could take the name from a ledger that is served: leave it to be removed.
    fs::rename(ledger, store::LedgerDir(work), ignored);
    return synced;
  }
  fs::remove(work, ignored);
  return {};
}

}  // namespace

Result<Restored> Restore(const std::string& from, const std::string& data_dir,
                         const ClockSample& now, const std::atomic<bool>& stop) {
  Result<Manifest> manifest = ReadManifest(from);
  if (!manifest.ok()) return manifest.status();
  std::string dir = data_dir;
  while (dir.size() > 1 && dir.back() == '/') dir.pop_back();
  NOWCALLS_RETURN_IF_ERROR(store::CheckOutside(dir, from, "the backup"));
  NOWCALLS_RETURN_IF_ERROR(store::CheckNotWithinBackupOrLedger(dir));
  const Result<bool> made = MakeDataDir(dir);
  if (!made.ok()) return made.status();
  const std::string work = dir + "/" + store::kRestoringName;
  // An existing one belongs to a restore under way or to a killed one: refuse.
  if (mkdir(work.c_str(), kDirMode) != 0) return store::CannotMakeDirectory(work, errno);
  Result<Restored> restored = RestoreTo(from, work, *std::move(manifest), now, stop);
  Status status = restored.status();
  if (status.ok()) status = MoveIntoPlace(work, dir);
  if (status.ok()) return restored;
  std::error_code ignored;
  fs::remove_all(work, ignored);
  if (*made) fs::remove(dir, ignored);
  return status;
}

}  // namespace nowcalls::backup
