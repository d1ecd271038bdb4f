// The man pages and the completion know what the programs' --help says.
#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "support/process.h"
#include "test_paths.h"

namespace nowcalls::testing {
namespace {

struct Help {
  std::vector<std::string> options;
  std::vector<std::string> subcommands;
};

Help HelpOf(std::vector<std::string> words) {
  words[0] = ProductBinary(words[0]);
  words.emplace_back("--help");
  const Finished done = RunProgram(words);
  REQUIRE(done.exit_code == 0);
  Help help;
  bool in_subcommands = false;
  std::istringstream lines(done.out);
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line[0] != ' ') in_subcommands = line == "Subcommands:";
    if (line.size() < 3 || line.substr(0, 2) != "  " || line[2] == ' ') continue;
    const std::string word = line.substr(2, line.find_first_of(" ,", 2) - 2);
    const size_t option = line.find("--");
    if (in_subcommands) {
      help.subcommands.push_back(word);
    } else if (word[0] == '-' && option < 6) {
      help.options.push_back(line.substr(option, line.find_first_of(" [", option) - option));
    }
  }
  return help;
}

// As roff has it.
std::string Escaped(const std::string& text) {
  std::string escaped;
  for (const char character : text)
    escaped += (character == '-' ? "\\" : "") + std::string(1, character);
  return escaped;
}

void CheckPage(const std::string& page, const std::vector<std::string>& words) {
  const Help help = HelpOf(words);
  CHECK(help.options.size() + help.subcommands.size() > 0);
  for (const std::string& option : help.options) {
    const bool named =
        Contains(page, ".B " + Escaped(option)) || Contains(page, ".B \\-h," + Escaped(option));
    CHECK_MESSAGE(named, words.back(), " ", option);
  }
  for (const std::string& subcommand : help.subcommands) {
    std::vector<std::string> longer = words;
    longer.push_back(subcommand);
    std::string heading;
    for (size_t i = 1; i < longer.size(); ++i) heading += (i > 1 ? " " : "") + longer[i];
    const bool has_own = HelpOf(longer).subcommands.empty();
    if (has_own) CHECK_MESSAGE(Contains(page, ".SS " + Escaped(heading) + "\n"), heading);
    CheckPage(page, longer);
  }
}

std::string Complete(const std::vector<std::string>& words) {
  std::string array;
  for (const std::string& word : words) array += "'" + word + "' ";
  const std::string script = "PATH=" NOWCALLS_BIN_DIR ":$PATH; source " NOWCALLS_SOURCE_DIR
                             "/tools/completion/nowcalls.bash; COMP_WORDS=(" +
                             array + "); COMP_CWORD=" + std::to_string(words.size() - 1) +
                             "; _nowcalls; echo \"${COMPREPLY[@]}\"";
  return RunProgram({"/bin/bash", "-c", script}).out;
}

}  // namespace

TEST_CASE("each option and subcommand of --help is in the man page") {
  for (const std::string program :
       {"nowcalls", "nowcalls-admin", "nowcalls-bench", "nowcalls-server"}) {
    const Finished page = RunProgram({ProductBinary(program), "--help=man"});
    REQUIRE(page.exit_code == 0);
    CHECK(page.out.starts_with(".TH " + Escaped(program)));
    CheckPage(page.out, {program});
  }
}

TEST_CASE("bash completes commands and options, and nothing of exec's own command") {
  CHECK(Complete({"nowcalls", "ex"}) == "exec\n");
  CHECK(Complete({"nowcalls", "exec", "--on"}) == "--on-lost\n");
  CHECK(Complete({"nowcalls", "exec", "--flow", "7", "--", "ma"}) == "\n");
  CHECK(Complete({"nowcalls", "exec", "--on-lost", ""}) == "ignore term kill\n");
  CHECK(Complete({"nowcalls", "exec", "--quiet", "--fa"}) == "--fallback\n");
  CHECK(Complete({"nowcalls-server", "--config", "--"}) == "\n");
  CHECK(Complete({"nowcalls-admin", "rules", "lo"}) == "load\n");
  CHECK(Complete({"nowcalls-admin", "rules", "load", "--name"}) == "--namespace\n");
  CHECK(Complete({"nowcalls-server", "--data"}) == "--data-dir\n");
  CHECK(Complete({"nowcalls-bench", "--fl"}) == "--flows --flow-distribution\n");
}

}  // namespace nowcalls::testing
