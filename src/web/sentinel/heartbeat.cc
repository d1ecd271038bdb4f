#include "web/sentinel/heartbeat.h"

#include <curl/curl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "base/background_thread.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/text.h"
#include "net/address.h"
#include "net/socket.h"
#include "web/sentinel/host_name.h"

namespace nowcalls::web {
namespace {

constexpr size_t kAnswerBytesMax = 16 * 1024;
// The dashboard asks for nothing that this version of Sentinel's client does not have.
constexpr char kSentinelVersion[] = "1.8.8";

// As forms encode.
std::string Encoded(const std::string& text) {
  const std::unique_ptr<char, decltype(&curl_free)> encoded(
      curl_easy_escape(nullptr, text.data(), static_cast<int>(text.size())), &curl_free);
  return encoded == nullptr ? "" : encoded.get();
}

std::string FormOf(const SentinelMachine& machine, const std::string& ip) {
  const std::pair<std::string, std::string> fields[] = {
      {"app", machine.app},
      {"app_type", "0"},
      {"hostname", HostName()},
      {"ip", ip},
      {"port", std::to_string(machine.commands.port)},
      {"v", kSentinelVersion},
      {"version", std::to_string(WallMs())},
      {"pid", std::to_string(getpid())}};
  std::string form;
  for (const auto& [name, value] : fields) {
    if (!form.empty()) form += '&';
    form += name + '=' + Encoded(value);
  }
  return form;
}

std::string AddressToTell(const SentinelMachine& machine, int fd) {
  const std::string& host = machine.commands.host;
  return host == "0.0.0.0" || host == "::" ? net::LocalEndOf(fd).host : host;
}

// Bounds what is kept: curl ends a transfer of which not all is taken.
size_t Take(const char* bytes, size_t /*one*/, size_t size, void* to) {
  auto* const text = static_cast<std::string*>(to);
  const size_t taken = std::min(size, kAnswerBytesMax - text->size());
  text->append(bytes, taken);
  return taken;
}

// Not ok: the dashboard did not take the beat. Its body is {"success":true,...}.
Status Judge(int64_t code, const std::string& body) {
  // A status of 200 is a beat taken, unless the body says the contrary.
  if (code != 200) return Status::Unavailable("it answered " + std::to_string(code));
  const auto said = nlohmann::json::parse(body, nullptr, /*allow_exceptions=*/false);
  if (!said.is_object()) return {};
  const auto success = said.find("success");
  if (success == said.end() || !success->is_boolean() || success->get<bool>()) return {};
  const auto why = said.find("msg");
  return Status::Unavailable("it refused: " +
                             (why == said.end() || !why->is_string()
                                  ? "it did not say why"
                                  : TerminalText(Shortened(why->get_ref<const std::string&>()))));
}

// Over a connected socket, which stays open. Not ok: the dashboard did not take the beat.
Status Post(int fd, const HostPort& dashboard, const std::string& form, int64_t deadline_ms) {
  // curl may write to them until it is cleaned up.
  std::string body;
  char why[CURL_ERROR_SIZE] = "";
  const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> curl(curl_easy_init(),
                                                                 &curl_easy_cleanup);
  if (curl == nullptr) return Status::Unavailable("libcurl does not start");
  const auto set = [&curl](CURLoption option, auto value) {
    curl_easy_setopt(curl.get(), option, value);
  };
  // 1. The request. The URL has digits, since curl's lookup of a name may outlast the deadline.
  std::string host = "Host: " + dashboard.ToString();
  std::string connection = "Connection: close";
  curl_slist last_header{connection.data(), nullptr};
  curl_slist headers{host.data(), &last_header};
  set(CURLOPT_URL, "http://127.0.0.1/registry/machine");
  set(CURLOPT_HTTPHEADER, &headers);
  set(CURLOPT_POSTFIELDS, form.c_str());
  // 2. The connection: the one there is, whatever the environment says of proxies.
  const auto open = [](void* is, curlsocktype, curl_sockaddr*) { return *static_cast<int*>(is); };
  const auto connect = [](void*, int, curlsocktype) { return CURL_SOCKOPT_ALREADY_CONNECTED; };
  const auto close = [](void*, int) { return 0; };
  set(CURLOPT_PROXY, "");
  set(CURLOPT_OPENSOCKETDATA, &fd);
  set(CURLOPT_OPENSOCKETFUNCTION, +open);
  set(CURLOPT_SOCKOPTFUNCTION, +connect);
  set(CURLOPT_CLOSESOCKETFUNCTION, +close);
  // 3. The answer. Of its head curl takes no more than 300 KB.
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_TIMEOUT_MS, std::max<int64_t>(deadline_ms - BoottimeMs(), 1));
  set(CURLOPT_WRITEFUNCTION, &Take);
  set(CURLOPT_WRITEDATA, &body);
  set(CURLOPT_ERRORBUFFER, why);
  const CURLcode result = curl_easy_perform(curl.get());
  if (result == CURLE_OPERATION_TIMEDOUT) {
    return Status::Unavailable(std::generic_category().message(ETIMEDOUT));
  }
  int64_t code = 0;
  curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &code);
  if (code != 0) return Judge(code, body);  // Also an answer cut short, by what came.
  if (result == CURLE_GOT_NOTHING) return Status::Unavailable("the connection was closed");
  if (result == CURLE_UNSUPPORTED_PROTOCOL || result == CURLE_WEIRD_SERVER_REPLY) {
    return Status::Unavailable("what answers there speaks no HTTP");
  }
  return Status::Unavailable(why);
}

bool IsLoopbackAddress(const std::string& ip) {
  const Result<net::SocketAddress> address = net::Resolve({ip, 0});
  return address.ok() && net::IsLoopback(*address);
}

}  // namespace

Result<ToldAddress> TellDashboard(const HostPort& dashboard, const SentinelMachine& machine,
                                  int64_t deadline_ms) {
  // A connection for each beat: it tells by which address the dashboard is reached.
  Result<net::Socket> socket = net::Socket::Connect(net::Endpoint::Tcp(dashboard), deadline_ms);
  if (!socket.ok()) return socket.status();
  const std::string ip = AddressToTell(machine, socket->fd());
  NOWCALLS_RETURN_IF_ERROR(Post(socket->fd(), dashboard, FormOf(machine, ip), deadline_ms));
  return ToldAddress{
      ip, !IsLoopbackAddress(ip) || IsLoopbackAddress(net::LocalEndOf(socket->fd()).host)};
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
