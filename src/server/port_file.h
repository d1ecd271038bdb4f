// PortFile: tells scripts the port of a server that serves.
//
// Thread: one at a time. Order: Prepare with the ledger's lock and the address, before the ledger
// is touched; Write when the server serves; Remove before the lock is given up. Locked (flock)
// while its server lives. Replaces and removes only a regular file, not a link, that is empty or
// has a port.
#ifndef NOWCALLS_SERVER_PORT_FILE_H_
#define NOWCALLS_SERVER_PORT_FILE_H_

#include <cstdint>
#include <string>
#include <utility>

#include "nowcalls/status.h"

namespace nowcalls::server {

class PortFile {
 public:
  // Empty path: no file, all calls succeed.
  explicit PortFile(std::string path) : path_(std::move(path)) {}
  ~PortFile() { Remove(); }
  PortFile(const PortFile&) = delete;
  PortFile& operator=(const PortFile&) = delete;

  // Removes an old file, and tests a new one. kInvalidArgument: something else is there, a living
  // server's file, or a ledger's directory. kIoError.
  Status Prepare();
  // Errors as of Prepare. Readers see all of the file or none.
  Status Write(uint16_t port);
  // Any thread. kInvalidArgument: `path` has the name of the port file or of its precursor.
  Status CheckIsNot(const std::string& path) const;
  // Removes Write's file, unless another server replaced it.
  void Remove();

 private:
  std::string FreshPath() const { return path_ + ".new"; }
  Result<int> OpenFresh() const;
  bool IsOurs() const;

  const std::string path_;
  std::string text_;  // What Write wrote.
  int fd_ = -1;       // Of that file. Kept open, so that no other file can get its inode.
};

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_PORT_FILE_H_
