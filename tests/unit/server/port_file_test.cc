// The port file: what a server finds at its path, what it leaves there, and whose it is.
#include "server/port_file.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "support/process.h"
#include "support/temp_dir.h"

namespace nowcalls::server {
namespace {

namespace fs = std::filesystem;
using testing::ReadFileToString;
using testing::TempDir;
using testing::WriteStringToFile;

TEST_CASE("a port file of before is removed before the new port is known") {
  for (const char* text : {"1\n", "65535\n", "80", ""}) {
    CAPTURE(text);
    const TempDir dir;
    const std::string path = dir.Sub("port");
    WriteStringToFile(path, text);
    PortFile file(path);
    REQUIRE(file.Prepare().ok());
    CHECK(fs::is_empty(dir.path()));
    REQUIRE(file.Write(4711).ok());
    CHECK(ReadFileToString(path) == "4711\n");
    file.Remove();
    CHECK(fs::is_empty(dir.path()));
  }
}

TEST_CASE("the port file of a living server is left alone, and belongs to nobody once it is gone") {
  const TempDir dir;
  const std::string path = dir.Sub("port");
  {
    PortFile living(path);
    REQUIRE(living.Prepare().ok());
    PortFile early(path);  // Nothing is there yet when this one looks.
    REQUIRE(early.Prepare().ok());
    REQUIRE(living.Write(4711).ok());
    PortFile late(path);
    for (const Status& refused : {late.Prepare(), late.Write(80), early.Write(80)}) {
      CHECK(refused.code() == StatusCode::kInvalidArgument);
      CHECK(refused.message() ==
            "port-file: " + path + " is that of another server that runs: name another file");
    }
    early.Remove();
    late.Remove();
    CHECK(ReadFileToString(path) == "4711\n");
  }
  CHECK_FALSE(fs::exists(path));
  PortFile next(path);
  REQUIRE(next.Prepare().ok());
  CHECK(next.Write(80).ok());
}

TEST_CASE("a file that holds more than a port is neither removed nor replaced") {
  for (const char* text : {"{}", "MANIFEST-000005\n", "1234567", "80\n\n", "-1\n"}) {
    CAPTURE(text);
    const TempDir dir;
    for (const char* name : {"port", "port.new"}) {
      WriteStringToFile(dir.Sub(name), text);
      const Status status = PortFile(dir.Sub("port")).Prepare();
      CHECK(status.code() == StatusCode::kInvalidArgument);
      CHECK(status.message() == "port-file: " + dir.Sub(name) +
                                    " holds more than a port, so it is left as it is: remove it, "
                                    "or name another file");
      CHECK(ReadFileToString(dir.Sub(name)) == text);
      fs::remove(dir.Sub(name));
    }
  }
}

TEST_CASE("what is no regular file is neither removed, nor followed, nor waited for") {
  const TempDir dir;
  WriteStringToFile(dir.Sub("target"), "4711\n");
  fs::create_directory(dir.Sub("directory"));
  fs::create_symlink(dir.Sub("target"), dir.Sub("link"));
  fs::create_symlink(dir.Sub("absent"), dir.Sub("dangling"));
  REQUIRE(mkfifo(dir.Sub("pipe").c_str(), 0600) == 0);
  const struct {
    std::string name;
    std::string kind;
  } cases[] = {{"directory", "is a directory"},
               {"link", "is a symbolic link"},
               {"dangling", "is a symbolic link"},
               {"pipe", "is a pipe"}};
  for (const auto& wrong : cases) {
    CAPTURE(wrong.name);
    const std::string path = dir.Sub(wrong.name);
    PortFile file(path);
    const Status status = file.Prepare();
    CHECK(status.code() == StatusCode::kInvalidArgument);
    CHECK(status.message().starts_with("port-file: " + path + " " + wrong.kind));
    CHECK(fs::exists(fs::symlink_status(path)));
  }
  CHECK(PortFile("/dev/null").Prepare().message().starts_with("port-file: /dev/null is a device"));
  fs::create_symlink(dir.Sub("target"), dir.Sub("port.new"));
  PortFile file(dir.Sub("port"));
  CHECK(file.Prepare().code() == StatusCode::kInvalidArgument);
  CHECK(file.Write(1).code() == StatusCode::kInvalidArgument);
  CHECK(ReadFileToString(dir.Sub("target")) == "4711\n");
}

TEST_CASE("a port file is not put among the files of a ledger") {
  for (const char* file_of_ledger : {"LOCK", "CURRENT"}) {
    const TempDir dir;
    WriteStringToFile(dir.Sub(file_of_ledger), "");
    for (const char* name : {"LOCK", "CURRENT", "port"}) {
      PortFile file(dir.Sub(name));
      CHECK(file.Prepare().code() == StatusCode::kInvalidArgument);
    }
    CHECK(fs::exists(dir.Sub(file_of_ledger)));
  }
}

TEST_CASE("directories that are named like files of a ledger keep no port file away") {
  const TempDir dir;
  fs::create_directory(dir.Sub("LOCK"));
  fs::create_directory(dir.Sub("CURRENT"));
  PortFile file(dir.Sub("port"));
  CHECK(file.Prepare().ok());
  CHECK(file.Write(4711).ok());
}

TEST_CASE("a name that a port file needs is given to nobody else") {
  const TempDir dir;
  fs::create_directory(dir.Sub("other"));
  fs::create_symlink(dir.path(), dir.Sub("link"));
  const PortFile file(dir.Sub("port"));
  for (const char* taken : {"port", "port.new", "port.new//", "/other/../port.new", "link/port"}) {
    CAPTURE(taken);
    const Status refused = file.CheckIsNot(dir.Sub(taken));
    CHECK(refused.code() == StatusCode::kInvalidArgument);
    CHECK(refused.message().ends_with("port file: choose another name"));
  }
  for (const char* free : {"", "port.ne", "port.new.new", "other/port", "absent/port"}) {
    CAPTURE(free);
    CHECK(file.CheckIsNot(dir.Sub(free)).ok());
    CHECK(PortFile("").CheckIsNot(dir.Sub(free)).ok());
  }
  // A path from the directory of the process.
  CHECK(PortFile("port").CheckIsNot(fs::current_path() / "port.new").code() ==
        StatusCode::kInvalidArgument);
}

TEST_CASE("what a server left that was killed while it wrote its port file is no obstacle") {
  for (const char* text : {"", "47", "4711\n"}) {
    const TempDir dir;
    WriteStringToFile(dir.Sub("port.new"), text);
    PortFile file(dir.Sub("port"));
    REQUIRE(file.Prepare().ok());
    WriteStringToFile(dir.Sub("port.new"), text);
    REQUIRE(file.Write(4712).ok());
    CHECK(ReadFileToString(dir.Sub("port")) == "4712\n");
    CHECK_FALSE(fs::exists(dir.Sub("port.new")));
  }
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

TEST_CASE("a server whose port file was removed leaves that of the next server there") {
  const TempDir dir;
  const std::string path = dir.Sub("port");
  for (const uint16_t port : {uint16_t{4711}, uint16_t{4712}}) {
    PortFile first(path);
    REQUIRE(first.Prepare().ok());
    REQUIRE(first.Write(4711).ok());
    fs::remove(path);
    PortFile second(path);
    REQUIRE(second.Prepare().ok());
    REQUIRE(second.Write(port).ok());
    first.Remove();
    CHECK(ReadFileToString(path) == std::to_string(port) + "\n");
    second.Remove();
    CHECK_FALSE(fs::exists(path));
  }
  PortFile overwritten(path);
  REQUIRE(overwritten.Write(4711).ok());
  WriteStringToFile(path, "4712\n");
  overwritten.Remove();
  CHECK(ReadFileToString(path) == "4712\n");
}

TEST_CASE("a port file that cannot be written is told before it is needed") {
  const TempDir dir;
  const Status no_dir = PortFile(dir.Sub("absent/port")).Prepare();
  CHECK(no_dir.code() == StatusCode::kIoError);
  CHECK(no_dir.message() ==
        "port file: cannot create " + dir.Sub("absent/port.new") + ": No such file or directory");
}

TEST_CASE("without a port file nothing is done") {
  PortFile none("");
  CHECK(none.Prepare().ok());
  CHECK(none.Write(1).ok());
}

}  // namespace
}  // namespace nowcalls::server
