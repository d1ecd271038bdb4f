// The systemd unit that is shipped: data/deploy/nowcalls.service.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
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
  CHECK(unit.Value("Service.DynamicUser") == "yes");
  CHECK(unit.Value("Service.StateDirectory") == "nowcalls");
  CHECK(unit.Value("Service.ProtectSystem") == "strict");
  CHECK(unit.Value("Service.NoNewPrivileges") == "yes");
  CHECK(unit.Value("Service.CapabilityBoundingSet").empty());
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
  // It wants to see the program.
  std::string text = ReadFileToString(kUnitFile);
  const std::string program = "/usr/local/bin/nowcalls-server";
  text.replace(text.find(program), program.size(), "/bin/true");
  WriteStringToFile(dir.Sub("nowcalls.service"), text);
  CHECK_MESSAGE(Runs("systemd-analyze verify --man=no " + dir.Sub("nowcalls.service"), dir, &said),
                said);
  CHECK_MESSAGE(said.empty(), said);
  // In tenths: 2.0.
  CHECK_MESSAGE(
      Runs("systemd-analyze security --offline=true --threshold=20 " + kUnitFile, dir, &said),
      said);
}

}  // namespace
}  // namespace nowcalls::server
