#include "server/cluster/copy_taker.h"

#include <sys/stat.h>

#include <filesystem>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/os_error.h"
#include "client/blocking_client.h"
#include "store/disk/file_copy.h"
#include "store/disk/ledger_files.h"

namespace nowcalls::server {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kIncomingMode = 0700;
constexpr int64_t kTimeoutMs = 10'000;
// A copy is verified before it is told.
constexpr int64_t kMakeMsMax = 600'000;
constexpr int64_t kPauseMs = 20;

class Taker {
 public:
  Taker(client::BlockingClient* writer, std::string dir,
        const std::function<bool(int64_t ms)>& pause)
      : writer_(writer), dir_(std::move(dir)), pause_(pause) {}

  Result<backup::Manifest> Take() {
    const std::string ledger = store::LedgerDir(dir_);
    if (mkdir(dir_.c_str(), kIncomingMode) != 0 || mkdir(ledger.c_str(), kIncomingMode) != 0) {
      return OsError("make", ledger);
    }
    // 1. The manifest, which names the files. It becomes one on disk when they are there.
    std::string json;
    NOWCALLS_RETURN_IF_ERROR(Pieces(NameOfManifest(), [&](std::string_view bytes) {
      json += bytes;
      return json.size() <= kManifestBytesMax
                 ? Status::Ok()
                 : Status::Corruption("the manifest of the writer's copy is too long");
    }));
    Result<backup::Manifest> manifest = backup::DecodeManifest(json);
    if (!manifest.ok()) return manifest;
    NOWCALLS_RETURN_IF_ERROR(store::CheckRoom(dir_, manifest->bytes()));
    // 2. The files, each against its size and checksum.
    for (const store::CopiedFile& file : manifest->files) {
      NOWCALLS_RETURN_IF_ERROR(TakeFile(file));
    }
    NOWCALLS_RETURN_IF_ERROR(store::SyncDir(ledger));
    NOWCALLS_RETURN_IF_ERROR(store::ReplaceFile(backup::ManifestPath(dir_), json));
    return manifest;
  }

 private:
  static constexpr size_t kManifestBytesMax = 64 * 1024 * 1024;

  std::string NameOfManifest() const { return fs::path(backup::ManifestPath(dir_)).filename(); }

  Status TakeFile(const store::CopiedFile& file) {
    const std::string name = std::string(store::kLedgerName) + "/" + file.name;
    Result<store::FileWriter> out = store::FileWriter::Create(dir_ + "/" + name);
    if (!out.ok()) return out.status();
    NOWCALLS_RETURN_IF_ERROR(
        Pieces(name, [&](std::string_view piece) { return out->Append(piece); }));
    const Result<store::CopiedFile> taken = out->Finish();
    if (!taken.ok()) return taken.status();
    if (taken->bytes == file.bytes && taken->crc32c == file.crc32c) return {};
    return Status::Corruption("the writer's copy of " + file.name +
                              " is not what its manifest tells");
  }

  template <typename Take>
  Status Pieces(const std::string& file, Take&& take) {
    for (uint64_t offset = 0;;) {
      if (!pause_(0)) return Status::Unavailable("the end was asked for");
      const Result<std::string_view> piece = writer_->CopyPiece({.file = file, .offset = offset});
      if (piece.status().code() == StatusCode::kResourceExhausted) {
        pause_(kPauseMs);
        continue;
      }
      if (!piece.ok()) return piece.status();
      if (piece->empty()) return {};
      offset += piece->size();
      NOWCALLS_RETURN_IF_ERROR(take(*piece));
    }
  }

  client::BlockingClient* const writer_;
  const std::string dir_;
  const std::function<bool(int64_t ms)>& pause_;
};

// What goes wrong between two machines may go well the next time.
Status Passing(const Status& status) {
  switch (status.code()) {
    case StatusCode::kOutcomeUnknown:
    case StatusCode::kResourceExhausted:
    case StatusCode::kInvalidArgument: return Status::Unavailable(status.message());
    default: return status;
  }
}

}  // namespace

std::string IncomingDir(const std::string& data_dir) { return data_dir + "/incoming"; }

Result<backup::Manifest> TakeCopy(const CopySourceAddress& from, const std::string& data_dir,
                                  const std::function<bool(int64_t ms)>& pause) {
  const std::string dir = IncomingDir(data_dir);
  std::error_code error;
  fs::remove_all(dir, error);
  if (error) return Status::IoError("cannot remove " + dir + ": " + error.message());
  const auto writer = client::BlockingClient::Connect({.address = from.address,
                                                       .timeout_ms = kMakeMsMax,
                                                       .connect_ms = kTimeoutMs,
                                                       .security = from.security});
  if (!writer.ok()) return writer.status();
  const Result<wire::BackupReply> made = (*writer)->Copy();
  if (!made.ok()) return Passing(made.status());
  Result<backup::Manifest> manifest = Taker(writer->get(), dir, pause).Take();
  if (!manifest.ok()) return Passing(manifest.status());
  return manifest;
}

}  // namespace nowcalls::server
