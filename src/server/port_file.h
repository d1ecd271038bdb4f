// PortFile: the file that tells scripts the port of a server that serves.
//
// Thread: one at a time. The file must not name the port of a server that does not serve yet, nor,
// for longer than can be helped, of a server that is gone. So a server that holds the ledger's lock
// and the address removes the file of an earlier server before it touches the ledger, and its own
// file before it gives the lock up. A server that is refused lock or address leaves the file alone:
// it may belong to the server that holds them.
//
// The path is the operator's and may be mistaken. Only what a server may have left there is ever
// replaced or removed: a regular file with a port in it, or with nothing. Symbolic links are not
// followed. Nothing is written into a directory that is a ledger.
#ifndef NOWCALLS_SERVER_PORT_FILE_H_
#define NOWCALLS_SERVER_PORT_FILE_H_

#include <cstdint>
#include <string>
#include <utility>

#include "nowcalls/status.h"

namespace nowcalls::server {

class PortFile {
 public:
  // An empty path: no file, all calls succeed.
  explicit PortFile(std::string path) : path_(std::move(path)) {}
  ~PortFile() { Remove(); }
  PortFile(const PortFile&) = delete;
  PortFile& operator=(const PortFile&) = delete;

  // Removes an old file and finds out whether a new one can be written. kInvalidArgument: there is
  // something else at the path; it is left as it is. kIoError.
  Status Prepare();
  // Errors as those of Prepare. A reader sees all of the file or none.
  Status Write(uint16_t port);
  // kInvalidArgument: what a client wants to make at `path` would have the name of the port file,
  // or of the one it is made from, and so be in the way of the next server. Any thread.
  Status CheckIsNot(const std::string& path) const;
  // What Write wrote, unless another server has put its own there since.
  void Remove();

 private:
  std::string FreshPath() const { return path_ + ".new"; }
  // The empty file from which ours is made.
  Result<int> OpenFresh() const;
  bool IsOurs() const;

  const std::string path_;
  std::string text_;  // What Write wrote.
  int fd_ = -1;       // Of that file. Kept open, so that no other file can get its inode.
};

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_PORT_FILE_H_
