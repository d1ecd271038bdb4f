// Small files of the operator: configuration and rules.
//
// Thread: any; blocking, so not the loop.
#ifndef NOWCALLS_SERVER_FILES_H_
#define NOWCALLS_SERVER_FILES_H_

#include <cstddef>
#include <string>

#include "nowcalls/status.h"

namespace nowcalls::server {

// Whether both are the same name in the same directory, whatever is there and however they spell
// it. False for an empty one.
bool IsSameName(std::string a, std::string b);

// kIoError names the file and the reason. A pipe is read to its end, and refused when nothing comes
// from it for two seconds. A file of more than `bytes_max` is kResourceExhausted.
Result<std::string> ReadWholeFile(const std::string& path, size_t bytes_max);

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_FILES_H_
