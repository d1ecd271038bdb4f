// The systemd units that are shipped: data/deploy/nowcalls.service and nowcalls@.service.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "support/process.h"
#include "support/temp_dir.h"
#include "test_paths.h"

namespace nowcalls::server {
namespace {

using testing::ReadFileToString;
using testing::WriteStringToFile;

const std::string kUnitFile = NOWCALLS_SOURCE_DIR "/data/deploy/nowcalls.service";
const std::string kTemplateFile = NOWCALLS_SOURCE_DIR "/data/deploy/nowcalls@.service";

struct UnitFile {
  // By "Section.Key"; a key that comes again has its values in a row.
  std::map<std::string, std::vector<std::string>> values;
  std::vector<std::string> wrong;

  std::string Value(const std::string& key) const {
    const auto found = values.find(key);
    return found == values.end() ? "absent" : found->second.back();
  }
};

UnitFile ReadUnit() {
  UnitFile unit;
  std::string section;
  std::istringstream lines(ReadFileToString(kUnitFile));
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line.front() == '#') continue;
    if (line.front() == '[') {
      section = line.substr(1, line.size() - 2);
      continue;
    }
    const size_t equals = line.find('=');
    if (equals == std::string::npos || section.empty()) {
      unit.wrong.push_back(line);
    } else {
      unit.values[section + "." + line.substr(0, equals)].push_back(line.substr(equals + 1));
    }
  }
  return unit;
}

TEST_CASE("the unit starts the server again for ever, but not where a person is needed") {
  const UnitFile unit = ReadUnit();
  CHECK(unit.wrong.empty());
  CHECK(unit.Value("Service.Restart") == "always");
  CHECK(unit.Value("Unit.StartLimitIntervalSec") == "0");
  CHECK(unit.Value("Service.RestartPreventExitStatus") == "64 65");
  CHECK(unit.Value("Service.RestartSec") == "1");
}

TEST_CASE("the unit knows when the server serves, when it hangs, and waits for its end") {
  const UnitFile unit = ReadUnit();
  CHECK(unit.Value("Service.Type") == "notify");
  CHECK(std::stoi(unit.Value("Service.WatchdogSec")) >= 30);
  CHECK(std::stoi(unit.Value("Service.TimeoutStopSec")) > 10);
  CHECK(unit.Value("Unit.After") == "network-online.target");
  CHECK(unit.Value("Unit.Wants") == "network-online.target");
  CHECK(unit.Value("Service.ExecReload") == "/bin/kill -HUP $MAINPID");
}

TEST_CASE("the unit gives the server a user of its own and one directory to write to") {
  const UnitFile unit = ReadUnit();
  CHECK(unit.Value("Service.User") == "nowcalls");
  CHECK(unit.Value("Service.StateDirectory") == "nowcalls");
  CHECK(unit.Value("Service.ProtectSystem") == "strict");
  CHECK(unit.Value("Service.NoNewPrivileges") == "yes");
  CHECK(unit.Value("Service.CapabilityBoundingSet").empty());
}

void ReplaceAll(const std::string& part, const std::string& with, std::string* text) {
  for (size_t at = 0; (at = text->find(part, at)) != std::string::npos; at += with.size()) {
    text->replace(at, part.size(), with);
  }
}

TEST_CASE("the template is the unit, with a name in what belongs to one server") {
  const auto settings = [](const std::string& file) {
    const std::string text = ReadFileToString(file);
    return text.substr(text.find("[Unit]"));
  };
  std::string expected = settings(kUnitFile);
  ReplaceAll("token server\n", "token server %i\n", &expected);
  ReplaceAll("/server.toml", "/%i.toml", &expected);
  ReplaceAll("StateDirectory=nowcalls", "StateDirectory=nowcalls-%i", &expected);
  ReplaceAll("%S/nowcalls", "%S/nowcalls-%i", &expected);
  ReplaceAll("/var/lib/nowcalls", "/var/lib/nowcalls-%i", &expected);
  CHECK(settings(kTemplateFile) == expected);
}

TEST_CASE("the manual shows the unit as it is shipped") {
  std::string shown;
  std::istringstream lines(ReadFileToString(kUnitFile));
  for (std::string line; std::getline(lines, line);) {
    shown += line.empty() ? "\n" : "    " + line + "\n";
  }
  const std::string page = ReadFileToString(NOWCALLS_SOURCE_DIR "/tools/manual/service.md");
  CHECK(page.find(shown) != std::string::npos);
}

// Whether the command ended with 0; what it said goes to `said`.
bool Runs(const std::string& command, const testing::TempDir& dir, std::string* said) {
  const std::string file = dir.Sub("said");
  const int status = std::system((command + " > " + file + " 2>&1").c_str());
  *said = ReadFileToString(file);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST_CASE("systemd finds nothing wrong with the unit, and exposes little of the machine to it") {
  if (::access("/usr/bin/systemd-analyze", X_OK) != 0) {
    MESSAGE("skipped: there is no systemd-analyze");
    return;
  }
  const testing::TempDir dir;
  std::string said;
  for (const std::string& file : {kUnitFile, kTemplateFile}) {
    // It wants to see the program.
    std::string text = ReadFileToString(file);
    ReplaceAll("ExecStart=nowcalls-server", "ExecStart=/bin/true", &text);
    const std::string copy = dir.Sub(std::filesystem::path(file).filename().string());
    WriteStringToFile(copy, text);
    CHECK_MESSAGE(Runs("systemd-analyze verify --man=no " + copy, dir, &said), said);
    CHECK_MESSAGE(said.empty(), said);
  }
  // In tenths: 2.0.
  CHECK_MESSAGE(
      Runs("systemd-analyze security --offline=true --threshold=20 " + kUnitFile, dir, &said),
      said);
}

}  // namespace
}  // namespace nowcalls::server
