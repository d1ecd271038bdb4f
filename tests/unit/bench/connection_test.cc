#include "bench/connection.h"

#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "support/toy_channel.h"
#include "unit/server/loop_fixture.h"

namespace nowcalls::bench {
namespace {

using server::TestLoop;
using testing::ToyChannel;

// Every message is a letter: "h" greets and is answered "H"; "G" is a grant.
class LetterDialect final : public Dialect {
 public:
  void Greet(wire::OutputBuffer* out) override { out->Append("h"); }
  void Acquire(uint32_t, uint32_t, int64_t, wire::OutputBuffer*) override {}
  void Release(uint32_t, uint32_t, uint64_t, wire::OutputBuffer*) override {}
  Outcome Take(std::string_view* input, Answer* answer) override {
    const char letter = input->front();
    if (letter != 'H' && letter != 'G') return Outcome::kInvalid;
    answer->kind = letter == 'H' ? AnswerKind::kGreeted : AnswerKind::kGranted;
    input->remove_prefix(1);
    return Outcome::kAnswer;
  }
  std::string error() const override { return "no such letter"; }
};

// A connection, and the server's end of it.
class Ends final : public Connection::Owner {
 public:
  Ends(std::unique_ptr<net::Channel> channel, std::unique_ptr<net::Channel> other_end)
      : connection_(0, std::make_unique<LetterDialect>(), std::move(channel), &turn_, this),
        other_end_(std::move(other_end)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* const name = reinterpret_cast<sockaddr*>(&address);
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    REQUIRE(bind(listener, name, size) == 0);
    REQUIRE(listen(listener, 1) == 0);
    REQUIRE(getsockname(listener, name, &size) == 0);
    connection_.Open(loop_.get(), name);
    server_fd_ = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    REQUIRE(server_fd_ >= 0);
    close(listener);
  }
  ~Ends() override {
    connection_.Close();
    close(server_fd_);
  }
  Ends(const Ends&) = delete;
  Ends& operator=(const Ends&) = delete;

  void OnGreeted(Connection* /*connection*/) override { ++greeted; }
  bool OnAnswer(Connection* /*connection*/, const Answer& /*answer*/,
                const Moment& /*now*/) override {
    ++answers;
    return true;
  }
  void OnAnswersTaken(Connection* /*connection*/, const Moment& /*now*/) override {}
  void OnLost(Connection* /*connection*/, const Status& reason) override {
    lost = reason.message();
  }

  // Turns of the loop in which the server's end reads, until `holds`.
  bool RunUntil(const std::function<bool()>& holds) {
    return loop_.RunUntil([&] {
      turn_.Receive();
      std::array<char, 65536> bytes{};
      const ssize_t size = recv(server_fd_, bytes.data(), bytes.size(), 0);
      if (size > 0) {
        const auto received = other_end_->Receive({bytes.data(), static_cast<size_t>(size)});
        server_read += received.bytes;
        SendRaw(received.reply);
      }
      return holds();
    });
  }
  void ServerSends(std::string_view bytes) const { SendRaw(other_end_->Send(bytes)); }
  void SendRaw(std::string_view bytes) const {
    CHECK(send(server_fd_, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
  }
  void Send(std::string_view bytes) {
    connection_.out()->Append(bytes);
    connection_.Flush();
    turn_.SendAll();
  }

  int greeted = 0;
  int answers = 0;
  std::string lost;
  std::string server_read;

 private:
  TestLoop loop_;
  net::SocketTurn turn_;
  Connection connection_;
  const std::unique_ptr<net::Channel> other_end_;
  int server_fd_ = -1;
};

void CheckTalk(Ends* ends) {
  CHECK(ends->RunUntil([&] { return ends->server_read == "h"; }));
  ends->ServerSends("H");
  CHECK(ends->RunUntil([&] { return ends->greeted == 1; }));
  ends->ServerSends("GG");
  CHECK(ends->RunUntil([&] { return ends->answers == 2; }));

  // More than the socket takes, in two pieces.
  std::string much;
  for (int i = 0; much.size() < 5'000'000; ++i) much += std::to_string(i) + ",";
  ends->Send(much);
  ends->Send("and this");
  const size_t size = 1 + much.size() + 8;
  CHECK(ends->RunUntil([&] { return ends->server_read.size() >= size; }));
  CHECK((ends->server_read == "h" + much + "and this"));
  ends->Send("next");
  CHECK(ends->RunUntil([&] { return ends->server_read.size() == size + 4; }));
  CHECK(ends->lost.empty());
}

TEST_CASE("a connection of a load greets, takes answers, and sends in order what it is given") {
  Ends ends(net::PlainChannel::Make(), net::PlainChannel::Make());
  CheckTalk(&ends);
  ends.ServerSends("?");
  CHECK(ends.RunUntil([&] { return !ends.lost.empty(); }));
  CHECK(ends.lost == "brought an answer that is not understood: no such letter");
}

TEST_CASE("a load does the same through a channel that holds bytes back and changes them") {
  Ends ends(ToyChannel::Make(ToyChannel::End::kConnects),
            ToyChannel::Make(ToyChannel::End::kAccepts));
  CheckTalk(&ends);
  ends.SendRaw("?");
  CHECK(ends.RunUntil([&] { return !ends.lost.empty(); }));
  CHECK(ends.lost == "failed: a byte has no meaning");
}

}  // namespace
}  // namespace nowcalls::bench
