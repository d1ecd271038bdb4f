// The manifest of a backup: counts of its ledger, and name, size and checksum of every file.
//
// Thread: any. Layout: ledger/FORMAT.md.
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
  std::string made_by;       // "nowcalls-server 1.0.0".
  int64_t made_wall_ms = 0;  // Begin of the backup: later acknowledged batches are missing.
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
// kCorruption, or kFailedPrecondition for another version.
Result<Manifest> DecodeManifest(std::string_view json);

// kNotFound: no backup, or never finished.
Result<Manifest> ReadManifest(const std::string& backup_dir);

}  // namespace nowcalls::backup

#endif  // NOWCALLS_BACKUP_MANIFEST_H_
