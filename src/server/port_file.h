// PortFile: the file that tells scripts the port of a server that serves.
//
// Thread: one at a time. It must name neither the port of a server that does not serve yet nor, for
// longer than can be helped, of one that is gone. So whoever has the lock of the ledger and the
// address removes what an earlier server left behind, before it touches the ledger, and removes its
// own before it gives the lock up. Who is refused lock or address leaves the file alone: it may be
// that of the server that has them.
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

  // Removes an old file and finds out whether a new one can be written. kIoError.
  Status Prepare();
  Status Write(uint16_t port);
  // What Write wrote.
  void Remove();

 private:
  const std::string path_;
  bool written_ = false;
};

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_PORT_FILE_H_
