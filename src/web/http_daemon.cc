#include "web/http_daemon.h"

#include <microhttpd.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/clock.h"
#include "base/text.h"

namespace nowcalls::web {
namespace {

constexpr size_t kStreamBlockBytes = 16 * 1024;

MHD_Result CollectArgument(void* into, MHD_ValueKind /*kind*/, const char* key, const char* value) {
  auto* const query = static_cast<std::map<std::string, std::string>*>(into);
  constexpr size_t kArgumentsMax = 32;
  // MHD_NO ends the enumeration: more arguments are ignored.
  if (query->size() >= kArgumentsMax) return MHD_NO;
  (*query)[key] = value == nullptr ? "" : value;
  return MHD_YES;
}

int DescriptorOf(MHD_Connection* connection) {
  return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
}

void* SessionOf(MHD_Connection* connection) {
  return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION)->tls_session;
}

std::string HeaderOf(MHD_Connection* connection, const char* name) {
  const char* const value = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
  return value == nullptr ? "" : value;
}

}  // namespace

struct HttpDaemon::Impl {
  struct Delayed {
    Response response;
    int64_t at_ms = 0;  // BoottimeMs.
    bool resumed = false;
  };
  struct Body {
    Impl* server;
    std::string address;
    std::string text;
  };
  struct Stream {
    Impl* server;
    MHD_Connection* connection;
    std::string address;
    std::string pending;
    size_t sent = 0;
    size_t held_bytes = 0;  // Counted in answer_bytes, beside those that are pending.
    bool ends = false;
    std::function<std::optional<std::string>()> next;
  };

  MHD_Result Handle(MHD_Connection* connection, const char* url, const char* method,
                    size_t* upload_bytes, void** own);
  // False: there is no room for its kind.
  bool Decide(MHD_Connection* connection, const char* url) const;
  net::Peer PeerOf(MHD_Connection* connection) const;
  Request RequestOf(MHD_Connection* connection, const char* url) const;
  // What is wrong with a request, before any handler sees it.
  std::optional<Response> Refuse(MHD_Connection* connection, const char* url,
                                 std::string_view method);
  void LogRefusedHost(const std::string& host);
  // True: the answer waits for its time.
  bool Delay(MHD_Connection* connection, Response* response);
  std::optional<Response> TakeDelayed(MHD_Connection* connection);
  MHD_Result Answer(MHD_Connection* connection, Response response, bool closes);
  // Instead of an answer of so many bytes, for which there is no room.
  Response TooMuch(const std::string& address, size_t bytes) const;
  MHD_Response* MakeBody(const std::string& address, std::string text);
  MHD_Response* MakeStream(MHD_Connection* connection, const std::string& address,
                           Response* response);
  ssize_t ReadStream(Stream* stream, char* into, size_t max);
  void SetPending(Stream* stream, std::string pending);
  // Counts bytes that answers to `address` begin, or cease, to keep in memory.
  void Keep(const std::string& address, size_t bytes);
  void Drop(const std::string& address, size_t bytes);
  size_t KeptFor(const std::string& address) const;
  bool HasRoom(const std::string& address, size_t bytes) const;
  void OnConnection(MHD_Connection* connection, void** own, MHD_ConnectionNotificationCode what);
  void OnCompleted(MHD_Connection* connection);
  Status StartDaemon();
  // For what begins now.
  int64_t ExchangeEnd() const { return BoottimeMs() + options.exchange_ms_max; }

  Options options;
  Handler handler;
  Guests* guests = nullptr;
  MHD_Daemon* daemon = nullptr;
  size_t answer_bytes = 0;                        // Of the thread that drives, as its parts are.
  std::map<std::string, size_t> answer_bytes_of;  // By address.
  bool logged_refused_host = false;

  std::mutex mutex;
  bool ending = false;
  std::atomic<uint64_t> wakes = 0;
  std::set<MHD_Connection*> suspended;
  std::map<MHD_Connection*, Delayed> delayed;
  std::shared_ptr<const HttpsCertificate> certificate;  // Null: without TLS.
};

net::Peer HttpDaemon::Impl::PeerOf(MHD_Connection* connection) const {
  const int fd = DescriptorOf(connection);
  net::SocketAddress address;
  if (getpeername(fd, address.get(), &address.size) != 0) return {};  // It left.
  net::Peer peer = net::PeerOf(fd, address, 0);
  if (!options.tls) return peer;
  // Requests come after the handshake, which has checked what the client shows.
  peer.encrypted = true;
  peer.certificate = HttpsCertificate::ClientOf(SessionOf(connection));
  return peer;
}

std::optional<Response> HttpDaemon::Impl::Refuse(MHD_Connection* connection, const char* url,
                                                 std::string_view method) {
  const bool is_post = options.takes_posts && method == MHD_HTTP_METHOD_POST;
  if (!is_post && method != MHD_HTTP_METHOD_GET && method != MHD_HTTP_METHOD_HEAD) {
    Response refused = ErrorResponse(405, "only GET and HEAD are answered here");
    refused.headers.emplace_back("Allow", "GET, HEAD");
    return refused;
  }
  // A body would have to be read before the next request of the connection. So the connection is
  // closed behind the 413 (Answer).
  const std::string length = HeaderOf(connection, MHD_HTTP_HEADER_CONTENT_LENGTH);
  const bool has_body = (!length.empty() && length != "0") ||
                        !HeaderOf(connection, MHD_HTTP_HEADER_TRANSFER_ENCODING).empty();
  if (has_body && !is_post) return ErrorResponse(413, "a GET must not have a body");
  if (IsOneOf(url, options.probe_paths)) return std::nullopt;
  if (!options.tls && options.takes_plain) {
    const net::Peer peer = PeerOf(connection);
    if (!options.takes_plain(peer)) {
      return ErrorResponse(
          400, "HTTP without TLS is not answered to " + peer.host + " (--plain): ask by https://");
    }
  }
  // The name. Probes of HTTP/1.0 have none, and every browser has one.
  const std::string host = HeaderOf(connection, MHD_HTTP_HEADER_HOST);
  if (host.empty() || options.names->Has(HostOf(host))) return std::nullopt;
  LogRefusedHost(host);
  return ErrorResponse(421, options.names->Refusal());
}

// Once: a stranger can send as many as it likes.
void HttpDaemon::Impl::LogRefusedHost(const std::string& host) {
  if (std::exchange(logged_refused_host, true) || !options.log) return;
  options.log(/*problem=*/true, "HTTP refused a request to the host " + Quoted(host) +
                                    ": if that names this server, give it as --http-hosts. "
                                    "Further ones are not logged");
}

MHD_Result HttpDaemon::Impl::Handle(MHD_Connection* connection, const char* url, const char* method,
                                    size_t* upload_bytes, void** own) {
  // libmicrohttpd calls for the headers, for the parts of a body, which only a POST has, and for
  // the end; and again for that when a delayed answer's time has come.
  const bool closes = IsOneOf(url, options.short_paths) ||
                      (options.tls.has_value() && IsOneOf(url, options.probe_paths));
  if (*own == nullptr) {
    // The headers: a bad request is refused before any body comes.
    *own = this;
    if (options.tls && !Decide(connection, url)) return MHD_NO;
    std::optional<Response> refused = Refuse(connection, url, method);
    return refused ? Answer(connection, *std::move(refused), closes) : MHD_YES;
  }
  if (*upload_bytes > 0) {
    // A part of a body, which is dropped.
    *upload_bytes = 0;
    return MHD_YES;
  }
  // The end: the handler answers.
  if (auto waited = TakeDelayed(connection)) return Answer(connection, *std::move(waited), closes);
  Response response = handler(RequestOf(connection, url));
  if (response.delay_ms > 0 && Delay(connection, &response)) return MHD_YES;
  return Answer(connection, std::move(response), closes);
}

Request HttpDaemon::Impl::RequestOf(MHD_Connection* connection, const char* url) const {
  Request request;
  request.path = url;
  request.accept = HeaderOf(connection, MHD_HTTP_HEADER_ACCEPT);
  request.if_none_match = HeaderOf(connection, MHD_HTTP_HEADER_IF_NONE_MATCH);
  request.authorization = HeaderOf(connection, MHD_HTTP_HEADER_AUTHORIZATION);
  // A page, a style and a script file have other destinations; other clients say nothing.
  request.is_fetch = HeaderOf(connection, "Sec-Fetch-Dest") == "empty";
  request.peer = PeerOf(connection);
  MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, CollectArgument, &request.query);
  return request;
}

bool HttpDaemon::Impl::Decide(MHD_Connection* connection, const char* url) const {
  const GuestKind kind = IsOneOf(url, options.probe_paths)   ? GuestKind::kProbe
                         : IsOneOf(url, options.short_paths) ? GuestKind::kShort
                                                             : GuestKind::kOther;
  const int fd = DescriptorOf(connection);
  return guests->Decide(fd, kind, net::RemoteEndOf(fd).host, ExchangeEnd());
}

bool HttpDaemon::Impl::Delay(MHD_Connection* connection, Response* response) {
  const std::lock_guard lock(mutex);
  if (ending || delayed.size() >= kDelayedMax) return false;
  const int64_t at_ms = BoottimeMs() + response->delay_ms;
  delayed[connection] = {std::move(*response), at_ms};
  // No thread waits: SendDelayed resumes it.
  MHD_suspend_connection(connection);
  return true;
}

std::optional<Response> HttpDaemon::Impl::TakeDelayed(MHD_Connection* connection) {
  const std::lock_guard lock(mutex);
  auto taken = delayed.extract(connection);
  if (taken.empty()) return std::nullopt;
  return std::move(taken.mapped().response);
}

void HttpDaemon::SendDelayed(int64_t now_ms) {
  const std::lock_guard lock(impl_->mutex);
  for (auto& [connection, waiting] : impl_->delayed) {
    if (waiting.resumed || (waiting.at_ms > now_ms && !impl_->ending)) continue;
    waiting.resumed = true;
    MHD_resume_connection(connection);
  }
}

MHD_Result HttpDaemon::Impl::Answer(MHD_Connection* connection, Response response, bool closes) {
  const std::string address = net::RemoteEndOf(DescriptorOf(connection)).host;
  // Too large an answer is replaced before it is counted. Small ones always leave, so that errors
  // and health are told while readers are slow.
  const size_t bytes = response.body.size() + response.held_bytes;
  if (bytes > kSmallAnswerBytes && !HasRoom(address, bytes)) response = TooMuch(address, bytes);
  const bool endless = response.stream && !response.stream_ends;
  MHD_Response* const made = response.stream ? MakeStream(connection, address, &response)
                                             : MakeBody(address, std::move(response.body));
  if (made == nullptr) return MHD_NO;
  MHD_add_response_header(made, MHD_HTTP_HEADER_CONTENT_TYPE, response.type.c_str());
  MHD_add_response_header(made, "X-Content-Type-Options", "nosniff");
  for (const auto& [name, value] : response.headers) {
    MHD_add_response_header(made, name.c_str(), value.c_str());
  }
  if (options.closes || closes || response.status == 413) {
    MHD_add_response_header(made, MHD_HTTP_HEADER_CONNECTION, "close");
  }
  // A stream without end may last; any other answer must be taken in time.
  guests->Expect(DescriptorOf(connection), endless ? INT64_MAX : ExchangeEnd());
  // libmicrohttpd has its own reference until the answer has left.
  const MHD_Result queued =
      MHD_queue_response(connection, static_cast<unsigned>(response.status), made);
  MHD_destroy_response(made);
  return queued;
}

void HttpDaemon::Impl::Keep(const std::string& address, size_t bytes) {
  answer_bytes += bytes;
  answer_bytes_of[address] += bytes;
}

void HttpDaemon::Impl::Drop(const std::string& address, size_t bytes) {
  answer_bytes -= bytes;
  // An address without bytes leaves the map, so connections bound its size.
  if ((answer_bytes_of[address] -= bytes) == 0) answer_bytes_of.erase(address);
}

size_t HttpDaemon::Impl::KeptFor(const std::string& address) const {
  const auto of = answer_bytes_of.find(address);
  return of == answer_bytes_of.end() ? 0 : of->second;
}

bool HttpDaemon::Impl::HasRoom(const std::string& address, size_t bytes) const {
  return answer_bytes + bytes <= kAnswerBytesMax &&
         KeptFor(address) + bytes <= kAddressAnswerBytesMax;
}

Response HttpDaemon::Impl::TooMuch(const std::string& address, size_t bytes) const {
  if (bytes > kAddressAnswerBytesMax) {
    return ErrorResponse(503, "the answer would take " + std::to_string(bytes) + " of " +
                                  std::to_string(kAddressAnswerBytesMax) + " bytes: ask for less");
  }
  Response busy =
      ErrorResponse(503, "readers have not taken their answers yet, " +
                             std::to_string(answer_bytes) + " bytes, those of your address " +
                             std::to_string(KeptFor(address)) + ": ask again later, or for less");
  busy.headers.emplace_back("Retry-After", "1");
  return busy;
}

MHD_Response* HttpDaemon::Impl::MakeBody(const std::string& address, std::string text) {
  auto* const body = new Body{this, address, std::move(text)};
  Keep(address, body->text.size());
  // The bytes count until the reader has them or its connection ends: then the callback runs.
  return MHD_create_response_from_buffer_with_free_callback_cls(
      body->text.size(), body->text.data(),
      [](void* of) {
        auto* const taken = static_cast<Body*>(of);
        taken->server->Drop(taken->address, taken->text.size());
        delete taken;
      },
      body);
}

MHD_Response* HttpDaemon::Impl::MakeStream(MHD_Connection* connection, const std::string& address,
                                           Response* response) {
  auto* const stream = new Stream{.server = this,
                                  .connection = connection,
                                  .address = address,
                                  .pending = {},
                                  .held_bytes = response->held_bytes,
                                  .ends = response->stream_ends,
                                  .next = std::move(response->stream)};
  Keep(address, stream->held_bytes);
  SetPending(stream, std::move(response->body));
  return MHD_create_response_from_callback(
      MHD_SIZE_UNKNOWN, kStreamBlockBytes,
      [](void* of, uint64_t /*at*/, char* into, size_t max) {
        auto* const reading = static_cast<Stream*>(of);
        return reading->server->ReadStream(reading, into, max);
      },
      stream,
      [](void* of) {
        auto* const done = static_cast<Stream*>(of);
        done->server->SetPending(done, "");
        done->server->Drop(done->address, done->held_bytes);
        delete done;
      });
}

void HttpDaemon::Impl::SetPending(Stream* stream, std::string pending) {
  // The new bytes count before the old ones cease, so the sum never falls below the truth.
  Keep(stream->address, pending.size());
  Drop(stream->address, stream->pending.size());
  stream->pending = std::move(pending);
  stream->sent = 0;
}

ssize_t HttpDaemon::Impl::ReadStream(Stream* stream, char* into, size_t max) {
  while (stream->sent == stream->pending.size()) {
    SetPending(stream, "");
    // Read before next(): a later change means that next() may have missed what is new.
    const uint64_t woken = wakes.load();
    // An endless stream skips an event while readers fill the bound. A stream with an end does not:
    // its memory was counted as held_bytes.
    const bool has_room = stream->ends || HasRoom(stream->address, 1);
    std::optional<std::string> next = has_room ? stream->next() : "";
    if (!next) return MHD_CONTENT_READER_END_OF_STREAM;
    SetPending(stream, *std::move(next));
    if (!stream->pending.empty()) break;
    if (stream->ends) return MHD_CONTENT_READER_END_OF_STREAM;
    const std::lock_guard lock(mutex);
    if (ending) return MHD_CONTENT_READER_END_OF_STREAM;
    // WakeStreams ran between next() and the lock, and did not find this stream suspended: ask
    // again.
    if (has_room && woken != wakes.load()) continue;
    // Nothing to say: sleeps until WakeStreams.
    suspended.insert(stream->connection);
    MHD_suspend_connection(stream->connection);
    return 0;
  }
  const size_t bytes = std::min(max, stream->pending.size() - stream->sent);
  std::copy_n(stream->pending.data() + stream->sent, bytes, into);
  stream->sent += bytes;
  return static_cast<ssize_t>(bytes);
}

// An answer has left: from here on the time for the next request runs.
void HttpDaemon::Impl::OnCompleted(MHD_Connection* connection) {
  guests->Expect(DescriptorOf(connection), ExchangeEnd());
  const std::lock_guard lock(mutex);
  delayed.erase(connection);
}

// `own`: of the connection. With TLS it keeps the certificate that its session shows.
void HttpDaemon::Impl::OnConnection(MHD_Connection* connection, void** own,
                                    MHD_ConnectionNotificationCode what) {
  using Kept = std::shared_ptr<const HttpsCertificate>;
  if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
    // libmicrohttpd has not closed the descriptor yet, whose number may come again at once.
    guests->Leave(DescriptorOf(connection));
    delete static_cast<Kept*>(*own);
    return;
  }
  const std::lock_guard lock(mutex);
  if (certificate == nullptr) return;
  auto* const kept = new Kept(certificate);
  *own = kept;
  (*kept)->ShowIn(SessionOf(connection));
}

Status HttpDaemon::Impl::StartDaemon() {
  const auto on_request = [](void* of, MHD_Connection* connection, const char* url,
                             const char* method, const char* /*version*/, const char* /*upload*/,
                             size_t* upload_bytes, void** own) {
    return static_cast<Impl*>(of)->Handle(connection, url, method, upload_bytes, own);
  };
  const auto on_completed = [](void* of, MHD_Connection* connection, void** /*own*/,
                               MHD_RequestTerminationCode /*how*/) {
    static_cast<Impl*>(of)->OnCompleted(connection);
  };
  const auto on_connection = [](void* of, MHD_Connection* connection, void** own,
                                MHD_ConnectionNotificationCode what) {
    static_cast<Impl*>(of)->OnConnection(connection, own, what);
  };
  unsigned flags = MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME;
  flags |= options.own_thread ? unsigned{MHD_USE_EPOLL_INTERNAL_THREAD} : unsigned{MHD_USE_EPOLL};
  std::vector<MHD_OptionItem> more;
  const auto add = [&](MHD_OPTION option, const std::string& text) {
    // It is only read. NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast)
    more.push_back({option, 0, const_cast<char*>(text.c_str())});
  };
  // The same as on the token port.
  std::string priorities =
      "NORMAL:%NO_TICKETS:-CIPHER-ALL:+AES-256-GCM:+CHACHA20-POLY1305:+AES-128-GCM:-MAC-ALL:+AEAD"
      ":-KX-ALL:+ECDHE-ECDSA:+ECDHE-RSA:-GROUP-ALL:+GROUP-X25519:+GROUP-SECP256R1:+GROUP-SECP384R1"
      ":-VERS-ALL:+VERS-TLS1.3";
  if (certificate != nullptr) {
    flags |= MHD_USE_TLS;
    if (options.tls->version == net::TlsVersion::k12) priorities += ":+VERS-TLS1.2";
    // It wants a pair to begin with; connections show the latest (OnConnection).
    add(MHD_OPTION_HTTPS_MEM_CERT, certificate->certificate());
    add(MHD_OPTION_HTTPS_MEM_KEY, certificate->key());
    add(MHD_OPTION_HTTPS_PRIORITIES, priorities);
  }
  more.push_back({MHD_OPTION_END, 0, nullptr});
  daemon = MHD_start_daemon(
      flags, 0, nullptr, nullptr, static_cast<MHD_AccessHandlerCallback>(on_request), this,  //
      // Guests bounds them. Those that give way stay for a moment longer.
      MHD_OPTION_CONNECTION_LIMIT, 2 * kGuestsMax,                                       //
      MHD_OPTION_CONNECTION_TIMEOUT, kIdleSecondsMax,                                    //
      MHD_OPTION_CONNECTION_MEMORY_LIMIT, size_t{kRequestBytesMax + kStreamBlockBytes},  //
      MHD_OPTION_NOTIFY_COMPLETED, static_cast<MHD_RequestCompletedCallback>(on_completed),
      this,  //
      MHD_OPTION_NOTIFY_CONNECTION, static_cast<MHD_NotifyConnectionCallback>(on_connection),
      this,  //
      MHD_OPTION_ARRAY, more.data(), MHD_OPTION_END);
  if (daemon != nullptr) return {};
  return Status::IoError("cannot serve HTTP: " + std::generic_category().message(errno));
}

Result<std::unique_ptr<HttpDaemon>> HttpDaemon::Start(const Options& options, Guests* guests,
                                                      Handler handler) {
  auto impl = std::make_unique<Impl>();
  impl->options = options;
  impl->handler = std::move(handler);
  impl->guests = guests;
  if (options.tls) {
    auto loaded = HttpsCertificate::Load(*options.tls);
    if (!loaded.ok()) return loaded.status();
    impl->certificate = *std::move(loaded);
    // The certificate has them.
    impl->options.tls->certificate.clear();
    impl->options.tls->key.clear();
    impl->options.tls->client_ca.clear();
  }
  NOWCALLS_RETURN_IF_ERROR(impl->StartDaemon());
  return std::unique_ptr<HttpDaemon>(new HttpDaemon(std::move(impl)));
}

Status HttpDaemon::SetCertificate(const Https& https) {
  auto loaded = HttpsCertificate::Load(https);
  if (!loaded.ok()) return loaded.status();
  const std::lock_guard lock(impl_->mutex);
  impl_->certificate = *std::move(loaded);
  return {};
}

HttpDaemon::HttpDaemon(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

HttpDaemon::~HttpDaemon() {
  // libmicrohttpd must not be stopped while connections are suspended. `ending` comes before the
  // wake, so that none suspends again.
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->ending = true;
  }
  SendDelayed(0);
  WakeStreams();
  MHD_stop_daemon(impl_->daemon);
}

void HttpDaemon::Add(int fd, const net::SocketAddress& peer) {
  // libmicrohttpd closes the descriptor if it does not take it.
  if (MHD_add_connection(impl_->daemon, fd, peer.get(), peer.size) == MHD_YES) {
    impl_->guests->Settle(fd);
  } else {
    impl_->guests->Leave(fd);
  }
}

void HttpDaemon::WakeStreams() {
  const std::lock_guard lock(impl_->mutex);
  ++impl_->wakes;
  for (MHD_Connection* connection : std::exchange(impl_->suspended, {})) {
    MHD_resume_connection(connection);
  }
}

int HttpDaemon::wait_fd() const {
  return MHD_get_daemon_info(impl_->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
}

int64_t HttpDaemon::WaitMsMax() const {
  MHD_UNSIGNED_LONG_LONG ms = 0;
  if (MHD_get_timeout(impl_->daemon, &ms) == MHD_NO) return INT64_MAX;
  return static_cast<int64_t>(std::min<MHD_UNSIGNED_LONG_LONG>(ms, INT64_MAX));
}

void HttpDaemon::Run() { MHD_run(impl_->daemon); }

}  // namespace nowcalls::web
