// AccessFileWatch: the access file while the server runs. What is wrong keeps the list of before.
//
// Thread: loop.
#ifndef NOWCALLS_SERVER_SECURITY_ACCESS_FILE_WATCH_H_
#define NOWCALLS_SERVER_SECURITY_ACCESS_FILE_WATCH_H_

#include <uv.h>

#include <functional>
#include <memory>
#include <string>

#include "access/access_list.h"
#include "base/log_record.h"
#include "nowcalls/status.h"
#include "server/config/config.h"
#include "server/files/file_watch.h"
#include "server/log/log_line.h"

namespace nowcalls::server {

using AccessListPtr = std::shared_ptr<const access::AccessList>;

// nullptr: no access file is configured. kInvalidArgument, kIoError: as AccessList::Read.
Result<AccessListPtr> ReadAccess(const ServerConfig& config);

class AccessFileWatch {
 public:
  using Apply = std::function<void(const AccessListPtr& list)>;
  using Log = std::function<void(Severity level, LogTopic topic, const std::string& text,
                                 const LogFields& fields)>;

  // An empty `file` is not watched.
  AccessFileWatch(const std::string& file, Apply apply, Log log,
                  const FileWatchOptions& options = {});

  // The list of the start; nullptr only without a file.
  void PutInForce(AccessListPtr list);
  // REQUIRES: PutInForce was called.
  void Start(uv_loop_t* loop);
  // Changed or not; logs the result.
  void ReadNow() { watch_.ReadNow(); }
  void Stop() { watch_.Stop(); }
  bool idle() const { return watch_.idle(); }

 private:
  void Take(const Result<AccessListPtr>& read, bool asked);
  void Tell(const std::string& more);

  const std::string file_;
  const Apply apply_;
  const Log log_;
  AccessListPtr in_force_;
  std::string trouble_;  // As logged; empty: none.
  FileWatch watch_;
};

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_SECURITY_ACCESS_FILE_WATCH_H_
