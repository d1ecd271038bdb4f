#include "support/proxy.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utility>
#include <vector>

#include "support/tcp.h"

namespace nowcalls::testing {
namespace {

constexpr int kLookMs = 5;  // What is let go passes after so long at most.

struct Pair {
  int client;
  int server;
};

// False: one end has closed.
bool Pass(int from, int to) {
  char bytes[65536];
  const ssize_t size = recv(from, bytes, sizeof(bytes), MSG_DONTWAIT);
  if (size <= 0) return false;
  for (ssize_t sent = 0; sent < size;) {
    pollfd writable{to, POLLOUT, 0};
    poll(&writable, 1, -1);
    const ssize_t more = send(to, bytes + sent, static_cast<size_t>(size - sent), MSG_NOSIGNAL);
    if (more <= 0) return false;
    sent += more;
  }
  return true;
}

}  // namespace

Proxy::Proxy(std::string target)
    : target_(std::move(target)), listener_(ListenOnLoopback(&port_)), thread_([this] { Run(); }) {}

Proxy::~Proxy() {
  ends_ = true;
  thread_.join();
  close(listener_);
}

void Proxy::Run() {
  std::vector<Pair> pairs;
  while (!ends_) {
    std::vector<pollfd> fds = {{listener_, POLLIN, 0}};
    for (const Pair& pair : pairs) {
      fds.push_back({requests_held_ ? -1 : pair.client, POLLIN, 0});
      fds.push_back({answers_held_ ? -1 : pair.server, POLLIN, 0});
    }
    poll(fds.data(), fds.size(), kLookMs);
    const bool cut = cuts_.exchange(false);
    std::vector<Pair> left;
    for (size_t i = 0; i < pairs.size(); ++i) {
      const Pair pair = pairs[i];
      const bool asks = fds[2 * i + 1].revents != 0;
      const bool answers = fds[2 * i + 2].revents != 0;
      if (cut || (asks && !Pass(pair.client, pair.server)) ||
          (answers && !Pass(pair.server, pair.client))) {
        close(pair.client);
        close(pair.server);
      } else {
        left.push_back(pair);
      }
    }
    pairs = std::move(left);
    if (fds[0].revents == 0) continue;
    const int client = accept(listener_, nullptr, nullptr);
    const int server = client < 0 ? -1 : ConnectTo(target_);
    if (server >= 0) {
      pairs.push_back({client, server});
      ++connections_;
    } else if (client >= 0) {
      close(client);
    }
  }
  for (const Pair& pair : pairs) {
    close(pair.client);
    close(pair.server);
  }
}

}  // namespace nowcalls::testing
