#include "support/fake_server.h"

#include <sys/socket.h>
#include <unistd.h>

#include <stdexcept>
#include <utility>

#include "support/tcp.h"
#include "wire/splitter.h"

namespace nowcalls::testing {

bool FakeServer::Peer::Take(wire::Envelope* request) {
  for (;;) {
    wire::MessageSplitter splitter;
    size_t size = 0;
    if (splitter.Next(input_, &size) == wire::MessageSplitter::Outcome::kMessage) {
      message_ = input_.substr(0, size);
      input_.erase(0, size);
      wire::RequestError error;
      if (!wire::DecodeEnvelope(message_, request, &error)) throw std::runtime_error(error.message);
      return true;
    }
    char chunk[4096];
    const ssize_t received = recv(fd_, chunk, sizeof(chunk), 0);
    if (received <= 0) return false;
    const auto taken = channel_->Receive({chunk, static_cast<size_t>(received)});
    input_.append(taken.bytes);
    if (!SendRaw(taken.reply) || taken.failed) return false;
  }
}

bool FakeServer::Peer::Send(std::string_view bytes) const { return SendRaw(channel_->Send(bytes)); }

bool FakeServer::Peer::SendRaw(std::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t sent = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

void FakeServer::Peer::Answer(const std::function<void(wire::OutputBuffer*)>& encode) const {
  wire::OutputBuffer out;
  encode(&out);
  Send(out.view());
}

void FakeServer::Peer::AwaitClose() const {
  char chunk[4096];
  while (recv(fd_, chunk, sizeof(chunk), 0) > 0) {
  }
}

FakeServer::FakeServer(std::function<void(Peer*)> script, MakeChannel make_channel)
    : listener_(ListenOnLoopback(&port_)) {
  thread_ = std::thread([this, run = std::move(script), make = std::move(make_channel)] {
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) return;
    Peer peer(fd, make());
    run(&peer);
    close(fd);
  });
}

FakeServer::~FakeServer() {
  // Ends the accept of a server that nobody connected to.
  shutdown(listener_, SHUT_RDWR);
  thread_.join();
  close(listener_);
}

}  // namespace nowcalls::testing
