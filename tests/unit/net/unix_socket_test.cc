// Unix sockets: listening, connecting, and how the kernel names the other end.
#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/clock.h"
#include "net/acceptor.h"
#include "net/address.h"
#include "net/peer.h"
#include "net/socket.h"
#include "support/temp_dir.h"

namespace nowcalls::net {
namespace {

constexpr int64_t kPatientMs = 30'000;

class UnixListener {
 public:
  explicit UnixListener(const std::string& path) : path_(path) {
    const Result<int> fd = ListenUnix(path, 16);
    REQUIRE(fd.status().ToString() == "ok");
    fd_ = *fd;
  }
  ~UnixListener() { close(fd_); }
  UnixListener(const UnixListener&) = delete;
  UnixListener& operator=(const UnixListener&) = delete;

  int fd() const { return fd_; }
  Socket Connect() const {
    Result<Socket> socket = Socket::Connect(Endpoint::Unix(path_), BoottimeMs() + kPatientMs);
    REQUIRE(socket.status().ToString() == "ok");
    return *std::move(socket);
  }

 private:
  const std::string path_;
  int fd_ = -1;
};

TEST_CASE("a peer of a Unix socket is known by the kernel's word") {
  const testing::TempDir dir;
  std::string path = dir.Sub("server.sock");
  SUBCASE("a short path") {}
  SUBCASE("a path that is longer than a socket's address may be") {
    const std::string deep = dir.Sub(std::string(120, 'd'));
    std::filesystem::create_directory(deep);
    path = deep + "/server.sock";
  }
  const UnixListener listener(path);
  struct stat found {};
  REQUIRE(stat(path.c_str(), &found) == 0);
  CHECK((found.st_mode & 0777) == 0600);
  Socket client = listener.Connect();
  Acceptor acceptor;
  REQUIRE(acceptor.Accept(listener.fd()) == Acceptor::Outcome::kAccepted);
  const int fd = acceptor.fd();
  const Peer peer = PeerOf(fd, acceptor.address(), 7);
  CHECK(peer.name == "unix:" + std::to_string(getpid()) + "/7");
  REQUIRE(peer.credentials.has_value());
  CHECK(peer.credentials->pid == getpid());
  CHECK(peer.credentials->uid == geteuid());
  CHECK(IsFromThisHost(fd));
  CHECK(client.Send("hello", BoottimeMs() + kPatientMs).ok());
  char bytes[16];
  CHECK(read(fd, bytes, sizeof(bytes)) == 5);
  close(fd);
  CHECK(acceptor.Accept(listener.fd()) == Acceptor::Outcome::kNobody);
}

TEST_CASE("the socket of a server that is gone is replaced, anything else is not") {
  const testing::TempDir dir;
  const std::string path = dir.Sub("server.sock");
  { const UnixListener gone(path); }
  REQUIRE(std::filesystem::is_socket(path));
  CHECK(Socket::Connect(Endpoint::Unix(path), BoottimeMs() + kPatientMs).status().message() ==
        "Connection refused");
  { const UnixListener next(path); }
  std::filesystem::remove(path);
  std::ofstream(path) << "mine";
  CHECK(ListenUnix(path, 16).status().message() ==
        "cannot listen on " + path + ": something that is no socket is there; remove it");
  CHECK(std::filesystem::file_size(path) == 4);
  CHECK(ListenUnix(dir.Sub("absent/server.sock"), 16).status().message() ==
        "cannot listen on " + dir.Sub("absent/server.sock") + ": No such file or directory");
}

TEST_CASE("who comes while no descriptor is left is turned away, and the next is served again") {
  const testing::TempDir dir;
  const UnixListener listener(dir.Sub("server.sock"));
  Acceptor acceptor;
  Socket early = listener.Connect();
  // All descriptors below the limit are taken.
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
  const int top = dup(0);
  REQUIRE(top >= 0);
  const rlimit low{static_cast<rlim_t>(top) + 1, before.rlim_max};
  REQUIRE(setrlimit(RLIMIT_NOFILE, &low) == 0);
  const Acceptor::Outcome outcome = acceptor.Accept(listener.fd());
  const Acceptor::Outcome then = acceptor.Accept(listener.fd());
  REQUIRE(setrlimit(RLIMIT_NOFILE, &before) == 0);
  close(top);
  CHECK(outcome == Acceptor::Outcome::kTurnedAway);
  CHECK(acceptor.error() == "Too many open files");
  CHECK(then == Acceptor::Outcome::kNobody);
  std::string bytes;
  CHECK(early.Receive(&bytes, BoottimeMs() + kPatientMs).message() == "the connection was closed");
  Socket late = listener.Connect();
  CHECK(acceptor.Accept(listener.fd()) == Acceptor::Outcome::kAccepted);
  close(acceptor.fd());
}

}  // namespace
}  // namespace nowcalls::net
