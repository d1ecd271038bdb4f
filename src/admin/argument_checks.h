// Values of options that only this tool has, and options of several commands.
//
// Thread: any. Errors are kInvalidArgument and complete a sentence that begins with the option.
#ifndef NOWCALLS_ADMIN_ARGUMENT_CHECKS_H_
#define NOWCALLS_ADMIN_ARGUMENT_CHECKS_H_

#include <CLI/CLI.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "admin/arguments.h"
#include "nowcalls/status.h"

namespace nowcalls::admin {

Result<Format> ParseFormat(std::string_view text);

// 1..`bytes_max` bytes of printable UTF-8.
Status CheckText(std::string_view text, size_t bytes_max);

// A reason that is kept in the history.
Status CheckEndReason(std::string_view text);

CLI::Option* AddPath(CLI::App* app, const std::string& name, const std::string& help,
                     std::string* path);
// A duration, e.g. 500ms, 10s, 5m, 2h.
void AddAge(CLI::App* app, const std::string& name, const std::string& help,
            const std::function<void(int64_t ms)>& set);

}  // namespace nowcalls::admin

#endif  // NOWCALLS_ADMIN_ARGUMENT_CHECKS_H_
