#include "net/socket_turn.h"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <functional>
#include <string>
#include <vector>

namespace nowcalls::net {
namespace {

// One end of a connection whose other end is the test's.
class FakeSocket : public SocketTurn::Socket {
 public:
  FakeSocket() {
    std::array<int, 2> ends{};
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) == 0);
    fd_ = ends[0];
    peer = ends[1];
  }
  ~FakeSocket() override {
    close(fd_);
    if (peer >= 0) close(peer);
  }
  FakeSocket(const FakeSocket&) = delete;
  FakeSocket& operator=(const FakeSocket&) = delete;

  int fd() const override { return fd_; }
  bool TakeReadable() override { return reads; }
  void Received(ssize_t result, std::string_view bytes) override {
    results.push_back(result);
    received += bytes;
    if (then) then();
  }
  void Sent(ssize_t result, std::string_view bytes) override {
    sent.push_back(result);
    CHECK(bytes == "answer");
  }

  void PeerSends(const std::string& bytes) const {
    REQUIRE(write(peer, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  }

  int peer = -1;
  bool reads = true;
  std::function<void()> then;
  std::vector<ssize_t> results;
  std::string received;
  std::vector<ssize_t> sent;

 private:
  int fd_ = -1;
};

TEST_CASE("who can be read is received from when the loop has looked at all") {
  SocketTurn turn;
  FakeSocket a;
  FakeSocket b;
  a.PeerSends("first");
  b.PeerSends("second");
  turn.Readable(&a);
  turn.Readable(&b);
  CHECK(a.received.empty());
  turn.Receive();
  CHECK(a.received == "first");
  CHECK(b.received == "second");
  turn.Receive();  // Nobody was told as readable since.
  CHECK(a.results.size() == 1);
}

TEST_CASE("a turn with many that can be read does not wait for the last of them") {
  SocketTurn turn;
  std::vector<FakeSocket> sockets(SocketTurn::kTogether + 1);
  for (FakeSocket& socket : sockets) {
    socket.PeerSends("x");
    turn.Readable(&socket);
  }
  for (size_t i = 0; i < SocketTurn::kTogether; ++i) CHECK(sockets[i].received == "x");
  CHECK(sockets.back().received.empty());
  turn.Receive();
  CHECK(sockets.back().received == "x");
}

TEST_CASE("who reads no more when its turn has come is left alone") {
  SocketTurn turn;
  FakeSocket a;
  FakeSocket b;
  a.PeerSends("x");
  b.PeerSends("y");
  turn.Readable(&a);
  turn.Readable(&b);
  a.reads = false;
  turn.Receive();
  CHECK(a.results.empty());
  CHECK(b.received == "y");
}

TEST_CASE("what was received is handed over though others' bytes ended the reading meanwhile") {
  SocketTurn turn;
  FakeSocket a;
  FakeSocket b;
  a.PeerSends("x");
  b.PeerSends("y");
  a.then = [&] { b.reads = false; };
  turn.Readable(&a);
  turn.Readable(&b);
  turn.Receive();
  CHECK(b.received == "y");
}

TEST_CASE("an end and an error are handed over like bytes") {
  SocketTurn turn;
  FakeSocket ended;
  FakeSocket quiet;
  close(ended.peer);
  ended.peer = -1;
  turn.Readable(&ended);
  turn.Readable(&quiet);
  turn.Receive();
  CHECK(ended.results == std::vector<ssize_t>{0});
  CHECK(quiet.results == std::vector<ssize_t>{-EAGAIN});
}

TEST_CASE("all that has arrived is received, in pieces for which there is room") {
  SocketTurn turn;
  FakeSocket a;
  FakeSocket b;
  const std::string sent = std::string(SocketTurn::kReceiveBytesMax, 'a') +
                           std::string(SocketTurn::kReceiveBytesMax, 'b') + "c";
  a.PeerSends(sent);
  b.PeerSends("x");
  turn.Readable(&a);
  turn.Readable(&b);
  turn.Receive();
  CHECK(a.received == sent);
  CHECK(a.results.size() == 3);
  CHECK(b.results.size() == 1);
}

TEST_CASE("who sends without end is left to the next look at the sockets, and can be told again") {
  SocketTurn turn;
  FakeSocket a;
  const std::string piece(SocketTurn::kReceiveBytesMax, 'a');
  a.then = [&] { a.PeerSends(piece); };
  a.PeerSends(piece);
  turn.Readable(&a);
  turn.Receive();
  CHECK(a.results.size() == SocketTurn::kReceivesMax);
  a.then = {};
  turn.Receive();
  CHECK(a.results.size() == SocketTurn::kReceivesMax);
  turn.Readable(&a);
  turn.Receive();
  CHECK(a.received.size() == (SocketTurn::kReceivesMax + 1) * piece.size());
}

TEST_CASE("who has filled a receive and reads no more is not received from again") {
  SocketTurn turn;
  FakeSocket a;
  const std::string piece(SocketTurn::kReceiveBytesMax, 'a');
  a.PeerSends(piece + "b");
  a.then = [&] { a.reads = false; };
  turn.Readable(&a);
  turn.Receive();
  CHECK(a.received == piece);
}

TEST_CASE("what is to be sent is sent together, and each hears how it went") {
  SocketTurn turn;
  FakeSocket well;
  FakeSocket broken;
  close(broken.peer);
  broken.peer = -1;
  turn.Send(&well, "answer");
  turn.Send(&broken, "answer");
  CHECK(well.sent.empty());
  turn.SendAll();
  CHECK(well.sent == std::vector<ssize_t>{6});
  CHECK(broken.sent == std::vector<ssize_t>{-EPIPE});
  char buffer[16];
  CHECK(read(well.peer, buffer, sizeof(buffer)) == 6);
  turn.SendAll();
  CHECK(well.sent.size() == 1);
}

}  // namespace
}  // namespace nowcalls::net
