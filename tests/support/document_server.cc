#include "support/document_server.h"

#include <netinet/in.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <stdexcept>

namespace nowcalls::testing {
namespace {

constexpr int kManyHeaders = 100;
constexpr size_t kLongHeaderBytes = 20'000;

MHD_Result TakeHeader(void* to, MHD_ValueKind /*kind*/, const char* name, const char* value) {
  std::string small(name);
  std::transform(small.begin(), small.end(), small.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  (*static_cast<std::map<std::string, std::string>*>(to))[small] = value == nullptr ? "" : value;
  return MHD_YES;
}

MHD_Result TakeArgument(void* to, MHD_ValueKind /*kind*/, const char* name, const char* value) {
  auto* const target = static_cast<std::string*>(to);
  *target += target->find('?') == std::string::npos ? '?' : '&';
  *target += name;
  if (value != nullptr) *target += std::string("=") + value;
  return MHD_YES;
}

}  // namespace

DocumentServer::DocumentServer(IssuedCertificate tls) : tls_(std::move(tls)) { Start(); }

DocumentServer::~DocumentServer() { Stop(); }

std::string DocumentServer::url(const std::string& target) const {
  return std::string(tls_.certificate.empty() ? "http" : "https") +
         "://127.0.0.1:" + std::to_string(port_) + target;
}

void DocumentServer::Set(const std::string& document) {
  const std::lock_guard lock(mutex_);
  document_ = document;
  ++version_;
  changed_.notify_all();
}

void DocumentServer::Behave(Manner manner) {
  const std::lock_guard lock(mutex_);
  manner_ = manner;
  changed_.notify_all();
}

void DocumentServer::SetCode(int code) {
  const std::lock_guard lock(mutex_);
  code_ = code;
}

void DocumentServer::SetHeader(const std::string& name, const std::string& value) {
  const std::lock_guard lock(mutex_);
  headers_[name] = value;
}

void DocumentServer::Stop() {
  if (daemon_ == nullptr) return;
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    changed_.notify_all();
  }
  MHD_stop_daemon(daemon_);
  daemon_ = nullptr;
}

void DocumentServer::Start() {
  ending_ = false;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port_);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool tls = !tls_.certificate.empty();
  const unsigned flags = MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD |
                         (tls ? MHD_USE_TLS : MHD_NO_FLAG);
  std::vector<MHD_OptionItem> more;
  const auto add = [&](MHD_OPTION option, const std::string& text) {
    // It is only read. NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast)
    more.push_back({option, 0, const_cast<char*>(text.c_str())});
  };
  if (tls) {
    add(MHD_OPTION_HTTPS_MEM_CERT, tls_.certificate);
    add(MHD_OPTION_HTTPS_MEM_KEY, tls_.key);
  }
  more.push_back({MHD_OPTION_END, 0, nullptr});
  daemon_ = MHD_start_daemon(
      flags, port_, nullptr, nullptr, static_cast<MHD_AccessHandlerCallback>(&OnRequest), this,  //
      MHD_OPTION_SOCK_ADDR, &address,                                                            //
      MHD_OPTION_LISTENING_ADDRESS_REUSE, 1U,                                                    //
      MHD_OPTION_CONNECTION_MEMORY_LIMIT, 2 * kManyHeaders * kLongHeaderBytes,                   //
      MHD_OPTION_ARRAY, more.data(), MHD_OPTION_END);
  if (daemon_ == nullptr) throw std::runtime_error("libmicrohttpd does not start");
  port_ = MHD_get_daemon_info(daemon_, MHD_DAEMON_INFO_BIND_PORT)->port;
}

std::vector<DocumentServer::Question> DocumentServer::questions() const {
  const std::lock_guard lock(mutex_);
  return questions_;
}

int DocumentServer::answered(int code) const {
  const std::lock_guard lock(mutex_);
  const auto found = answered_.find(code);
  return found == answered_.end() ? 0 : found->second;
}

ssize_t DocumentServer::Bytes(void* self, uint64_t /*at*/, char* to, size_t size) {
  auto* const server = static_cast<DocumentServer*>(self);
  const std::lock_guard lock(server->mutex_);
  if (server->ending_) return MHD_CONTENT_READER_END_WITH_ERROR;
  std::memset(to, ' ', size);
  return static_cast<ssize_t>(size);
}

DocumentServer::Answer DocumentServer::AnswerTo(const Question& question,
                                                const std::string& index) {
  std::unique_lock lock(mutex_);
  questions_.push_back(question);
  const auto waits = [&] {
    if (ending_) return false;
    return manner_ == Manner::kSilent ||
           (manner_ == Manner::kConsul && index == std::to_string(version_));
  };
  changed_.wait(lock, [&] { return !waits(); });
  Answer answer{.body = document_, .headers = headers_};
  const std::string tag = "\"v" + std::to_string(version_) + "\"";
  const auto has = question.headers.find("if-none-match");
  switch (manner_) {
    case Manner::kTagged:
      answer.headers["ETag"] = tag;
      if (has != question.headers.end() && has->second == tag) answer = {304, "", {}};
      break;
    case Manner::kConsul: answer.headers["X-Consul-Index"] = std::to_string(version_); break;
    case Manner::kEndless: answer.endless = true; break;
    case Manner::kEndlessHead:
      for (int i = 0; i < kManyHeaders; ++i) {
        answer.headers["X-Long-" + std::to_string(i)] = std::string(kLongHeaderBytes, 'x');
      }
      break;
    case Manner::kPlain:
    case Manner::kSilent: break;
  }
  if (code_ != 0) answer.code = code_;
  ++answered_[answer.code];
  return answer;
}

MHD_Result DocumentServer::OnRequest(void* self, MHD_Connection* connection, const char* url,
                                     const char* /*method*/, const char* /*version*/,
                                     const char* /*data*/, size_t* /*size*/, void** request) {
  // The first call has the head alone.
  static int seen = 0;
  if (*request == nullptr) {
    *request = &seen;
    return MHD_YES;
  }
  auto* const server = static_cast<DocumentServer*>(self);
  Question question{.target = url, .headers = {}};
  MHD_get_connection_values(connection, MHD_HEADER_KIND, &TakeHeader, &question.headers);
  MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, &TakeArgument, &question.target);
  const char* const index = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "index");
  const Answer answer = server->AnswerTo(question, index == nullptr ? "" : index);
  MHD_Response* const response =
      answer.endless
          ? MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 64 * 1024, &Bytes, self, nullptr)
          : MHD_create_response_from_buffer(
                answer.body.size(),
                // It is copied. NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast)
                const_cast<char*>(answer.body.data()), MHD_RESPMEM_MUST_COPY);
  for (const auto& [name, value] : answer.headers) {
    MHD_add_response_header(response, name.c_str(), value.c_str());
  }
  const MHD_Result queued =
      MHD_queue_response(connection, static_cast<unsigned>(answer.code), response);
  MHD_destroy_response(response);
  return queued;
}

}  // namespace nowcalls::testing
