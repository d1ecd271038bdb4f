// Configuration. The first byte says what the rest is: a TOML file; or flags, a line each, and
// behind a zero byte variables of the environment as NAME=VALUE, a line each.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "fuzz/targets.h"
#include "server/config/config.h"
#include "server/config/config_file.h"
#include "server/config/settings.h"

namespace nowcalls::fuzz {
namespace {

std::vector<std::string> Lines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

// A file that is named would be read, whichever it is.
bool NamesFile(const std::string& line) {
  return line.find("config") != std::string::npos || line.find("CONFIG") != std::string::npos ||
         line.starts_with("--c") || line.starts_with("-c");
}

void File(std::string_view text) {
  const auto values = server::ParseConfigFile("fuzz.toml", text);
  if (!values.ok()) {
    REQUIRE(values.status().code() == StatusCode::kInvalidArgument);
    REQUIRE(values.status().message().starts_with("fuzz.toml:"));
    return;
  }
  for (const server::FileValue& value : *values) {
    REQUIRE(value.setting < server::Settings().size());
    REQUIRE(value.line > 0);
  }
}

void Flags(std::string_view input) {
  const size_t zero = std::min(input.find('\0'), input.size());
  std::vector<std::string> arguments = Lines(input.substr(0, zero));
  std::vector<std::string> variables = Lines(input.substr(std::min(zero + 1, input.size())));
  std::erase_if(arguments, NamesFile);
  std::erase_if(variables, NamesFile);
  std::vector<const char*> argv = {"nowcalls-server"};
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());
  server::Environment environment;
  for (const std::string& variable : variables) {
    const size_t equals = variable.find('=');
    if (equals == std::string::npos) continue;
    environment["NOWCALLS_" + variable.substr(0, equals)] = variable.substr(equals + 1);
  }
  const auto read = server::ReadInvocation(static_cast<int>(argv.size()), argv.data(), environment);
  if (!read.ok()) {
    REQUIRE(read.status().code() == StatusCode::kInvalidArgument);
    REQUIRE_FALSE(read.status().message().empty());
    return;
  }
  if (read->command != server::Command::kServe) return;
  REQUIRE(read->origins.size() == server::Settings().size());
  REQUIRE_FALSE(server::DescribeSettings(*read).empty());
  REQUIRE_FALSE(read->config.listen.empty());
  REQUIRE(read->config.core.limits.connections_max > 0);
}

}  // namespace

void FuzzConfig(std::string_view input) {
  if (input.empty()) return;
  const bool file = input.front() % 2 == 0;
  input.remove_prefix(1);
  file ? File(input) : Flags(input);
}

}  // namespace nowcalls::fuzz
