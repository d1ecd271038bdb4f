// Values of options that only this tool has.
//
// Thread: any. Errors are kInvalidArgument and complete a sentence that begins with the option.
#ifndef NOWCALLS_ADMIN_ARGUMENT_CHECKS_H_
#define NOWCALLS_ADMIN_ARGUMENT_CHECKS_H_

#include <cstddef>
#include <string_view>

#include "admin/arguments.h"
#include "nowcalls/status.h"

namespace nowcalls::admin {

Result<Format> ParseFormat(std::string_view text);

// 1..`bytes_max` bytes of printable UTF-8.
Status CheckText(std::string_view text, size_t bytes_max);

// A reason that is kept in the history.
Status CheckEndReason(std::string_view text);

}  // namespace nowcalls::admin

#endif  // NOWCALLS_ADMIN_ARGUMENT_CHECKS_H_
