#include "server/config/setting_values.h"

#include <utility>

#include "base/text.h"

namespace nowcalls::server {

Status MustBe(std::string_view what, std::string_view got) {
  return Status::InvalidArgument("must be " + std::string(what) + ", got " + Quoted(got));
}

std::string ListText(const std::vector<std::string>& values) {
  std::string text;
  for (const std::string& value : values) text += (text.empty() ? "" : ",") + value;
  return text;
}

Status ParseLogEnds(const std::vector<std::string>& values, ServerConfig* config) {
  core::LogEnds ends;
  for (const std::string& value : values) {
    int64_t flow = 0;
    if (value == "all") {
      ends.all = true;
      // Digits alone are a flow id, also where a namespace has such a name.
    } else if (!value.empty() && value.find_first_not_of("0123456789") == std::string::npos) {
      if (!ParseNumber(value, &flow) || flow < 1)
        return MustBe("a flow id of 1 or more, a namespace or all", value);
      ends.flows.insert(flow);
    } else {
      NOWCALLS_RETURN_IF_ERROR(
          CheckNamespace(value).WithContext(Quoted(value) + ": the namespace"));
      ends.namespaces.insert(value);
    }
  }
  config->core.log_ends = std::move(ends);
  return Status::Ok();
}

std::string ShowLogEnds(const ServerConfig& config) {
  const core::LogEnds& ends = config.core.log_ends;
  std::string text = ends.all ? "all" : "";
  const auto add = [&](const std::string& value) { text += (text.empty() ? "" : ",") + value; };
  for (const int64_t flow : ends.flows) add(std::to_string(flow));
  for (const std::string& name_space : ends.namespaces) add(name_space);
  return text;
}

Status ParseNamespaceGuards(const std::vector<std::string>& values, ServerConfig* config) {
  core::NamespaceGuards::ByName guards;
  for (const std::string& value : values) {
    // The last "=" splits: a name may have one.
    const size_t equals = value.rfind('=');
    int64_t guard = 0;
    if (equals == std::string::npos || !ParseNumber(value.substr(equals + 1), &guard) ||
        guard < 0 || guard > kGuardMax) {
      return MustBe("NAMESPACE=N with N from 0 to " + std::to_string(kGuardMax), value);
    }
    const std::string name_space = value.substr(0, equals);
    NOWCALLS_RETURN_IF_ERROR(
        CheckNamespace(name_space).WithContext(Quoted(value) + ": the namespace"));
    if (!guards.emplace(name_space, static_cast<uint32_t>(guard)).second) {
      return Status::InvalidArgument("names namespace " + Quoted(name_space) + " twice");
    }
  }
  config->core.namespace_guards = std::move(guards);
  return Status::Ok();
}

std::string ShowNamespaceGuards(const ServerConfig& config) {
  std::string text;
  for (const auto& [name_space, guard] : config.core.namespace_guards) {
    text += (text.empty() ? "" : ",") + name_space + "=" + std::to_string(guard);
  }
  return text;
}

}  // namespace nowcalls::server
