#include "client/flow_text.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <system_error>

#include "base/limits.h"
#include "base/text.h"
#include "nowcalls/flow_name.h"

namespace nowcalls::client {

Result<FlowId> ParseFlow(std::string_view text) {
  // A sign tells of a number that is none, not of a name.
  const std::string_view digits = text.starts_with('-') ? text.substr(1) : text;
  const bool is_number = !digits.empty() && std::all_of(digits.begin(), digits.end(), [](char c) {
    return c >= '0' && c <= '9';
  });
  if (!is_number) {
    const Status checked = CheckName(text, kResourceBytesMax);
    if (!checked.ok()) return Status::InvalidArgument("a resource " + checked.message());
    return FlowNamed(text);
  }
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 1) {
    return Status::InvalidArgument(Quoted(text) + " is not a whole number from 1 to " +
                                   std::to_string(INT64_MAX));
  }
  return FlowId(number);
}

std::string FlowWord(FlowId flow) {
  const std::string_view name = NameOfFlow(flow);
  return name.empty() ? std::to_string(flow.value) : std::string(name);
}

std::string FlowText(FlowId flow) {
  const std::string_view name = NameOfFlow(flow);
  return "flow " + (name.empty() ? std::to_string(flow.value) : Quoted(name));
}

}  // namespace nowcalls::client
