#include "support/fake_server.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <stdexcept>
#include <utility>

#include "wire/splitter.h"

namespace nowcalls::testing {
namespace {

// A socket that listens on 127.0.0.1 on a port of the system's choice.
int Listen(uint16_t* port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  socklen_t size = sizeof(address);
  if (fd < 0 || bind(fd, generic, size) != 0 || listen(fd, 1) != 0 ||
      getsockname(fd, generic, &size) != 0) {
    throw std::runtime_error("cannot listen on 127.0.0.1");
  }
  *port = ntohs(address.sin_port);
  return fd;
}

}  // namespace

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
    input_.append(chunk, static_cast<size_t>(received));
  }
}

bool FakeServer::Peer::Send(std::string_view bytes) const {
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

FakeServer::FakeServer(std::function<void(Peer*)> script) : listener_(Listen(&port_)) {
  thread_ = std::thread([this, run = std::move(script)] {
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) return;
    Peer peer(fd);
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
