// The access file: TOML with a [[principal]] for each (data/access/sample.toml).
//
// Thread: any; reading blocks. No message shows a secret or its digest.
#ifndef NOWCALLS_ACCESS_ACCESS_FILE_H_
#define NOWCALLS_ACCESS_ACCESS_FILE_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "access/access_list.h"
#include "nowcalls/status.h"

namespace nowcalls::access {

inline constexpr size_t kPrincipalNameBytesMax = 64;
inline constexpr size_t kCertificateNameBytesMax = 2048;  // As long as a SPIFFE id.

enum class Reader {
  kServer,  // Takes a file of root or of its own user only.
  kTool,
};

// kInvalidArgument names the file: missing, not to be opened, not regular, too long, writable by
// others, or of an owner that the reader does not believe. kIoError: the system does not read it.
Result<std::string> ReadAccessText(const std::string& file, Reader reader);

struct ParsedAccess {
  std::vector<Entry> entries{};         // Of them only the good, if there are problems.
  std::vector<std::string> problems{};  // "FILE:LINE: ...", by lines; at most 1,000.
};
ParsedAccess ParseAccess(std::string_view toml, const std::string& file);

// A namespace, or the beginning of its name and '*'. kInvalidArgument completes "NAME ...".
Status CheckNamespacePattern(std::string_view pattern);

}  // namespace nowcalls::access

#endif  // NOWCALLS_ACCESS_ACCESS_FILE_H_
