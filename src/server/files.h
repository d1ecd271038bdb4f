// Small files of the operator: configuration, rules, the port file.
//
// Thread: any; blocking, for use before the server serves and after.
#ifndef NOWCALLS_SERVER_FILES_H_
#define NOWCALLS_SERVER_FILES_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "nowcalls/status.h"

namespace nowcalls::server {

// kIoError names the file and the reason; a file of more than `bytes_max` is kResourceExhausted.
Result<std::string> ReadWholeFile(const std::string& path, size_t bytes_max);

// Ok, too, when there is no such file.
Status RemoveFile(const std::string& path);

// Whether ReplaceFile could write there now; leaves nothing behind.
Status CheckReplaceable(const std::string& path);

// Writes a new file beside `path` and renames it, so that a reader sees all of it or none.
Status ReplaceFile(const std::string& path, std::string_view text);

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_FILES_H_
