#include "server/port_file.h"

#include <unistd.h>

#include "server/files.h"

namespace nowcalls::server {

Status PortFile::Prepare() {
  if (path_.empty()) return Status::Ok();
  NOWCALLS_RETURN_IF_ERROR(RemoveFile(path_).WithContext("port file"));
  return CheckReplaceable(path_).WithContext("port file");
}

Status PortFile::Write(uint16_t port) {
  if (path_.empty()) return Status::Ok();
  NOWCALLS_RETURN_IF_ERROR(
      ReplaceFile(path_, std::to_string(port) + "\n").WithContext("port file"));
  written_ = true;
  return Status::Ok();
}

void PortFile::Remove() {
  if (std::exchange(written_, false)) unlink(path_.c_str());
}

}  // namespace nowcalls::server
