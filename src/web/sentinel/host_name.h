// The name of this machine.
//
// Thread: any.
#ifndef NOWCALLS_WEB_SENTINEL_HOST_NAME_H_
#define NOWCALLS_WEB_SENTINEL_HOST_NAME_H_

#include <unistd.h>

#include <string>

namespace nowcalls::web {

// "localhost" where the system does not tell it.
inline std::string HostName() {
  char name[256] = "";
  return gethostname(name, sizeof(name) - 1) == 0 && name[0] != '\0' ? name : "localhost";
}

}  // namespace nowcalls::web

#endif  // NOWCALLS_WEB_SENTINEL_HOST_NAME_H_
