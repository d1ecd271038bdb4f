// What systemd is told, by a socket that stands for it.
#include "server/service_manager.h"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "support/poll_until.h"
#include "support/temp_dir.h"

namespace nowcalls::server {
namespace {

using testing::kPatienceMs;

// The socket that NOTIFY_SOCKET names while it lives.
class NotifySocket {
 public:
  NotifySocket() : fd_(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = dir_.Sub("notify");
    std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
    REQUIRE(bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
    setenv("NOTIFY_SOCKET", path.c_str(), 1);
  }
  ~NotifySocket() {
    unsetenv("NOTIFY_SOCKET");
    close(fd_);
  }
  NotifySocket(const NotifySocket&) = delete;
  NotifySocket& operator=(const NotifySocket&) = delete;

  // The next message; empty: none has come.
  std::string Take() const {
    char text[256];
    const ssize_t bytes = recv(fd_, text, sizeof(text), 0);
    return bytes > 0 ? std::string(text, static_cast<size_t>(bytes)) : "";
  }

 private:
  const testing::TempDir dir_;
  const int fd_;
};

TEST_CASE("a start that takes long asks for more time again and again, until it is over") {
  const NotifySocket systemd;
  {
    const LongStart start(/*every_ms=*/10);
    int asked = 0;
    CHECK(testing::PollUntil(kPatienceMs, [&] {
      const std::string said = systemd.Take();
      if (!said.empty()) CHECK(said == "EXTEND_TIMEOUT_USEC=60000");
      asked += said.empty() ? 0 : 1;
      return asked == 3;
    }));
  }
  while (!systemd.Take().empty()) {
  }
  const ServiceManager manager;
  manager.Ready();
  CHECK(systemd.Take() == "READY=1");
}

}  // namespace
}  // namespace nowcalls::server
