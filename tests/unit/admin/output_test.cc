// The descriptor that listings go to.
#include "admin/output.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <string>
#include <thread>

namespace nowcalls::admin {
namespace {

TEST_CASE("a pipe that is not to be waited for gets the whole output nevertheless") {
  int ends[2];
  REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
  REQUIRE(fcntl(ends[1], F_SETFL, O_NONBLOCK) == 0);
  const std::string text(1 << 20, 'x');  // More than a pipe takes.
  int error = -1;
  std::thread writer([&] {
    error = DescriptorSink(ends[1])(text);
    close(ends[1]);
  });
  std::string got;
  std::string piece(4096, '\0');
  for (ssize_t size = 0; (size = read(ends[0], piece.data(), piece.size())) > 0;) {
    got.append(piece, 0, static_cast<size_t>(size));
  }
  writer.join();
  close(ends[0]);
  CHECK(error == 0);
  CHECK((got == text));
}

}  // namespace
}  // namespace nowcalls::admin
