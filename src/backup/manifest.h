// The manifest of a backup: what it is a copy of, and every file of it with its size and checksum.
//
// Thread: any. DIR/backup.json is written last, when the copy has been verified and is on disk; it
// is what makes a directory a backup. Until then there is DIR/backup.unfinished in its place, so
// that what a killed process left is told from a ledger. ledger/FORMAT.md has the layout.
#ifndef NOWCALLS_BACKUP_MANIFEST_H_
#define NOWCALLS_BACKUP_MANIFEST_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "backup/verify.h"
#include "nowcalls/status.h"
#include "store/disk/file_copy.h"

namespace nowcalls::backup {

inline constexpr int kManifestVersion = 1;

struct Manifest {
  std::string made_by;       // "nowcalls-server 0.1.0".
  int64_t made_wall_ms = 0;  // When it was begun: no batch is in it that was acknowledged later.
  uint64_t batch_number = 0;
  uint64_t tokens = 0;
  uint64_t now_calls = 0;
  uint64_t sessions = 0;
  uint64_t rules = 0;
  uint64_t history = 0;
  std::vector<store::CopiedFile> files;

  uint64_t bytes() const;  // Of all files.
  void SetCounts(const VerifySummary& summary);
  // "batch 7: 3 tokens with nowCalls 5, 2 sessions, 4 rules, 1 history row".
  std::string CountsText() const;

  bool operator==(const Manifest&) const = default;
};

std::string ManifestPath(const std::string& backup_dir);
std::string UnfinishedPath(const std::string& backup_dir);

// JSON with a checksum of itself.
std::string EncodeManifest(const Manifest& manifest);
// kCorruption, or kFailedPrecondition for another version; the message names what is wrong.
Result<Manifest> DecodeManifest(std::string_view json);

// Of the backup in `backup_dir`. kNotFound when there is none, or it was never finished.
Result<Manifest> ReadManifest(const std::string& backup_dir);

}  // namespace nowcalls::backup

#endif  // NOWCALLS_BACKUP_MANIFEST_H_
