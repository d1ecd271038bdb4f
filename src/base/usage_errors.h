// Usage errors of command lines: the first word that does not fit, and what there is instead.
//
// Thread: any.
#ifndef NOWCALLS_BASE_USAGE_ERRORS_H_
#define NOWCALLS_BASE_USAGE_ERRORS_H_

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/near_name.h"
#include "base/text.h"

namespace nowcalls {

inline constexpr size_t kHelpColumns = 80;

inline const CLI::App& DeepestCommand(const CLI::App& app) {
  const CLI::App* deepest = &app;
  while (!deepest->get_subcommands().empty()) deepest = deepest->get_subcommands().front();
  return *deepest;
}

// "nowcalls-admin rules load".
inline std::string CommandPath(const CLI::App& app) {
  std::string path = app.get_name();
  for (const CLI::App* at = &app; !at->get_subcommands().empty();) {
    at = at->get_subcommands().front();
    path += " " + at->get_name();
  }
  return path;
}

inline std::vector<std::string> CommandNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands(nullptr)) names.push_back(command->get_name());
  return names;
}

inline std::string CommandsInstead(const CLI::App& app, std::string_view wrong) {
  const std::vector<std::string> names = CommandNames(app);
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "; there are " : ", ") + name;
  return list + DidYouMean(wrong, names);
}

inline bool IsBelow(const CLI::App& app, const std::string& option) {
  const auto commands = app.get_subcommands(nullptr);
  return std::any_of(commands.begin(), commands.end(), [&](const CLI::App* command) {
    return command->get_option_no_throw(option) != nullptr || IsBelow(*command, option);
  });
}

// May explain an unknown option better; empty: it does not.
using OptionHint = std::function<std::string(const std::string& option)>;

inline std::string ExplainUnexpected(const CLI::App& app, const std::string& word,
                                     const OptionHint& hint) {
  const CLI::App& command = DeepestCommand(app);
  const bool takes_command = !command.get_subcommands(nullptr).empty();
  if (!word.starts_with("-")) {
    return Quoted(word) + (takes_command ? " is not a command" + CommandsInstead(command, word)
                                         : " is one argument too many");
  }
  const std::string option = word.substr(0, word.find('='));
  const bool command_missing = command.get_require_subcommand_min() > 0;
  if ((command_missing && IsBelow(command, option)) ||
      command.get_option_no_throw(option) != nullptr) {
    return option + " belongs behind the command: " + CommandPath(app) +
           (command_missing ? " COMMAND " : " ") + option + " ...";
  }
  if (std::string better = hint(option); !better.empty()) return better;
  std::vector<std::string> names;
  for (const CLI::Option* known : command.get_options()) {
    for (const std::string& name : known->get_lnames()) names.push_back("--" + name);
  }
  return Quoted(option) + " is no option of '" + CommandPath(app) + "'" + DidYouMean(option, names);
}

// After a parse that ended with `error`: one sentence without a full stop.
inline std::string ExplainUsage(const CLI::App& app, const CLI::ParseError& error,
                                const OptionHint& hint) {
  const bool required = dynamic_cast<const CLI::RequiredError*>(&error) != nullptr;
  const bool extras = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr;
  const std::vector<std::string> unexpected = app.remaining(/*recurse=*/true);
  if ((required || extras) && !unexpected.empty()) {
    return ExplainUnexpected(app, unexpected.front(), hint);
  }
  const CLI::App& command = DeepestCommand(app);
  if (required && command.get_require_subcommand_min() > 0) {
    return "a command is missing" + CommandsInstead(command, "");
  }
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) == nullptr) return error.what();
  const std::string_view text = error.what();
  const std::string option(text.substr(0, text.find(':')));
  return option + (text.ends_with("missing") ? " needs a value" : " is given more than once");
}

}  // namespace nowcalls

#endif  // NOWCALLS_BASE_USAGE_ERRORS_H_
