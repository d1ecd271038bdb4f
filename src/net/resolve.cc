#include "net/resolve.h"

#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/quiet_thread.h"

namespace nowcalls::net {
namespace {

using Addresses = std::vector<SocketAddress>;

Result<Addresses> LookUp(const Lookup& lookup, const HostPort& peer, int more_flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | more_flags;
  addrinfo* found = nullptr;
  const std::string port = std::to_string(peer.port);
  const int failure = lookup(peer.host.c_str(), port.c_str(), &hints, &found);
  if (failure != 0) return Status::Unavailable(gai_strerror(failure));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, &freeaddrinfo);
  Addresses addresses;
  for (const addrinfo* info = found; info != nullptr; info = info->ai_next) {
    SocketAddress& address = addresses.emplace_back();
    std::memcpy(&address.bytes, info->ai_addr, info->ai_addrlen);
    address.size = info->ai_addrlen;
  }
  return addresses;
}

// Shared by the waiting thread and the lookup; the last one frees it.
struct Question {
  std::mutex mutex;
  std::condition_variable answered;
  std::optional<Result<Addresses>> answer;
};

}  // namespace

Result<Addresses> ResolveBefore(int64_t deadline_ms, const HostPort& peer, const Lookup& lookup) {
  // An address in digits needs neither a lookup nor a thread.
  Result<Addresses> in_digits = LookUp(getaddrinfo, peer, AI_NUMERICHOST);
  if (in_digits.ok()) return in_digits;
  // getaddrinfo can neither be bounded nor interrupted, and a silent name server takes many
  // seconds. So a thread of its own asks, and is left behind when the deadline passes.
  const auto question = std::make_shared<Question>();
  Result<std::thread> thread = StartQuietThread([question, peer, lookup] {
    Result<Addresses> answer = LookUp(lookup, peer, 0);
    const std::lock_guard lock(question->mutex);
    question->answer = std::move(answer);
    question->answered.notify_one();
  });
  if (!thread.ok()) return thread.status().WithContext("cannot look up its name");
  thread->detach();
  std::unique_lock lock(question->mutex);
  const std::chrono::milliseconds left(std::max<int64_t>(0, deadline_ms - BoottimeMs()));
  if (question->answered.wait_for(lock, left, [&] { return question->answer.has_value(); })) {
    return std::move(*question->answer);
  }
  return Status::Unavailable("the lookup of its name took too long");
}

}  // namespace nowcalls::net
