#include "support/cutting_proxy.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <stdexcept>
#include <utility>

namespace nowcalls::testing {
namespace {

sockaddr_in Loopback(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

int NewSocket() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) throw std::runtime_error("a proxy gets no socket");
  return fd;
}

void CloseOf(int* fd) {
  if (*fd >= 0) close(std::exchange(*fd, -1));
}

}  // namespace

CuttingProxy::CuttingProxy(const std::string& server) : server_(server), listener_(NewSocket()) {
  sockaddr_in local = Loopback(0);
  socklen_t size = sizeof(local);
  const bool listens = bind(listener_, reinterpret_cast<sockaddr*>(&local), size) == 0 &&
                       listen(listener_, SOMAXCONN) == 0 &&
                       getsockname(listener_, reinterpret_cast<sockaddr*>(&local), &size) == 0 &&
                       pipe2(wake_, O_CLOEXEC) == 0;
  if (!listens) throw std::runtime_error("a proxy cannot listen");
  address_ = "127.0.0.1:" + std::to_string(ntohs(local.sin_port));
  thread_ = std::thread([this] { Run(); });
}

CuttingProxy::~CuttingProxy() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  CloseOf(&wake_[1]);
  thread_.join();
  for (Pair& pair : pairs_) {
    CloseOf(&pair.client);
    CloseOf(&pair.server);
  }
  CloseOf(&listener_);
  CloseOf(&wake_[0]);
}

void CuttingProxy::Set(Mode mode) {
  const std::lock_guard lock(mutex_);
  mode_ = mode;
  for (Pair& pair : pairs_) {
    if (mode == Mode::kForward) {
      if (!pair.cut) continue;
      shutdown(pair.client, SHUT_RDWR);
      if (pair.server >= 0) shutdown(pair.server, SHUT_RDWR);
      continue;
    }
    pair.cut = true;
    if (mode == Mode::kServerSideGone && pair.server >= 0) shutdown(pair.server, SHUT_RDWR);
  }
}

void CuttingProxy::Run() {
  for (;;) {
    std::vector<pollfd> fds = {{listener_, POLLIN, 0}, {wake_[0], POLLIN, 0}};
    for (const Pair& pair : pairs_) {
      fds.push_back({pair.client, POLLIN, 0});
      fds.push_back({pair.server, POLLIN, 0});
    }
    poll(fds.data(), fds.size(), -1);
    const std::lock_guard lock(mutex_);
    if (stops_) return;
    const size_t known = pairs_.size();
    for (size_t i = 0; i < known; ++i) {
      if (fds[2 + 2 * i].revents != 0) Move(&pairs_[i], /*from_client=*/true);
      if (fds[3 + 2 * i].revents != 0) Move(&pairs_[i], /*from_client=*/false);
    }
    if (fds[0].revents != 0) Accept();
    std::erase_if(pairs_, [](const Pair& pair) { return pair.client < 0; });
  }
}

void CuttingProxy::Accept() {
  Pair pair{.client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC), .server = NewSocket()};
  if (pair.client < 0) return CloseOf(&pair.server);
  pair.cut = mode_ != Mode::kForward;
  const std::string port = server_.substr(server_.rfind(':') + 1);
  const sockaddr_in address = Loopback(static_cast<uint16_t>(std::stoi(port)));
  const bool wanted = !pair.cut;
  if (!wanted ||
      connect(pair.server, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    CloseOf(&pair.server);
    if (wanted) CloseOf(&pair.client);
  }
  if (pair.client >= 0) pairs_.push_back(pair);
}

void CuttingProxy::Move(Pair* pair, bool from_client) {
  int* const from = from_client ? &pair->client : &pair->server;
  const int to = from_client ? pair->server : pair->client;
  if (*from < 0) return;
  char bytes[65536];
  const ssize_t size = recv(*from, bytes, sizeof(bytes), MSG_DONTWAIT);
  if (size <= 0) {
    CloseOf(from);
    // A client that was cut off is not told of its server's end.
    if (!pair->cut || from_client) {
      CloseOf(&pair->client);
      CloseOf(&pair->server);
    }
    return;
  }
  if (pair->cut || to < 0) return;
  for (ssize_t sent = 0; sent < size;) {
    const ssize_t more = send(to, bytes + sent, static_cast<size_t>(size - sent), MSG_NOSIGNAL);
    if (more <= 0) return;
    sent += more;
  }
}

}  // namespace nowcalls::testing
