// TlsChannel: one connection of TLS, on either side.
//
// Thread: one at a time. A handshake takes kHandshakeBytesMax at most.
#ifndef NOWCALLS_NET_TLS_CHANNEL_H_
#define NOWCALLS_NET_TLS_CHANNEL_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "net/channel.h"
#include "net/tls_handles.h"

namespace nowcalls::net {

inline constexpr size_t kHandshakeBytesMax = 128 * 1024;

class TlsChannel final : public Channel {
 public:
  struct Side {
    bool server = false;
    bool name_required = false;  // A certificate without a name that can be compared is refused.
    std::string host{};          // The client's side: what the server's certificate is to be for.
  };

  // `ssl` is new, and knows its side.
  TlsChannel(SslConnection ssl, Side side);
  TlsChannel(const TlsChannel&) = delete;
  TlsChannel& operator=(const TlsChannel&) = delete;

  Received Receive(std::string_view from_socket) override;
  std::string_view Send(std::string_view from_protocol) override;
  std::string_view Close() override;
  void Trim() override;
  std::string error() const override { return error_; }
  bool denied() const override { return denied_; }
  bool shakes_hands() const override { return shakes_hands_; }
  std::string_view peer() const override { return peer_; }
  bool encrypted() const override { return true; }

  // Of a context, whose connections are channels.
  static int OnVerify(int trusted, X509_STORE_CTX* checked);

 private:
  // Of the BIO.
  static const BIO_METHOD* Method();
  static int TakeBytes(BIO* bio, char* to, int size);
  static int GiveBytes(BIO* bio, const char* from, int size);
  static long Control(BIO* bio, int command, long number, void* pointer);  // NOLINT: OpenSSL's.
  static void OnMessage(int sent, int version, int type, const void* bytes, size_t size, SSL* ssl,
                        void* channel);

  void ShakeHands(size_t received);
  void ReadAll();
  void Write(std::string_view bytes);
  void Fail();
  void Fail(std::string why);
  std::string WhyRefused(int reason) const;

  const Side side_;
  bool shakes_hands_ = true;
  bool failed_ = false;
  bool denied_ = false;
  std::string untrusted_;  // What is wrong with the peer's certificate.
  std::string error_;
  std::string peer_;
  std::string_view in_;  // What OpenSSL has not taken yet of the call's bytes.
  std::string* out_ = nullptr;
  std::string held_;  // Of the protocol, until the handshake is done.
  std::string bytes_;
  std::string reply_;
  std::string sent_;
  size_t handshake_bytes_ = 0;
  int messages_ = 0;  // Of the call, after the handshake: requests for other keys and the like.
  SslConnection ssl_;
};

}  // namespace nowcalls::net

#endif  // NOWCALLS_NET_TLS_CHANNEL_H_
