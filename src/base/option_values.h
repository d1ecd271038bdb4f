// Checked values of command lines.
//
// Thread: any. A wrong value throws a usage error of CLI11 that names the option.
#ifndef NOWCALLS_BASE_OPTION_VALUES_H_
#define NOWCALLS_BASE_OPTION_VALUES_H_

#include <CLI/CLI.hpp>
#include <charconv>
#include <functional>
#include <string>
#include <string_view>
#include <system_error>

#include "base/text.h"
#include "nowcalls/status.h"

namespace nowcalls {

inline void Require(const std::string& option, const Status& status) {
  if (!status.ok()) throw CLI::ValidationError(option, status.message());
}

template <typename T>
T RequireValue(const std::string& option, const Result<T>& result) {
  Require(option, result.status());
  return *result;
}

template <typename T>
Result<T> ParseInteger(std::string_view text, T min, T max) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < min || value > max) {
    return Status::InvalidArgument(Quoted(text) + " is not a whole number from " +
                                   std::to_string(min) + " to " + std::to_string(max));
  }
  return value;
}

template <typename T>
CLI::Option* AddInteger(CLI::App* app, const std::string& name, const std::string& help, T min,
                        T max, const std::function<void(T)>& set) {
  return app->add_option_function<std::string>(
      name,
      [name, min, max, set](const std::string& text) {
        set(RequireValue(name, ParseInteger<T>(text, min, max)));
      },
      help);
}

}  // namespace nowcalls

#endif  // NOWCALLS_BASE_OPTION_VALUES_H_
