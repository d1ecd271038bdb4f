// Small files of the operator: configuration and rules.
//
// Thread: any; blocking, so not the loop.
#ifndef NOWCALLS_SERVER_CONFIG_FILES_H_
#define NOWCALLS_SERVER_CONFIG_FILES_H_

#include <cstddef>
#include <string>

#include "nowcalls/status.h"

namespace nowcalls::server {

// Whether both are one name in one directory, however spelled. Empty: false.
bool IsSameName(std::string a, std::string b);

// kIoError: names file and reason, also of a pipe that brings nothing for 2 s. kResourceExhausted:
// more than `bytes_max`.
Result<std::string> ReadWholeFile(const std::string& path, size_t bytes_max);

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_CONFIG_FILES_H_
