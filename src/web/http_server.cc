#include "web/http_server.h"

#include <microhttpd.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/background_thread.h"
#include "base/clock.h"
#include "base/listen_address.h"

namespace nowcalls::web {
namespace {

constexpr int kBacklog = 128;
constexpr size_t kStreamBlockBytes = 16 * 1024;

bool SetOptions(int fd) {
  const int on = 1;
  return setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0;
}

Result<int> ListenOnFirst(const HttpServer::Options& options) {
  HostPort name = options.listen;
  for (uint16_t tried = 0;; ++tried, ++name.port) {
    Result<int> fd = Listen(name, kBacklog, SetOptions);
    const bool last = tried == options.ports_above || name.port == UINT16_MAX;
    if (fd.ok() || last || fd.status().code() != StatusCode::kIoError) return fd;
  }
}

bool IsLoopbackHost(const std::string& digits) {
  const Result<SocketAddress> address = Resolve({digits, 0});
  return address.ok() && IsLoopback(*address);
}

MHD_Result CollectArgument(void* into, MHD_ValueKind /*kind*/, const char* key, const char* value) {
  auto* const query = static_cast<std::map<std::string, std::string>*>(into);
  constexpr size_t kArgumentsMax = 32;
  if (query->size() >= kArgumentsMax) return MHD_NO;
  (*query)[key] = value == nullptr ? "" : value;
  return MHD_YES;
}

int DescriptorOf(MHD_Connection* connection) {
  return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
}

std::string HeaderOf(MHD_Connection* connection, const char* name) {
  const char* const value = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
  return value == nullptr ? "" : value;
}

}  // namespace

struct HttpServer::Impl {
  // A connection, as long as it is open.
  struct Visitor {
    int fd = -1;
    int64_t close_at_ms = 0;  // Unless it gets on.
  };
  struct Body {
    Impl* server;
    std::string text;
  };
  struct Stream {
    Impl* server;
    MHD_Connection* connection;
    std::string pending;
    size_t sent = 0;
    std::function<std::string()> next;
  };

  MHD_Result Handle(MHD_Connection* connection, const char* url, const char* method,
                    size_t* upload_bytes, void** own);
  // What is wrong with a request, before any handler sees it.
  std::optional<Response> Refuse(MHD_Connection* connection, std::string_view method) const;
  MHD_Result Answer(MHD_Connection* connection, Response response);
  MHD_Response* MakeBody(std::string text);
  MHD_Response* MakeStream(MHD_Connection* connection, Response* response);
  ssize_t ReadStream(Stream* stream, char* into, size_t max);
  // For what begins now.
  int64_t ExchangeEnd() const { return BoottimeMs() + options.exchange_ms_max; }
  void Expect(MHD_Connection* connection, int64_t close_at_ms);
  void CloseSlow();

  Options options;
  Handler handler;
  HostPort address;
  bool loopback = false;
  MHD_Daemon* daemon = nullptr;
  size_t answer_bytes = 0;  // That readers have not taken yet; the thread's of the daemon.

  std::mutex mutex;
  bool ending = false;
  std::atomic<uint64_t> wakes = 0;
  std::map<MHD_Connection*, Visitor> visitors;
  std::set<MHD_Connection*> suspended;
};

std::optional<Response> HttpServer::Impl::Refuse(MHD_Connection* connection,
                                                 std::string_view method) const {
  const bool is_post = options.takes_posts && method == MHD_HTTP_METHOD_POST;
  if (!is_post && method != MHD_HTTP_METHOD_GET && method != MHD_HTTP_METHOD_HEAD) {
    Response refused = ErrorResponse(405, "only GET and HEAD are answered here");
    refused.headers.emplace_back("Allow", "GET, HEAD");
    return refused;
  }
  const std::string length = HeaderOf(connection, MHD_HTTP_HEADER_CONTENT_LENGTH);
  const bool has_body = (!length.empty() && length != "0") ||
                        !HeaderOf(connection, MHD_HTTP_HEADER_TRANSFER_ENCODING).empty();
  if (has_body && !is_post) return ErrorResponse(413, "a GET must not have a body");
  if (!loopback) return std::nullopt;
  const std::string host = HostOf(HeaderOf(connection, MHD_HTTP_HEADER_HOST));
  if (host == "localhost" || host == "127.0.0.1" || host == "::1" || host == address.host ||
      host == options.listen.host) {
    return std::nullopt;
  }
  return ErrorResponse(421, "this address answers under http://" + address.ToString() +
                                "/ alone, and the Host header says otherwise");
}

MHD_Result HttpServer::Impl::Handle(MHD_Connection* connection, const char* url, const char* method,
                                    size_t* upload_bytes, void** own) {
  // It is called for the headers, the parts of a body, which only a POST has, and for the end.
  if (*own == nullptr) {
    *own = this;
    std::optional<Response> refused = Refuse(connection, method);
    return refused ? Answer(connection, *std::move(refused)) : MHD_YES;
  }
  if (*upload_bytes > 0) {
    *upload_bytes = 0;
    return MHD_YES;
  }
  Request request;
  request.path = url;
  request.accept = HeaderOf(connection, MHD_HTTP_HEADER_ACCEPT);
  request.if_none_match = HeaderOf(connection, MHD_HTTP_HEADER_IF_NONE_MATCH);
  request.peer = PeerOf(DescriptorOf(connection)).host;
  MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, CollectArgument, &request.query);
  return Answer(connection, handler(request));
}

MHD_Result HttpServer::Impl::Answer(MHD_Connection* connection, Response response) {
  const size_t bytes = response.body.size();
  if (bytes > kSmallAnswerBytes && answer_bytes > 0 && answer_bytes + bytes > kAnswerBytesMax) {
    response = ErrorResponse(503, "other readers have not taken their answers yet, " +
                                      std::to_string(answer_bytes) +
                                      " bytes: ask again later, or for less");
    response.headers.emplace_back("Retry-After", "1");
  }
  MHD_Response* const made =
      response.stream ? MakeStream(connection, &response) : MakeBody(std::move(response.body));
  if (made == nullptr) return MHD_NO;
  MHD_add_response_header(made, MHD_HTTP_HEADER_CONTENT_TYPE, response.type.c_str());
  MHD_add_response_header(made, "X-Content-Type-Options", "nosniff");
  for (const auto& [name, value] : response.headers) {
    MHD_add_response_header(made, name.c_str(), value.c_str());
  }
  if (options.closes || response.status == 413) {
    MHD_add_response_header(made, MHD_HTTP_HEADER_CONNECTION, "close");
  }
  Expect(connection, response.stream ? INT64_MAX : ExchangeEnd());
  const MHD_Result queued =
      MHD_queue_response(connection, static_cast<unsigned>(response.status), made);
  MHD_destroy_response(made);
  return queued;
}

MHD_Response* HttpServer::Impl::MakeBody(std::string text) {
  auto* const body = new Body{this, std::move(text)};
  answer_bytes += body->text.size();
  return MHD_create_response_from_buffer_with_free_callback_cls(
      body->text.size(), body->text.data(),
      [](void* of) {
        auto* const taken = static_cast<Body*>(of);
        taken->server->answer_bytes -= taken->text.size();
        delete taken;
      },
      body);
}

MHD_Response* HttpServer::Impl::MakeStream(MHD_Connection* connection, Response* response) {
  auto* const stream = new Stream{this, connection, std::move(response->body), 0, response->stream};
  return MHD_create_response_from_callback(
      MHD_SIZE_UNKNOWN, kStreamBlockBytes,
      [](void* of, uint64_t /*at*/, char* into, size_t max) {
        auto* const reading = static_cast<Stream*>(of);
        return reading->server->ReadStream(reading, into, max);
      },
      stream, [](void* of) { delete static_cast<Stream*>(of); });
}

ssize_t HttpServer::Impl::ReadStream(Stream* stream, char* into, size_t max) {
  while (stream->sent == stream->pending.size()) {
    const uint64_t woken = wakes.load();
    stream->pending = stream->next();
    stream->sent = 0;
    if (!stream->pending.empty()) break;
    const std::lock_guard lock(mutex);
    if (ending) return MHD_CONTENT_READER_END_OF_STREAM;
    if (woken != wakes.load()) continue;  // What is new came too late for next(), and woke nobody.
    suspended.insert(stream->connection);
    MHD_suspend_connection(stream->connection);
    return 0;
  }
  const size_t bytes = std::min(max, stream->pending.size() - stream->sent);
  std::copy_n(stream->pending.data() + stream->sent, bytes, into);
  stream->sent += bytes;
  return static_cast<ssize_t>(bytes);
}

void HttpServer::Impl::Expect(MHD_Connection* connection, int64_t close_at_ms) {
  const std::lock_guard lock(mutex);
  const auto found = visitors.find(connection);
  if (found != visitors.end()) found->second.close_at_ms = close_at_ms;
}

// libmicrohttpd itself ends connections that are silent. These send a byte now and then.
void HttpServer::Impl::CloseSlow() {
  const int64_t now_ms = BoottimeMs();
  for (const auto& [connection, visitor] : visitors) {
    if (visitor.close_at_ms <= now_ms) shutdown(visitor.fd, SHUT_RDWR);
  }
}

Result<std::unique_ptr<HttpServer>> HttpServer::Start(const Options& options, Handler handler) {
  const Result<int> fd = ListenOnFirst(options);
  if (!fd.ok()) return fd.status();
  auto impl = std::make_unique<Impl>();
  impl->options = options;
  impl->handler = std::move(handler);
  impl->address = LocalEndOf(*fd);
  impl->loopback = IsLoopbackHost(impl->address.host);
  const auto on_request = [](void* of, MHD_Connection* connection, const char* url,
                             const char* method, const char* /*version*/, const char* /*upload*/,
                             size_t* upload_bytes, void** own) {
    return static_cast<Impl*>(of)->Handle(connection, url, method, upload_bytes, own);
  };
  const auto on_completed = [](void* of, MHD_Connection* connection, void** /*own*/,
                               MHD_RequestTerminationCode /*how*/) {
    auto* const server = static_cast<Impl*>(of);
    server->Expect(connection, server->ExchangeEnd());
  };
  const auto on_connection = [](void* of, MHD_Connection* connection, void** /*own*/,
                                MHD_ConnectionNotificationCode what) {
    auto* const server = static_cast<Impl*>(of);
    const std::lock_guard lock(server->mutex);
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
      server->visitors[connection] = {DescriptorOf(connection), server->ExchangeEnd()};
    } else {
      server->visitors.erase(connection);
    }
  };
  impl->daemon = MHD_start_daemon(
      MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME, 0, nullptr, nullptr,
      static_cast<MHD_AccessHandlerCallback>(on_request), impl.get(),                    //
      MHD_OPTION_LISTEN_SOCKET, *fd,                                                     //
      MHD_OPTION_CONNECTION_LIMIT, kConnectionsMax,                                      //
      MHD_OPTION_PER_IP_CONNECTION_LIMIT, kConnectionsPerAddressMax,                     //
      MHD_OPTION_CONNECTION_TIMEOUT, kIdleSecondsMax,                                    //
      MHD_OPTION_CONNECTION_MEMORY_LIMIT, size_t{kRequestBytesMax + kStreamBlockBytes},  //
      MHD_OPTION_NOTIFY_COMPLETED, static_cast<MHD_RequestCompletedCallback>(on_completed),
      impl.get(),  //
      MHD_OPTION_NOTIFY_CONNECTION, static_cast<MHD_NotifyConnectionCallback>(on_connection),
      impl.get(),  //
      MHD_OPTION_END);
  if (impl->daemon == nullptr) {
    const std::string why = std::generic_category().message(errno);
    close(*fd);
    return Status::IoError("cannot serve HTTP on " + impl->address.ToString() + ": " + why);
  }
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

HttpServer::~HttpServer() {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->ending = true;
  }
  WakeStreams();
  MHD_stop_daemon(impl_->daemon);
}

const HostPort& HttpServer::address() const { return impl_->address; }

void HttpServer::WakeStreams() {
  const std::lock_guard lock(impl_->mutex);
  ++impl_->wakes;
  for (MHD_Connection* connection : std::exchange(impl_->suspended, {})) {
    MHD_resume_connection(connection);
  }
  impl_->CloseSlow();
}

}  // namespace nowcalls::web
