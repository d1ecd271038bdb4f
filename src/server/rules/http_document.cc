#include "server/rules/http_document.h"

#include <curl/curl.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "nowcalls_version.h"
#include "server/config/files.h"

namespace nowcalls::server {
namespace {

constexpr int64_t kConnectMsMax = 5'000;
constexpr int kPollMs = 1'000;  // Interrupt wakes it.
// A file that was changed twice in a second has one time for both.
constexpr time_t kTrustedAfterS = 2;

struct Headers {
  ~Headers() { curl_slist_free_all(list); }
  // Of two pointers only the new one is valid, unless there is no memory.
  void Add(const std::string& line) {
    curl_slist* const longer = curl_slist_append(list, line.c_str());
    if (longer != nullptr) list = longer;
  }
  curl_slist* list = nullptr;
};

std::string HeaderOf(CURL* easy, const char* name) {
  curl_header* header = nullptr;
  const bool found = curl_easy_header(easy, name, 0, CURLH_HEADER, -1, &header) == CURLHE_OK;
  return found ? header->value : std::string();
}

// Empty: there is none, or it may also be the time of a change that is yet to come.
std::string TrustedLastModified(CURL* easy) {
  std::string modified = HeaderOf(easy, "Last-Modified");
  const time_t at = curl_getdate(modified.c_str(), nullptr);
  const time_t now = curl_getdate(HeaderOf(easy, "Date").c_str(), nullptr);
  return at >= 0 && now >= at + kTrustedAfterS ? modified : std::string();
}

bool IsHeader(std::string_view line) {
  const size_t colon = line.find(':');
  const auto plain = [](char c) { return static_cast<unsigned char>(c) >= ' ' && c != 0x7f; };
  return colon != std::string_view::npos && colon > 0 &&
         line.substr(0, colon).find(' ') == std::string_view::npos &&
         std::all_of(line.begin(), line.end(), plain);
}

}  // namespace

// One answer on its way.
struct HttpDocument::Transfer {
  size_t body_bytes_max = 0;
  size_t head_bytes = 0;
  std::string body{};
  char why[CURL_ERROR_SIZE] = "";

  // curl ends a transfer of which not all is taken.
  static size_t TakeBody(const char* bytes, size_t /*one*/, size_t size, void* to) {
    auto* const transfer = static_cast<Transfer*>(to);
    if (size > transfer->body_bytes_max - transfer->body.size()) return 0;
    transfer->body.append(bytes, size);
    return size;
  }
  static size_t TakeHead(const char* /*bytes*/, size_t /*one*/, size_t size, void* to) {
    auto* const transfer = static_cast<Transfer*>(to);
    transfer->head_bytes += size;
    return transfer->head_bytes > kHeadBytesMax ? 0 : size;
  }

  Status StatusOf(CURLcode result, CURL* easy) const {
    if (result == CURLE_OK) return Status::Ok();
    // The words of curl tell milliseconds, which are others each time.
    if (result == CURLE_OPERATION_TIMEDOUT) {
      return Status::Unavailable("has not answered in time");
    }
    if (result == CURLE_COULDNT_CONNECT) {
      long error = 0;  // NOLINT(google-runtime-int): curl's type.
      curl_easy_getinfo(easy, CURLINFO_OS_ERRNO, &error);
      return Status::Unavailable("cannot be reached: " +
                                 (error == 0
                                      ? "no connection"
                                      : std::generic_category().message(static_cast<int>(error))));
    }
    if (head_bytes > kHeadBytesMax) {
      return Status::Unavailable("has a head of more than " + std::to_string(kHeadBytesMax) +
                                 " bytes");
    }
    if (result == CURLE_WRITE_ERROR || result == CURLE_FILESIZE_EXCEEDED) {
      return Status::Unavailable("is longer than " + std::to_string(body_bytes_max) + " bytes");
    }
    return Status::Unavailable(std::string("cannot be read: ") +
                               (*why == 0 ? curl_easy_strerror(result) : why));
  }
};

// A connection that is kept, and the handles behind it.
class HttpDocument::Curl {
 public:
  explicit Curl(std::string ca_file) : ca_file_(std::move(ca_file)) {}
  ~Curl() {
    curl_easy_cleanup(easy_);
    curl_multi_cleanup(multi_);
  }
  Curl(const Curl&) = delete;
  Curl& operator=(const Curl&) = delete;

  bool ready() const { return easy_ != nullptr && multi_ != nullptr; }

  void Interrupt() {
    interrupted_ = true;
    curl_multi_wakeup(multi_);
  }
  bool TakeInterrupt() { return interrupted_.exchange(false); }

  // nullopt: interrupted.
  std::optional<Result<HttpReply>> Get(const HttpRequest& request, size_t body_bytes_max) {
    Transfer transfer{.body_bytes_max = body_bytes_max};
    Headers headers;
    for (const std::string& line : request.headers) headers.Add(line);
    SetUp(request, headers, &transfer);
    curl_multi_add_handle(multi_, easy_);
    const std::optional<CURLcode> result = Perform();
    std::optional<Result<HttpReply>> reply;
    if (result) reply = ReplyOf(*result, &transfer);
    // Also ends a transfer that is under way.
    curl_multi_remove_handle(multi_, easy_);
    curl_easy_reset(easy_);
    return reply;
  }

 private:
  void SetUp(const HttpRequest& request, const Headers& headers, Transfer* transfer) {
    const auto set = [this](CURLoption option, auto value) {
      curl_easy_setopt(easy_, option, value);
    };
    // 1. The request.
    set(CURLOPT_URL, request.url.c_str());
    set(CURLOPT_PROTOCOLS_STR, "http,https");
    set(CURLOPT_HTTPHEADER, headers.list);
    set(CURLOPT_USERAGENT, "nowcalls-server/" NOWCALLS_VERSION);
    set(CURLOPT_PROXY, "");
    // 2. Whom it believes.
    set(CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2);
    if (!ca_file_.empty()) {
      set(CURLOPT_CAINFO, ca_file_.c_str());
      set(CURLOPT_CAPATH, static_cast<const char*>(nullptr));
    }
    // 3. Bounds. QUICK_EXIT: a lookup of a name that hangs is left behind.
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_QUICK_EXIT, 1L);
    set(CURLOPT_CONNECTTIMEOUT_MS, kConnectMsMax);
    set(CURLOPT_TIMEOUT_MS, request.answer_ms_max);
    set(CURLOPT_MAXFILESIZE_LARGE, static_cast<curl_off_t>(transfer->body_bytes_max));
    // 4. The answer.
    set(CURLOPT_WRITEFUNCTION, &Transfer::TakeBody);
    set(CURLOPT_WRITEDATA, transfer);
    set(CURLOPT_HEADERFUNCTION, &Transfer::TakeHead);
    set(CURLOPT_HEADERDATA, transfer);
    set(CURLOPT_ERRORBUFFER, transfer->why);
  }

  std::optional<CURLcode> Perform() {
    while (true) {
      if (TakeInterrupt()) return std::nullopt;
      int running = 0;
      if (curl_multi_perform(multi_, &running) != CURLM_OK) return CURLE_FAILED_INIT;
      if (running == 0) break;
      curl_multi_poll(multi_, nullptr, 0, kPollMs, nullptr);
    }
    int left = 0;
    const CURLMsg* const message = curl_multi_info_read(multi_, &left);
    return message == nullptr ? CURLE_FAILED_INIT : message->data.result;
  }

  Result<HttpReply> ReplyOf(CURLcode result, Transfer* transfer) const {
    NOWCALLS_RETURN_IF_ERROR(transfer->StatusOf(result, easy_));
    HttpReply reply;
    long code = 0;  // NOLINT(google-runtime-int): curl's type.
    curl_easy_getinfo(easy_, CURLINFO_RESPONSE_CODE, &code);
    reply.code = code;
    reply.etag = HeaderOf(easy_, "ETag");
    reply.last_modified = TrustedLastModified(easy_);
    reply.consul_index = HeaderOf(easy_, "X-Consul-Index");
    reply.body = std::move(transfer->body);
    return reply;
  }

  const std::string ca_file_;
  CURLM* const multi_ = curl_multi_init();
  CURL* const easy_ = curl_easy_init();
  std::atomic<bool> interrupted_ = false;
};

Result<std::unique_ptr<HttpDocument>> HttpDocument::Make(const std::string& url,
                                                         const HttpDocumentOptions& options) {
  auto curl = std::make_unique<Curl>(options.ca_file);
  if (!curl->ready()) return Status::Unavailable("libcurl does not start");
  return std::unique_ptr<HttpDocument>(new HttpDocument(url, options, std::move(curl)));
}

HttpDocument::HttpDocument(const std::string& url, const HttpDocumentOptions& options,
                           std::unique_ptr<Curl> curl)
    : options_(options), poll_(url, options.poll_ms), curl_(std::move(curl)) {}

HttpDocument::~HttpDocument() = default;

void HttpDocument::Interrupt() { curl_->Interrupt(); }

Fetched HttpDocument::Fetch(bool again) {
  if (curl_->TakeInterrupt()) return {};
  HttpRequest request = poll_.Next(again);
  if (const Status added = AddHeaders(&request); !added.ok()) return poll_.Take(added);
  std::optional<Result<HttpReply>> reply = curl_->Get(request, options_.body_bytes_max);
  if (!reply) return {};
  return poll_.Take(*std::move(reply));
}

// A token may be renewed while the server runs.
Status HttpDocument::AddHeaders(HttpRequest* request) const {
  if (options_.header_file.empty()) return Status::Ok();
  const Result<std::string> text = ReadWholeFile(options_.header_file, kHeaderFileBytesMax);
  if (!text.ok()) {
    return Status::Unavailable("is not asked: rules-header-file: " + text.status().message());
  }
  int number = 0;
  for (std::string_view left = *text; !left.empty();) {
    const size_t end = std::min(left.find('\n'), left.size());
    std::string_view line = left.substr(0, end);
    left.remove_prefix(std::min(end + 1, left.size()));
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || line.starts_with('#')) continue;
    if (!IsHeader(line)) {
      return Status::Unavailable("is not asked: rules-header-file: line " + std::to_string(number) +
                                 " of " + options_.header_file + " is no `Name: value`");
    }
    request->headers.emplace_back(line);
  }
  return Status::Ok();
}

}  // namespace nowcalls::server
