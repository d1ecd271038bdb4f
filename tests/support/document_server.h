// DocumentServer: a web server with one document, on the loopback, by libmicrohttpd.
//
// Thread: any; each connection has a thread of the server.
#ifndef NOWCALLS_SUPPORT_DOCUMENT_SERVER_H_
#define NOWCALLS_SUPPORT_DOCUMENT_SERVER_H_

#include <microhttpd.h>
#include <sys/types.h>

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "support/certificates.h"

namespace nowcalls::testing {

class DocumentServer {
 public:
  enum class Manner {
    kPlain,        // The document, without any tag.
    kTagged,       // With an ETag; 304 to whom it has.
    kConsul,       // With X-Consul-Index; a request with index waits for another.
    kSilent,       // No answer at all.
    kEndless,      // 200, and bytes without end.
    kEndlessHead,  // 200, and a head of megabytes.
  };

  struct Question {
    std::string target;                          // "/rules?index=3"
    std::map<std::string, std::string> headers;  // Names in small letters.
  };

  // With a certificate it is https.
  explicit DocumentServer(IssuedCertificate tls = {});
  ~DocumentServer();
  DocumentServer(const DocumentServer&) = delete;
  DocumentServer& operator=(const DocumentServer&) = delete;

  std::string url(const std::string& target = "/rules") const;

  void Set(const std::string& document);
  void Behave(Manner manner);
  // Of whole answers from now on; 0: as the manner says.
  void SetCode(int code);
  // Of all answers from now on.
  void SetHeader(const std::string& name, const std::string& value);
  // Connections are refused; then again at the same port.
  void Stop();
  void Start();

  std::vector<Question> questions() const;
  int answered(int code) const;

 private:
  struct Answer {
    int code = 200;
    std::string body;
    std::map<std::string, std::string> headers{};
    bool endless = false;
  };

  static ssize_t Bytes(void* self, uint64_t at, char* to, size_t size);
  static MHD_Result OnRequest(void* self, MHD_Connection* connection, const char* url,
                              const char* method, const char* version, const char* data,
                              size_t* size, void** request);
  Answer AnswerTo(const Question& question, const std::string& index);

  const IssuedCertificate tls_;
  uint16_t port_ = 0;
  MHD_Daemon* daemon_ = nullptr;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool ending_ = false;
  std::string document_;
  int version_ = 1;
  int code_ = 0;
  Manner manner_ = Manner::kTagged;
  std::map<std::string, std::string> headers_;
  std::vector<Question> questions_;
  std::map<int, int> answered_;
};

}  // namespace nowcalls::testing

#endif  // NOWCALLS_SUPPORT_DOCUMENT_SERVER_H_
