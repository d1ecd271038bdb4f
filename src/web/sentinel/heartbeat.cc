#include "web/sentinel/heartbeat.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/background_thread.h"
#include "base/clock.h"
#include "base/listen_address.h"
#include "base/text.h"
#include "client/socket.h"
#include "web/sentinel/host_name.h"

namespace nowcalls::web {
namespace {

constexpr size_t kAnswerBytesMax = 16 * 1024;
// The dashboard asks for nothing that this version of Sentinel's client does not have.
constexpr std::string_view kSentinelVersion = "1.8.8";

// As forms encode.
std::string Encoded(std::string_view text) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.";
  std::string encoded;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (kPlain.find(c) != std::string_view::npos) {
      encoded += c;
    } else {
      encoded += {'%', kHex[byte >> 4], kHex[byte & 0xf]};
    }
  }
  return encoded;
}

std::string FormOf(const SentinelMachine& machine, const std::string& ip) {
  const std::pair<std::string_view, std::string> fields[] = {
      {"app", machine.app},
      {"app_type", "0"},
      {"hostname", HostName()},
      {"ip", ip},
      {"port", std::to_string(machine.commands.port)},
      {"v", std::string(kSentinelVersion)},
      {"version", std::to_string(WallMs())},
      {"pid", std::to_string(getpid())}};
  std::string form;
  for (const auto& [name, value] : fields) {
    if (!form.empty()) form += '&';
    form += std::string(name) + '=' + Encoded(value);
  }
  return form;
}

std::string RequestOf(const HostPort& dashboard, const std::string& form) {
  return "POST /registry/machine HTTP/1.1\r\nHost: " + dashboard.ToString() +
         "\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: " +
         std::to_string(form.size()) + "\r\nConnection: close\r\n\r\n" + form;
}

std::string AddressToTell(const SentinelMachine& machine, int fd) {
  const std::string& host = machine.commands.host;
  return host == "0.0.0.0" || host == "::" ? LocalEndOf(fd).host : host;
}

// Where the body begins, and where it ends if the head tells.
struct Extent {
  size_t begin = 0;
  std::optional<size_t> end{};
};

std::optional<Extent> BodyOf(std::string_view answer) {
  constexpr std::string_view kEndOfHead = "\r\n\r\n";
  constexpr std::string_view kLength = "\r\ncontent-length:";
  const size_t head_bytes = answer.find(kEndOfHead);
  if (head_bytes == std::string_view::npos) return std::nullopt;
  Extent body{head_bytes + kEndOfHead.size()};
  std::string head(answer.substr(0, head_bytes));
  std::transform(head.begin(), head.end(), head.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  // Without the header the body is in chunks, or ends with the connection.
  size_t at = head.find(kLength);
  if (at == std::string::npos) return body;
  at = head.find_first_not_of(' ', at + kLength.size());
  size_t length = 0;
  if (at != std::string::npos &&
      std::from_chars(head.data() + at, head.data() + head.size(), length).ec == std::errc()) {
    body.end = body.begin + std::min(length, kAnswerBytesMax);
  }
  return body;
}

bool IsWhole(std::string_view answer) {
  constexpr std::string_view kLastChunk = "\r\n0\r\n\r\n";
  const std::optional<Extent> body = BodyOf(answer);
  if (!body) return false;
  return body->end ? answer.size() >= *body->end : answer.ends_with(kLastChunk);
}

// Not ok: the dashboard did not take the beat. Its body is {"success":true,...}, perhaps in chunks.
Status Judge(std::string_view answer) {
  constexpr std::string_view kVersion = "HTTP/1.";
  constexpr size_t kCodeAt = kVersion.size() + 2;
  if (!answer.starts_with(kVersion) || answer.size() < kCodeAt + 3) {
    return Status::Unavailable("what answers there speaks no HTTP");
  }
  // A status of 200 is a beat taken, unless the body says the contrary.
  const std::string_view code = answer.substr(kCodeAt, 3);
  if (code != "200") return Status::Unavailable("it answered " + std::string(code));
  const size_t begin = answer.find('{');
  const size_t end = answer.rfind('}');
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin) return {};
  const auto body = nlohmann::json::parse(answer.substr(begin, end - begin + 1), nullptr, false);
  if (!body.is_object()) return {};
  const auto success = body.find("success");
  if (success == body.end() || !success->is_boolean() || success->get<bool>()) return {};
  const auto why = body.find("msg");
  return Status::Unavailable("it refused: " +
                             (why == body.end() || !why->is_string()
                                  ? "it did not say why"
                                  : TerminalText(Shortened(why->get_ref<const std::string&>()))));
}

bool IsLoopbackAddress(const std::string& ip) {
  const Result<SocketAddress> address = Resolve({ip, 0});
  return address.ok() && IsLoopback(*address);
}

}  // namespace

Result<ToldAddress> TellDashboard(const HostPort& dashboard, const SentinelMachine& machine,
                                  int64_t deadline_ms) {
  // A connection for each beat: it tells by which address the dashboard is reached.
  Result<client::Socket> socket = client::Socket::Connect(dashboard, deadline_ms);
  if (!socket.ok()) return socket.status();
  const std::string ip = AddressToTell(machine, socket->fd());
  NOWCALLS_RETURN_IF_ERROR(socket->Send(RequestOf(dashboard, FormOf(machine, ip)), deadline_ms));
  // A dashboard may keep the connection open, so the text itself says when the answer is whole.
  std::string answer;
  Status received;
  while (received.ok() && answer.size() < kAnswerBytesMax && !IsWhole(answer)) {
    received = socket->Receive(&answer, deadline_ms);
  }
  // Nothing came, or not in time. An answer cut short is judged by what came.
  if (answer.empty() || received.code() == StatusCode::kOutcomeUnknown) {
    return Status::Unavailable(received.message());
  }
  NOWCALLS_RETURN_IF_ERROR(Judge(answer));
  return ToldAddress{ip,
                     !IsLoopbackAddress(ip) || IsLoopbackAddress(LocalEndOf(socket->fd()).host)};
}

// What a heartbeat shares with its thread.
class Heartbeat::Beating {
 public:
  Beating(HostPort dashboard, SentinelMachine machine, LogLine log, int64_t every_ms)
      : dashboard_(std::move(dashboard)),
        machine_(std::move(machine)),
        log_(std::move(log)),
        every_ms_(every_ms) {}

  void Run() {
    // A dashboard that hangs holds up this thread and nothing else.
    UseCpusOfProcess();
    StepBack();
    do {
      Note(TellDashboard(dashboard_, machine_, BoottimeMs() + kBeatMsMax));
    } while (Sleep());
  }

  void End() {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    changed_.notify_all();
  }

 private:
  // Says it when it is another than before.
  void Note(const Result<ToldAddress>& told) {
    const std::lock_guard lock(mutex_);
    if (ending_ || works_ == told.ok()) return;
    works_ = told.ok();
    const std::string name = "Sentinel's dashboard at " + dashboard_.ToString();
    if (!told.ok()) {
      log_(true, name + " does not list this server: " + told.status().message() +
                     "; it is told again every " + std::to_string(every_ms_ / 1000) + " s");
      return;
    }
    const HostPort commands{told->ip, machine_.commands.port};
    log_(!told->reachable, name + " lists this server as " + machine_.app + " at " +
                               commands.ToString() +
                               (told->reachable ? ""
                                                : ", which it cannot reach: set "
                                                  "sentinel-commands to an address of this "
                                                  "machine that it reaches"));
  }
  // False: it is the end.
  bool Sleep() {
    std::unique_lock lock(mutex_);
    return !changed_.wait_for(lock, std::chrono::milliseconds(every_ms_),
                              [this] { return ending_; });
  }

  const HostPort dashboard_;
  const SentinelMachine machine_;
  const LogLine log_;
  const int64_t every_ms_;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool ending_ = false;
  std::optional<bool> works_{};  // As it was said last.
};

Heartbeat::Heartbeat(const HostPort& dashboard, const SentinelMachine& machine, LogLine log,
                     int64_t every_ms)
    : beating_(std::make_shared<Beating>(dashboard, machine, std::move(log), every_ms)) {
  // Detached: Beating is shared, so a beat that hangs outlives the Heartbeat and harms nobody.
  std::thread([beating = beating_] { beating->Run(); }).detach();
}

Heartbeat::~Heartbeat() { beating_->End(); }

}  // namespace nowcalls::web
