// PortFile: the file that tells scripts the port of a server that serves.
//
// Thread: one at a time. It must never name the port of a server that is gone or of one that does
// not serve yet, so whoever holds the lock of the ledger removes what an earlier server left behind
// before it does anything else, and removes its own before it gives the lock up.
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
