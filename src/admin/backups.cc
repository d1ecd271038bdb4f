#include "admin/backups.h"

#include <atomic>
#include <filesystem>
#include <system_error>

#include "admin/owner.h"
#include "backup/backup.h"
#include "backup/restore.h"
#include "backup/verify_process.h"
#include "base/clock.h"
#include "nowcalls_version.h"
#include "wire/messages.h"

namespace nowcalls::admin {
namespace {

// nowcalls-admin ends when it is killed, and leaves no backup and no ledger then.
const std::atomic<bool> kNeverStops{false};

std::string BackupText(const std::string& to, const backup::Manifest& manifest, uint64_t files,
                       uint64_t bytes) {
  return "backup to " + to + " done and verified, " + manifest.CountsText() + "; " +
         std::to_string(files) + " files with " + std::to_string(bytes) + " bytes\n";
}

std::string AgeText(int64_t age_ms) {
  if (age_ms < 0) {
    return "of the future, by the clock of this machine: set it right and restore again";
  }
  const int64_t minutes = age_ms / 60'000;
  return std::to_string(minutes / 60) + " h " + std::to_string(minutes % 60) + " min ago";
}

std::string FencesText(const backup::Restored& restored) {
  if (restored.is_beyond_copies) {
    return ", so no fence, token id or session number is given out twice";
  }
  return ", beyond those of the backup, but maybe not beyond those of an earlier copy:\n"
         "    the clock of this machine is wrong, or that of one which served the ledger was;\n"
         "    set it right and restore again, to another directory, or let all calls end before\n"
         "    you serve";
}

}  // namespace

Result<std::string> BackupLive(const Arguments& arguments, client::BlockingClient* client) {
  const Result<wire::BackupReply> made = client->Backup({arguments.to});
  if (made.ok()) {
    backup::Manifest manifest;
    manifest.batch_number = made->batch_number;
    manifest.tokens = made->tokens;
    manifest.now_calls = made->now_calls;
    manifest.sessions = made->sessions;
    manifest.rules = made->rules;
    manifest.history = made->history;
    return BackupText(arguments.to, manifest, made->files, made->bytes);
  }
  // Three failures: nobody knows, the server tried and failed, or it was not reached or refused.
  const Status& failed = made.status();
  // The manifest is written last, so its presence is the proof.
  if (failed.code() == StatusCode::kOutcomeUnknown) {
    return Status::OutcomeUnknown(failed.message() +
                                  "; it may still be under way: it is done when there is " +
                                  backup::ManifestPath(arguments.to));
  }
  // The server was reached; it is the backup that failed.
  if (failed.message().starts_with(wire::ErrorCodeName(wire::ErrorCode::kInternal))) {
    return Status::IoError(failed.message());
  }
  return failed;
}

Result<std::string> BackupAtRest(const Arguments& arguments) {
  std::error_code ignored;
  // The manifest and the messages name the place whatever the working directory is.
  const std::string to = std::filesystem::absolute(arguments.to, ignored).string();
  // By a process of its own, so that what cannot be read is removed, and not left by who died of
  // it.
  const auto verify = [](const std::string& copy, const std::atomic<bool>& stop) {
    return backup::VerifyInProcess(backup::kThisProgram, copy, stop);
  };
  const Result<backup::Manifest> made = backup::MakeBackupAtRest(
      arguments.data_dir, to, std::string("nowcalls-admin ") + NOWCALLS_VERSION, verify,
      kNeverStops);
  if (made.status().code() == StatusCode::kAlreadyExists) {
    return Status(StatusCode::kAlreadyExists,
                  made.status().message() +
                      "; or have the server make the backup: nowcalls-admin backup --server "
                      "HOST:PORT --to DIR");
  }
  if (!made.ok()) return made.status();
  return BackupText(to, *made, made->files.size(), made->bytes());
}

Result<std::string> Restore(const Arguments& arguments) {
  // The owner is looked up first: a misspelt user must not leave a restored ledger behind.
  Result<Owner> owner = Owner();
  if (!arguments.owner.empty()) owner = FindOwner(arguments.owner);
  if (!owner.ok()) return owner.status();
  const Result<ClockSample> now = SampleClocks();
  if (!now.ok()) return now.status();
  const Result<backup::Restored> restored =
      backup::Restore(arguments.from, arguments.data_dir, *now, kNeverStops);
  if (!restored.ok()) return restored.status();
  // Without --owner root is told that a service may not be able to open the files.
  if (!arguments.owner.empty()) NOWCALLS_RETURN_IF_ERROR(GiveTo(arguments.data_dir, *owner));
  const std::string note = arguments.owner.empty()
                               ? OwnerNote(arguments.data_dir, backup::ManifestPath(arguments.from))
                               : "";
  return "restored to " + arguments.data_dir + " and verified, " + restored->manifest.CountsText() +
         "\n" + "the backup was made at " + WallText(restored->manifest.made_wall_ms) + ", " +
         AgeText(restored->age_ms) +
         "; what happened since is not in it:\n"
         "  tokens that ended since count again, until they time out or their clients are found "
         "to be offline\n"
         "  tokens granted since are unknown: levels may be exceeded until their calls are over\n"
         "  fences go on from " +
         std::to_string(restored->next_fence) + FencesText(*restored) +
         "\n  rules that came by RPC are those of the backup\n" + note;
}

Status CheckManifestOf(const std::string& data_dir) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(backup::ManifestPath(data_dir), ignored)) return {};
  // A manifest that is damaged, or of another version, makes restore refuse the copy.
  Status refused =
      backup::ReadManifest(data_dir).status().WithContext("the backup cannot be restored");
  if (refused.code() != StatusCode::kCorruption) return refused;
  return Status::Corruption(refused.message() +
                            "; use another one, or have `nowcalls-admin repair` make a ledger of "
                            "its files");
}

}  // namespace nowcalls::admin
