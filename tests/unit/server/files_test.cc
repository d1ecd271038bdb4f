// The operator's small files: written whole or not at all, and the port file's rules.
#include "server/files.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "server/port_file.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace nowcalls::server {
namespace {

namespace fs = std::filesystem;
using testing::ReadFileToString;
using testing::TempDir;
using testing::WriteStringToFile;

TEST_CASE("a port file of before is removed before the new port is known") {
  const TempDir dir;
  const std::string path = dir.Sub("port");
  WriteStringToFile(path, "1\n");
  PortFile file(path);
  REQUIRE(file.Prepare().ok());
  CHECK(fs::is_empty(dir.path()));
  REQUIRE(file.Write(4711).ok());
  CHECK(ReadFileToString(path) == "4711\n");
  file.Remove();
  CHECK(fs::is_empty(dir.path()));
}

TEST_CASE("a port file that this server did not write is not removed at its end") {
  const TempDir dir;
  const std::string path = dir.Sub("port");
  {
    const PortFile refused(path);
    WriteStringToFile(path, "4711\n");
  }
  CHECK(ReadFileToString(path) == "4711\n");
  {
    PortFile ended(path);
    REQUIRE(ended.Write(1).ok());
    ended.Remove();
    // From here on it belongs to the next server.
    WriteStringToFile(path, "4712\n");
  }
  CHECK(ReadFileToString(path) == "4712\n");
}

TEST_CASE("a port file that cannot be written is told before it is needed") {
  const TempDir dir;
  const Status no_dir = PortFile(dir.Sub("absent/port")).Prepare();
  CHECK(no_dir.code() == StatusCode::kIoError);
  CHECK(no_dir.message() ==
        "port file: cannot create " + dir.Sub("absent/port.new") + ": No such file or directory");
  fs::create_directory(dir.Sub("port"));
  const Status is_dir = PortFile(dir.Sub("port")).Prepare();
  CHECK(is_dir.code() == StatusCode::kIoError);
  CHECK(is_dir.message().starts_with("port file: cannot remove " + dir.Sub("port") + ": "));
  CHECK(fs::is_directory(dir.Sub("port")));
}

TEST_CASE("without a port file nothing is done") {
  PortFile none("");
  CHECK(none.Prepare().ok());
  CHECK(none.Write(1).ok());
}

}  // namespace
}  // namespace nowcalls::server
