#include "server/loop/peer_socket.h"

#include <doctest/doctest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "support/toy_channel.h"
#include "unit/server/loop_fixture.h"

namespace nowcalls::server {
namespace {

using testing::ToyChannel;

// A connection and its peer, and what the connection tells.
class Ends : public PeerSocket::Owner {
 public:
  explicit Ends(std::unique_ptr<net::Channel> with = net::PlainChannel::Make())
      : channel(std::move(with)) {
    std::array<int, 2> ends{};
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()) == 0);
    Open(ends[0], ends[1]);
  }
  // Takes both over.
  Ends(int fd, int peer_fd) : channel(net::PlainChannel::Make()) { Open(fd, peer_fd); }
  ~Ends() override {
    if (socket != nullptr) socket->CloseNow();
    HangUp();
    CHECK(RunUntil([&] { return closed == 1; }));
  }
  Ends(const Ends&) = delete;
  Ends& operator=(const Ends&) = delete;

  bool OnReadable(PeerSocket* readable, bool /*ended*/) override {
    turn_.Readable(readable);
    return true;
  }
  void OnHandshake(engine::ConnectionId /*id*/, const net::Channel& shaking,
                   uint64_t /*took_ns*/) override {
    shook = !shaking.shakes_hands();
  }
  void OnBytes(engine::ConnectionId id, std::string_view bytes) override {
    CHECK(id == 7);
    received += bytes;
  }
  void OnEndOfInput(engine::ConnectionId /*id*/) override { ++ended; }
  void OnSent(engine::ConnectionId /*id*/, size_t left) override {
    CHECK((left < kept || channel_replies));
    kept = left;
  }
  void OnFlushing(engine::ConnectionId /*id*/) override {
    CHECK(lingering == 0);
    ++flushing;
  }
  void OnLingering(engine::ConnectionId /*id*/) override { ++lingering; }
  void OnFailed(engine::ConnectionId /*id*/, const std::string& why) override { failure = why; }
  void OnClosed(engine::ConnectionId /*id*/) override {
    ++closed;
    socket.reset();
  }

  // A turn of the loop, as the server has them.
  void Turn() {
    uv_run(loop.get(), UV_RUN_NOWAIT);
    turn_.Receive();
  }
  bool RunUntil(const std::function<bool()>& holds) {
    return testing::PollUntil(testing::kPatienceMs, [&] {
      Turn();
      return holds();
    });
  }

  void Send(std::string_view bytes) {
    socket->Send(bytes, &turn_);
    turn_.SendAll();
    kept = socket->kept();
  }
  void PeerSends(std::string_view bytes) const {
    REQUIRE(write(peer, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  }
  // What there is.
  std::string PeerReads() const {
    std::string all;
    std::array<char, 65536> buffer{};
    for (ssize_t size = 0; (size = read(peer, buffer.data(), buffer.size())) > 0;) {
      all.append(buffer.data(), static_cast<size_t>(size));
    }
    return all;
  }
  bool PeerSeesEnd() const {
    char byte = 0;
    return read(peer, &byte, 1) == 0;
  }
  void HangUp() {
    if (peer >= 0) close(peer);
    peer = -1;
  }

  // Whether the loop would sleep now: nothing that it looks for has come, or goes on coming.
  bool Sleeps() {
    for (int turn = 0; turn < 3; ++turn) Turn();  // An unwanted event ends the looking for it.
    pollfd epoll{uv_backend_fd(loop.get()), POLLIN, 0};
    return poll(&epoll, 1, 0) == 0;
  }
  // Without a byte more than `most`.
  std::string PeerReadsSome(size_t most) const {
    std::string some(most, '\0');
    const ssize_t size = read(peer, some.data(), most);
    some.resize(size > 0 ? static_cast<size_t>(size) : 0);
    return some;
  }

  TestLoop loop;
  std::unique_ptr<net::Channel> channel;  // Until the socket has it.
  std::unique_ptr<PeerSocket> socket;
  int peer = -1;
  std::string received;
  int ended = 0;
  int flushing = 0;
  int lingering = 0;
  std::string failure;
  bool shook = false;
  bool channel_replies = false;  // Bytes of its own leave, too.
  int closed = 0;
  size_t kept = 0;

 private:
  void Open(int fd, int peer_fd) {
    peer = peer_fd;
    socket = PeerSocket::Open(loop.get(), fd, std::move(channel), 7, this);
    REQUIRE(socket != nullptr);
  }

  net::SocketTurn turn_;
};

// More than a socket takes.
std::string Much() {
  std::string much;
  for (int i = 0; much.size() < 3'000'000; ++i) much += std::to_string(i) + ",";
  return much;
}

TEST_CASE("a connection hands over what its peer sends, and its end once") {
  Ends ends;
  ends.PeerSends("hello");
  CHECK(ends.RunUntil([&] { return ends.received == "hello"; }));
  ends.PeerSends(" world");
  shutdown(ends.peer, SHUT_WR);
  CHECK(ends.RunUntil([&] { return ends.ended == 1; }));
  CHECK(ends.received == "hello world");
  for (int turn = 0; turn < 10; ++turn) ends.Turn();
  CHECK(ends.ended == 1);
  CHECK(ends.closed == 0);  // It may still read.
  ends.Send("answer");
  CHECK(ends.PeerReads() == "answer");
}

TEST_CASE("a connection that does not read is handed nothing, and all of it when it reads again") {
  Ends ends;
  ends.socket->SetReading(false);
  ends.PeerSends("hello");
  shutdown(ends.peer, SHUT_WR);
  for (int turn = 0; turn < 10; ++turn) ends.Turn();
  CHECK(ends.received.empty());
  CHECK(ends.ended == 0);
  ends.socket->SetReading(true);
  CHECK(ends.RunUntil([&] { return ends.ended == 1; }));
  CHECK(ends.received == "hello");
}

TEST_CASE("reading that is stopped and begun again within a turn loses nothing") {
  Ends ends;
  for (int i = 0; i < 100; ++i) {
    ends.PeerSends("x");
    ends.socket->SetReading(false);
    if (i % 3 == 0) ends.Turn();
    ends.socket->SetReading(true);
    if (i % 2 == 0) ends.Turn();
  }
  CHECK(ends.RunUntil([&] { return ends.received.size() == 100; }));
}

TEST_CASE("what a socket does not take is kept and sent in order, and its leaving is told") {
  Ends ends;
  const std::string much = Much();
  ends.Send(much);
  REQUIRE(ends.kept > 0);
  ends.Send("and this");
  std::string read;
  CHECK(ends.RunUntil([&] {
    read += ends.PeerReads();
    return ends.kept == 0;
  }));
  read += ends.PeerReads();
  CHECK(read == much + "and this");
  CHECK(ends.socket->kept() == 0);
  ends.Send("next");
  CHECK(ends.PeerReads() == "next");
}

TEST_CASE("an orderly close sends what is kept, then the end, and waits for that of the peer") {
  Ends ends;
  const std::string much = Much();
  ends.Send(much);
  ends.socket->CloseAfterFlush();
  std::string read;
  CHECK(ends.RunUntil([&] {
    read += ends.PeerReads();
    return read.size() == much.size();
  }));
  CHECK(read == much);
  CHECK(ends.RunUntil([&] { return ends.PeerSeesEnd(); }));
  CHECK(ends.flushing > 0);
  CHECK(ends.lingering == 1);
  ends.PeerSends("too late");
  for (int turn = 0; turn < 10; ++turn) ends.Turn();
  CHECK(ends.received.empty());
  CHECK(ends.closed == 0);
  ends.HangUp();
  CHECK(ends.RunUntil([&] { return ends.closed == 1; }));
}

TEST_CASE("a close that need not wait does so only while the peer's bytes are unread") {
  SUBCASE("nothing is") {
    Ends ends;
    ends.socket->CloseWhenFlushed();
    CHECK(ends.RunUntil([&] { return ends.closed == 1; }));
  }
  SUBCASE("some are") {
    Ends ends;
    ends.socket->SetReading(false);
    ends.PeerSends("unread");
    ends.socket->CloseWhenFlushed();
    for (int turn = 0; turn < 10; ++turn) ends.Turn();
    CHECK(ends.closed == 0);
    CHECK(ends.PeerSeesEnd());
    ends.HangUp();
    CHECK(ends.RunUntil([&] { return ends.closed == 1; }));
  }
}

TEST_CASE("a connection whose peer goes away while bytes are kept for it is closed") {
  Ends ends;
  ends.socket->SetReading(false);
  ends.Send(Much());
  REQUIRE(ends.kept > 0);
  ends.HangUp();
  CHECK(ends.RunUntil([&] { return ends.closed == 1; }));
}

TEST_CASE("a connection whose peer is gone is closed when something is sent to it") {
  Ends ends;
  ends.socket->SetReading(false);
  ends.HangUp();
  ends.Send("hello");
  CHECK(ends.kept == 0);
  CHECK(ends.RunUntil([&] { return ends.closed == 1; }));
}

TEST_CASE("a loop sleeps whatever a connection does not look for") {
  Ends ends;
  SUBCASE("nothing has come") { CHECK(ends.Sleeps()); }
  SUBCASE("bytes that are not read") {
    ends.socket->SetReading(false);
    ends.PeerSends("unread");
    CHECK(ends.Sleeps());
    CHECK(ends.received.empty());
  }
  SUBCASE("all kept bytes have left") {
    const std::string much = Much();
    ends.Send(much);
    std::string read;
    REQUIRE(ends.RunUntil([&] {
      read += ends.PeerReads();
      return read.size() == much.size();
    }));
    CHECK(ends.Sleeps());
  }
  SUBCASE("its peer takes nothing of what is kept") {
    ends.Send(Much());
    CHECK(ends.Sleeps());
    CHECK(ends.kept > 0);
  }
  SUBCASE("its peer has ended its stream") {
    shutdown(ends.peer, SHUT_WR);
    REQUIRE(ends.RunUntil([&] { return ends.ended == 1; }));
    CHECK(ends.Sleeps());
  }
  SUBCASE("it flushes to a peer that takes nothing, and goes on sending") {
    ends.Send(Much());
    ends.socket->CloseAfterFlush();
    ends.PeerSends("too late");
    CHECK(ends.Sleeps());
    CHECK(ends.closed == 0);
  }
}

TEST_CASE("what is kept behind a part that has left comes in order, with memory for what is left") {
  Ends ends;
  std::string sent = Much();
  ends.Send(sent);
  std::string read;
  for (int i = 0; ends.kept > 0 && i < 10'000; ++i) {
    read += ends.PeerReadsSome(1 + static_cast<size_t>(i) * 7919 % 100'000);
    if (i % 3 == 0 && i < 300) {
      const std::string more = "<" + std::to_string(i) + ">";
      ends.Send(more);
      sent += more;
    }
    ends.Turn();
  }
  CHECK(ends.kept == 0);
  read += ends.PeerReads();
  CHECK(read == sent);
}

TEST_CASE("what a peer has sent before it is gone with its answers unread is handed over") {
  const int listening = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  REQUIRE(bind(listening, reinterpret_cast<sockaddr*>(&address), size) == 0);
  REQUIRE(getsockname(listening, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  REQUIRE(listen(listening, 1) == 0);
  const int peer = socket(AF_INET, SOCK_STREAM, 0);
  const int few = 65536;
  REQUIRE(setsockopt(peer, SOL_SOCKET, SO_RCVBUF, &few, sizeof(few)) == 0);
  REQUIRE(connect(peer, reinterpret_cast<sockaddr*>(&address), size) == 0);
  const int accepted = accept4(listening, nullptr, nullptr, SOCK_NONBLOCK);
  close(listening);
  REQUIRE(setsockopt(accepted, SOL_SOCKET, SO_SNDBUF, &few, sizeof(few)) == 0);

  Ends ends(accepted, peer);
  ends.Send(Much());  // The peer does not read all of it.
  REQUIRE(ends.kept > 0);
  ends.PeerSends("release");
  // Both have come when the loop looks: the request, and an end.
  SUBCASE("an end of the stream") {
    shutdown(peer, SHUT_WR);
    CHECK(ends.RunUntil([&] { return ends.ended == 1; }));
    CHECK(ends.received == "release");
    CHECK(ends.closed == 0);
  }
  SUBCASE("a reset") {
    ends.HangUp();  // With unread bytes TCP sends one.
    CHECK(ends.RunUntil([&] { return ends.closed == 1; }));
    CHECK(ends.received == "release");
  }
}

TEST_CASE("a channel that holds bytes back and changes them is unseen by the owner") {
  Ends ends(ToyChannel::Make(ToyChannel::End::kAccepts));
  ToyChannel other_end(ToyChannel::End::kConnects);
  ends.channel_replies = true;
  ends.Send("welcome");
  CHECK(ends.PeerReads().empty());  // Nobody has greeted.
  CHECK(ends.kept == 0);
  ends.PeerSends(other_end.Send("hello"));
  std::string welcome;
  CHECK(ends.RunUntil([&] {
    const auto received = other_end.Receive(ends.PeerReads());
    welcome += received.bytes;
    ends.PeerSends(received.reply);
    return ends.received == "hello";
  }));
  CHECK(welcome == "welcome");
  CHECK(ends.shook);

  const std::string much = Much();
  ends.Send(much);
  CHECK(ends.kept > 0);
  ends.socket->CloseAfterFlush();
  std::string read;
  CHECK(ends.RunUntil([&] {
    read += other_end.Receive(ends.PeerReads()).bytes;
    return read.size() == much.size();
  }));
  CHECK((read == much));
  CHECK(ends.RunUntil([&] { return ends.lingering == 1; }));
  CHECK(ends.failure.empty());
}

TEST_CASE("a connection that closes shakes hands no more, and takes no place of those that do") {
  Ends ends(ToyChannel::Make(ToyChannel::End::kAccepts));
  CHECK(ends.socket->shakes_hands());
  ends.PeerSends("?");
  CHECK(ends.RunUntil([&] { return !ends.failure.empty(); }));
  REQUIRE(ends.closed == 0);
  CHECK_FALSE(ends.socket->shakes_hands());
}

TEST_CASE("a channel that fails closes the connection and says why") {
  Ends ends(ToyChannel::Make(ToyChannel::End::kAccepts));
  ends.PeerSends("?");
  CHECK(ends.RunUntil([&] { return !ends.failure.empty(); }));
  CHECK(ends.failure == "a byte has no meaning");
  CHECK_FALSE(ends.shook);
  CHECK(ends.PeerSeesEnd());
  CHECK(ends.received.empty());
}

TEST_CASE("what a connection is told once it is being closed changes nothing") {
  Ends ends;
  ends.socket->CloseNow();
  ends.socket->CloseNow();
  ends.socket->CloseAfterFlush();
  ends.socket->SetReading(true);
  ends.Send("lost");
  CHECK(ends.socket->kept() == 0);
  ends.socket->Received(5, "hello");
  ends.socket->Sent(0, "hello");
  CHECK(ends.closed == 0);  // Not from within a call.
  CHECK(ends.RunUntil([&] { return ends.closed == 1; }));
  CHECK(ends.received.empty());
}

}  // namespace
}  // namespace nowcalls::server
