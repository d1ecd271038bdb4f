// A client of HTTP and HTTPS for tests, by libcurl.
//
// Thread: any.
#ifndef NOWCALLS_UNIT_WEB_HTTP_ASKING_H_
#define NOWCALLS_UNIT_WEB_HTTP_ASKING_H_

#include <curl/curl.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "support/certificates.h"
#include "support/poll_until.h"
#include "web/http.h"

namespace nowcalls::testing {

struct HttpQuestion {
  std::string url;
  std::vector<std::string> headers{};  // "NAME: VALUE"
  std::string user{};                  // "NAME:SECRET" of Basic.
  std::string ca{};                    // PEM, of which an https server must be.
  IssuedCertificate own{};             // Shown to an https server.
  std::string source{};                // The address from which it comes; empty: any.
  std::atomic<bool>* begun = nullptr;  // Set once the answer has a body.
};

struct HttpAnswer {
  int status = 0;      // 0: none; see `error`.
  std::string head{};  // In small letters.
  std::string body{};
  std::string error{};
  int64_t took_ms = 0;
};

// curl copies it, though its type says that it may write there.
inline curl_blob BlobOf(const std::string& text) {
  auto* const bytes = const_cast<char*>(text.data());  // NOLINT(*-const-cast)
  return {bytes, text.size(), CURL_BLOB_COPY};
}

inline HttpAnswer Ask(const HttpQuestion& question) {
  const std::unique_ptr<CURL, void (*)(CURL*)> curl(curl_easy_init(), curl_easy_cleanup);
  HttpAnswer answer;
  const auto append = +[](char* bytes, size_t one, size_t count, void* to) {
    static_cast<std::string*>(to)->append(bytes, one * count);
    return one * count;
  };
  struct Body {
    std::string* text;
    std::atomic<bool>* begun;
  } body{&answer.body, question.begun};
  const auto append_body = +[](char* bytes, size_t one, size_t count, void* to) {
    const auto* const into = static_cast<Body*>(to);
    into->text->append(bytes, one * count);
    if (into->begun != nullptr) *into->begun = true;
    return one * count;
  };
  curl_slist* headers = nullptr;
  for (const std::string& header : question.headers) {
    headers = curl_slist_append(headers, header.c_str());
  }
  curl_easy_setopt(curl.get(), CURLOPT_URL, question.url.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_HTTPHEADER, headers);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, append_body);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &body);
  curl_easy_setopt(curl.get(), CURLOPT_HEADERFUNCTION, append);
  curl_easy_setopt(curl.get(), CURLOPT_HEADERDATA, &answer.head);
  curl_easy_setopt(curl.get(), CURLOPT_TIMEOUT_MS, long{kPatienceMs});
  curl_easy_setopt(curl.get(), CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_NOPROXY, "*");
  if (!question.user.empty()) {
    curl_easy_setopt(curl.get(), CURLOPT_USERPWD, question.user.c_str());
  }
  if (!question.source.empty()) {
    curl_easy_setopt(curl.get(), CURLOPT_INTERFACE, ("host!" + question.source).c_str());
  }
  curl_blob ca = BlobOf(question.ca);
  if (!question.ca.empty()) curl_easy_setopt(curl.get(), CURLOPT_CAINFO_BLOB, &ca);
  curl_blob certificate = BlobOf(question.own.certificate);
  curl_blob key = BlobOf(question.own.key);
  if (certificate.len > 0) {
    curl_easy_setopt(curl.get(), CURLOPT_SSLCERT_BLOB, &certificate);
    curl_easy_setopt(curl.get(), CURLOPT_SSLKEY_BLOB, &key);
  }
  const int64_t begin_ms = BoottimeMs();
  const CURLcode error = curl_easy_perform(curl.get());
  answer.took_ms = BoottimeMs() - begin_ms;
  if (error != CURLE_OK) answer.error = curl_easy_strerror(error);
  long status = 0;  // NOLINT(google-runtime-int): curl's.
  curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &status);
  answer.status = static_cast<int>(status);
  answer.head = web::SmallLetters(answer.head);
  curl_slist_free_all(headers);
  return answer;
}

}  // namespace nowcalls::testing

#endif  // NOWCALLS_UNIT_WEB_HTTP_ASKING_H_
