#include "support/sentinel_client.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/clock.h"
#include "base/hex.h"
#include "support/tcp.h"

namespace nowcalls::testing {

std::string BigEndian(int64_t value, size_t bytes) {
  std::string text(bytes, '\0');
  for (size_t i = bytes; i > 0; --i, value >>= 8) text[i - 1] = static_cast<char>(value & 0xff);
  return text;
}

int64_t SentinelAnswer::Number(size_t at, size_t bytes) const {
  if (data.size() < at + bytes) return -1;
  uint64_t value = 0;
  for (size_t i = at; i < at + bytes; ++i) value = value << 8 | static_cast<uint8_t>(data[i]);
  return static_cast<int64_t>(value);
}

std::string SentinelAnswer::ToString() const {
  if (!came) return "nothing";
  return "type " + std::to_string(type) + " status " + std::to_string(status) +
         (data.empty() ? "" : " data " + ToHex(data));
}

SentinelClient::SentinelClient(const std::string& address) : fd_(ConnectTo(address)) {}

SentinelClient::~SentinelClient() { Close(); }

SentinelClient::SentinelClient(SentinelClient&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      next_xid_(other.next_xid_),
      input_(std::move(other.input_)) {}

void SentinelClient::Close() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

std::string SentinelClient::local_address() const { return LocalAddressOf(fd_); }

SentinelAnswer SentinelClient::Ping(const std::string& name_space) {
  return Call(0, BigEndian(static_cast<int64_t>(name_space.size()), 4) + name_space);
}

SentinelAnswer SentinelClient::Flow(int64_t flow, int32_t count, bool prioritized) {
  return Call(1, BigEndian(flow, 8) + BigEndian(count, 4) + BigEndian(prioritized ? 1 : 0, 1));
}

SentinelAnswer SentinelClient::ParamFlow(int64_t flow, const std::string& value, int32_t count) {
  constexpr int64_t kString = 7;
  return Call(2, BigEndian(flow, 8) + BigEndian(count, 4) + BigEndian(1, 4) +
                     BigEndian(kString, 1) + BigEndian(static_cast<int64_t>(value.size()), 4) +
                     value);
}

SentinelAnswer SentinelClient::Acquire(int64_t flow, int32_t count, bool prioritized) {
  return Call(3, BigEndian(flow, 8) + BigEndian(count, 4) + BigEndian(prioritized ? 1 : 0, 1));
}

SentinelAnswer SentinelClient::Release(int64_t token) { return Call(4, BigEndian(token, 8)); }

SentinelAnswer SentinelClient::Keep(int64_t token) { return Call(5, BigEndian(token, 8)); }

SentinelAnswer SentinelClient::Call(int type, std::string_view data) {
  const int32_t xid = Send(type, data);
  for (;;) {
    SentinelAnswer answer = Receive();
    if (!answer.came || answer.xid == xid) return answer;
  }
}

int32_t SentinelClient::Send(int type, std::string_view data) {
  const int32_t xid = next_xid_++;
  const std::string payload = BigEndian(xid, 4) + BigEndian(type, 1) + std::string(data);
  SendRaw(BigEndian(static_cast<int64_t>(payload.size()), 2) + payload);
  return xid;
}

bool SentinelClient::SendRaw(std::string_view bytes, int64_t timeout_ms) const {
  const int64_t deadline_ms = BoottimeMs() + timeout_ms;
  while (!bytes.empty()) {
    const ssize_t sent = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      bytes.remove_prefix(static_cast<size_t>(sent));
    } else if (errno == EAGAIN) {
      if (!WaitFor(fd_, POLLOUT, deadline_ms)) return false;
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

SentinelAnswer SentinelClient::Receive(int64_t timeout_ms) {
  constexpr size_t kHeadBytes = 8;
  const int64_t deadline_ms = BoottimeMs() + timeout_ms;
  SentinelAnswer answer;
  if (!Fill(kHeadBytes, deadline_ms)) return answer;
  SentinelAnswer head;
  head.data = input_.substr(0, kHeadBytes);
  const auto whole = static_cast<size_t>(2 + head.Number(0, 2));
  if (whole < kHeadBytes || !Fill(whole, deadline_ms)) return answer;
  answer.came = true;
  answer.xid = static_cast<int32_t>(head.Number(2, 4));
  // NOLINTBEGIN(bugprone-signed-char-misuse): they are signed.
  answer.type = static_cast<int8_t>(input_[6]);
  answer.status = static_cast<int8_t>(input_[7]);
  // NOLINTEND(bugprone-signed-char-misuse)
  answer.data = input_.substr(kHeadBytes, whole - kHeadBytes);
  input_.erase(0, whole);
  return answer;
}

// Reads until so many bytes are there.
bool SentinelClient::Fill(size_t bytes, int64_t deadline_ms) {
  while (input_.size() < bytes) {
    char buffer[4096];
    const ssize_t count = recv(fd_, buffer, sizeof(buffer), 0);
    if (count > 0) {
      input_.append(buffer, static_cast<size_t>(count));
    } else if (count == 0 || (errno != EAGAIN && errno != EINTR) ||
               !WaitFor(fd_, POLLIN, deadline_ms)) {
      return false;
    }
  }
  return true;
}

}  // namespace nowcalls::testing
