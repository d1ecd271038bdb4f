#include "server/security/access_file_watch.h"

#include <utility>
#include <vector>

#include "base/counted.h"

namespace nowcalls::server {
namespace {

std::vector<std::string> PathsOf(const std::string& file) {
  return file.empty() ? std::vector<std::string>() : std::vector<std::string>{file};
}

}  // namespace

Result<AccessListPtr> ReadAccess(const ServerConfig& config) {
  if (config.access_file.empty()) return AccessListPtr();
  return access::AccessList::Read(config.access_file);
}

AccessFileWatch::AccessFileWatch(const std::string& file, Apply apply, Log log,
                                 const FileWatchOptions& options)
    : file_(file),
      apply_(std::move(apply)),
      log_(std::move(log)),
      watch_(
          PathsOf(file),
          [this, file]() -> FileWatch::Take {
            // On a worker: only what is copied here.
            return [this, read = access::AccessList::Read(file)](bool asked) { Take(read, asked); };
          },
          [this](const std::string& directory, const std::string& why) {
            log_(Severity::kWarn, LogTopic::kServer,
                 "cannot watch " + directory + " (" + why +
                     "); the access file there is looked at every few seconds instead",
                 {{"reason", why}});
          },
          options) {}

void AccessFileWatch::PutInForce(AccessListPtr list) {
  if (list == nullptr) return;
  in_force_ = std::move(list);
  apply_(in_force_);
  Tell("");
}

void AccessFileWatch::Start(uv_loop_t* loop) {
  if (in_force_ != nullptr) watch_.Start(loop);
}

void AccessFileWatch::Take(const Result<AccessListPtr>& read, bool asked) {
  const std::string trouble = read.ok() ? "" : read.status().message();
  const bool told = std::exchange(trouble_, trouble) == trouble;
  if (!read.ok()) {
    if (told && !asked) return;
    return log_(Severity::kError, LogTopic::kServer,
                "access file: " + trouble + "; the principals of before stay",
                {{"file", file_}, {"reason", trouble}});
  }
  // Comments alone change nobody's rights. An operator who asked, or was told of a fault, is told.
  const bool same = (*read)->entries() == in_force_->entries();
  if (same && told && !asked) return;
  in_force_ = *read;
  if (!same) apply_(in_force_);
  Tell(same ? ", as before" : "");
}

void AccessFileWatch::Tell(const std::string& more) {
  log_(Severity::kInfo, LogTopic::kAct,
       "access file " + file_ + ": " + Counted(in_force_->entries().size(), "principal") + more,
       {{"file", file_}});
}

}  // namespace nowcalls::server
