#include "support/fake_dashboard.h"

#include <sys/socket.h>
#include <unistd.h>

#include <string_view>
#include <utility>

#include "support/tcp.h"

namespace nowcalls::testing {
namespace {

// Bytes behind the head that the request says it has.
size_t LengthOf(std::string_view head) {
  constexpr std::string_view kLength = "Content-Length: ";
  const size_t at = head.find(kLength);
  return at == std::string_view::npos ? 0
                                      : std::stoul(std::string(head.substr(at + kLength.size())));
}

bool IsWhole(std::string_view request) {
  constexpr std::string_view kEnd = "\r\n\r\n";
  const size_t end = request.find(kEnd);
  return end != std::string_view::npos &&
         request.size() >= end + kEnd.size() + LengthOf(request.substr(0, end));
}

std::string Decoded(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      decoded += static_cast<char>(std::stoi(std::string(text.substr(i + 1, 2)), nullptr, 16));
      i += 2;
    } else {
      decoded += text[i] == '+' ? ' ' : text[i];
    }
  }
  return decoded;
}

}  // namespace

const char* const FakeDashboard::kTakes =
    "HTTP/1.1 200 \r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n"
    "Connection: close\r\n\r\n37\r\n"
    "{\"success\":true,\"code\":0,\"msg\":\"success\",\"data\":null}  \r\n0\r\n\r\n";

FakeDashboard::FakeDashboard() : listener_(ListenOnLoopback(&port_)) {
  thread_ = std::thread([this] { Run(); });
}

FakeDashboard::~FakeDashboard() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  shutdown(listener_, SHUT_RDWR);
  thread_.join();
  close(listener_);
  for (const int fd : left_open_) close(fd);
}

void FakeDashboard::AnswerWith(const std::string& bytes, bool leave_open) {
  const std::lock_guard lock(mutex_);
  answer_ = bytes;
  leaves_open_ = leave_open;
}

std::vector<std::string> FakeDashboard::Requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

std::map<std::string, std::string> FakeDashboard::LastForm() const {
  const std::lock_guard lock(mutex_);
  std::map<std::string, std::string> form;
  if (requests_.empty()) return form;
  std::string_view rest = requests_.back();
  rest.remove_prefix(rest.find("\r\n\r\n") + 4);
  while (!rest.empty()) {
    const std::string_view field = rest.substr(0, rest.find('&'));
    const size_t equals = field.find('=');
    form[std::string(field.substr(0, equals))] = Decoded(field.substr(equals + 1));
    rest.remove_prefix(field.size() < rest.size() ? field.size() + 1 : rest.size());
  }
  return form;
}

void FakeDashboard::Run() {
  for (;;) {
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) return;
    Serve(fd);
    const std::lock_guard lock(mutex_);
    if (leaves_open_) {
      left_open_.push_back(fd);
    } else {
      close(fd);
    }
    if (ending_) return;
  }
}

void FakeDashboard::Serve(int fd) {
  // A client that sends half a request does not hold up the end of a test.
  const timeval patience{5, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  std::string request;
  while (!IsWhole(request)) {
    char chunk[4096];
    const ssize_t received = recv(fd, chunk, sizeof(chunk), 0);
    if (received <= 0) return;
    request.append(chunk, static_cast<size_t>(received));
  }
  std::string answer;
  {
    const std::lock_guard lock(mutex_);
    requests_.push_back(std::move(request));
    answer = answer_;
  }
  for (std::string_view rest = answer; !rest.empty();) {
    const ssize_t sent = send(fd, rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;
    rest.remove_prefix(static_cast<size_t>(sent));
  }
}

}  // namespace nowcalls::testing
