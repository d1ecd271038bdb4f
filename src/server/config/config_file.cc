#include "server/config/config_file.h"

#include <toml++/toml.h>

#include <optional>
#include <utility>

#include "base/near_name.h"
#include "base/text.h"
#include "base/toml_shape.h"
#include "server/config/settings.h"

namespace nowcalls::server {
namespace {

std::string_view ExpectedType(SettingKind kind) {
  switch (kind) {
    case SettingKind::kText: return "a string";
    case SettingKind::kInteger: return "an integer";
    case SettingKind::kNumber: return "a number";
    case SettingKind::kSwitch: return "true or false";
    case SettingKind::kList: return "a string or an array of strings";
    case SettingKind::kTable: return "a table of integers";
  }
  return "";
}

std::string_view TypeName(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::table: return "a table";
    case toml::node_type::array: return "an array";
    case toml::node_type::string: return "a string";
    case toml::node_type::integer: return "an integer";
    case toml::node_type::floating_point: return "a float";
    case toml::node_type::boolean: return "a boolean";
    default: return "a date or time";
  }
}

std::optional<std::vector<std::string>> ArrayText(const toml::array& array) {
  std::vector<std::string> values;
  for (const toml::node& element : array) {
    if (!element.is_string()) return std::nullopt;
    values.push_back(element.as_string()->get());
  }
  return values;
}

// Each entry as NAME=N, the form of a flag.
std::optional<std::vector<std::string>> TableText(const toml::table& table) {
  std::vector<std::string> values;
  for (const auto& [key, node] : table) {
    if (!node.is_integer()) return std::nullopt;
    values.push_back(std::string(key.str()) + "=" + std::to_string(node.as_integer()->get()));
  }
  return values;
}

// In an array, or a table of integers, the element that has the wrong type.
std::string GotText(const toml::node& node, SettingKind kind) {
  if (kind == SettingKind::kTable && node.is_table()) {
    for (const auto& [key, value] : *node.as_table()) {
      if (value.is_integer()) continue;
      return ", but " + std::string(key.str()) + " is " + std::string(TypeName(value));
    }
  }
  if (!node.is_array()) return ", got " + std::string(TypeName(node));
  const toml::array& array = *node.as_array();
  for (size_t i = 0; i < array.size(); ++i) {
    if (array[i].is_string()) continue;
    return ", but element " + std::to_string(i + 1) + " is " + std::string(TypeName(array[i]));
  }
  return ", got an array";
}

std::string UnknownKey(std::string_view key) {
  std::vector<std::string> names;
  for (const Setting& setting : Settings()) names.push_back(setting.toml_key());
  return "unknown key " + Quoted(key) + DidYouMean(key, names);
}

// The node as texts that a setting of this kind parses; nothing if it has another type.
std::optional<std::vector<std::string>> TextOf(const toml::node& node, SettingKind kind) {
  using Texts = std::vector<std::string>;
  switch (kind) {
    case SettingKind::kText:
      if (node.is_string()) return Texts{node.as_string()->get()};
      return std::nullopt;
    case SettingKind::kNumber:
      if (node.is_floating_point()) return Texts{NumberText(node.as_floating_point()->get())};
      [[fallthrough]];
    case SettingKind::kInteger:
      if (node.is_integer()) return Texts{std::to_string(node.as_integer()->get())};
      return std::nullopt;
    case SettingKind::kSwitch:
      if (node.is_boolean()) return Texts{node.as_boolean()->get() ? "true" : "false"};
      return std::nullopt;
    case SettingKind::kList:
      if (node.is_array()) return ArrayText(*node.as_array());
      // A list of one may be written as its element.
      if (node.is_string()) return Texts{node.as_string()->get()};
      return std::nullopt;
    case SettingKind::kTable:
      if (node.is_table()) return TableText(*node.as_table());
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

Result<std::vector<FileValue>> ParseConfigFile(std::string_view name, std::string_view text) {
  const auto at = [&](uint32_t line) {
    return std::string(name) + ":" + std::to_string(line) + ": ";
  };
  // 1. Parse, guarded against deep nesting.
  NOWCALLS_RETURN_IF_ERROR(CheckTomlShape(text, "setting").WithContext(std::string(name)));
  toml::table table;
  try {
    table = toml::parse(text, name);
  } catch (const toml::parse_error& error) {
    return Status::InvalidArgument(at(error.source().begin.line) +
                                   "not valid TOML: " + std::string(error.description()));
  }
  // 2. Each key to its setting; the first mistake ends it with its line.
  std::vector<FileValue> values;
  for (const auto& [key, node] : table) {
    const uint32_t line = key.source().begin.line;
    const int setting = FindTomlKey(key.str());
    if (setting < 0) {
      return Status::InvalidArgument(at(line) + UnknownKey(key.str()));
    }
    const SettingKind kind = Settings()[static_cast<size_t>(setting)].kind;
    auto texts = TextOf(node, kind);
    if (!texts.has_value()) {
      return Status::InvalidArgument(at(line) + std::string(key.str()) + " must be " +
                                     std::string(ExpectedType(kind)) + GotText(node, kind));
    }
    // C strings of the system would end at a U+0000: another file than the operator named.
    for (const std::string& value : *texts) {
      if (value.find('\0') == std::string::npos) continue;
      return Status::InvalidArgument(at(line) + std::string(key.str()) + " has a U+0000");
    }
    values.push_back({static_cast<size_t>(setting), *std::move(texts), static_cast<int>(line)});
  }
  return values;
}

}  // namespace nowcalls::server
