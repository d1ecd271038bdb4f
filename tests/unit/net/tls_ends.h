// TlsEnds: a server's and a client's channel, and the bytes between them.
//
// Thread: the test's.
#ifndef NOWCALLS_UNIT_NET_TLS_ENDS_H_
#define NOWCALLS_UNIT_NET_TLS_ENDS_H_

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "net/channel.h"
#include "net/tls.h"
#include "support/certificates.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace nowcalls::net {

struct TlsEnd {
  std::unique_ptr<Channel> channel{};
  std::string wire{};  // For the other end.
  std::string got{};   // Of the protocol.
  bool failed = false;

  void Take(std::string_view bytes) {
    if (failed) return;
    const Channel::Received received = channel->Receive(bytes);
    got += received.bytes;
    wire += received.reply;
    failed = received.failed;
    channel->Trim();
  }
  void Say(std::string_view bytes) {
    wire += channel->Send(bytes);
    channel->Trim();
  }
};

struct TlsEnds {
  TlsEnd server{};
  TlsEnd client{};

  // Until both are silent; `most`: bytes that one Receive gets.
  void Pump(size_t most = SIZE_MAX) {
    while (!server.wire.empty() || !client.wire.empty()) {
      Move(&client, &server, most);
      Move(&server, &client, most);
    }
  }
  void ShakeHands(size_t most = SIZE_MAX) {
    client.Take("");
    Pump(most);
  }

 private:
  static void Move(TlsEnd* from, TlsEnd* to, size_t most) {
    const std::string bytes = std::exchange(from->wire, {});
    for (size_t at = 0; at < bytes.size(); at += std::min(most, bytes.size() - at)) {
      to->Take(bytes.substr(at, most));
    }
  }
};

// Certificates of a CA, as files.
class TlsFiles {
 public:
  using Spec = testing::CertificateSpec;

  static Spec Server() { return {.common_name = "server", .names = {{'D', "db.example"}}}; }
  static Spec Client() { return {.common_name = "checkout", .names = {{'U', "spiffe://a/b"}}}; }

  TlsServerFiles ServerFiles(const testing::IssuedCertificate& issued) {
    const auto files = testing::WriteCertificate(dir_.path(), Name(), issued);
    return {.certificate = files.certificate, .key = files.key};
  }
  TlsClientFiles ClientFiles() { return {.ca = CaFile(ca)}; }
  TlsClientFiles ClientFiles(const testing::IssuedCertificate& issued) {
    const auto files = testing::WriteCertificate(dir_.path(), Name(), issued);
    return {.ca = CaFile(ca), .certificate = files.certificate, .key = files.key};
  }
  std::string CaFile(const testing::Authority& of) {
    std::string file = dir_.Sub(Name());
    testing::WriteStringToFile(file, of.certificate());
    return file;
  }
  std::string Sub(std::string_view name) const { return dir_.Sub(name); }

  const testing::Authority ca{"Test CA"};

 private:
  std::string Name() { return "file" + std::to_string(++files_); }

  testing::TempDir dir_;
  int files_ = 0;
};

inline TlsEnds MakeEnds(const TlsServerFiles& server, const TlsClientFiles& client,
                        const std::string& host = "db.example") {
  const auto serving = TlsServer::Load(server);
  REQUIRE(serving.status().ToString() == "ok");
  const auto asking = TlsClient::Load(client);
  REQUIRE(asking.status().ToString() == "ok");
  TlsEnds ends;
  ends.server.channel = (*serving)->MakeChannel();
  ends.client.channel = (*asking)->MakeChannel(host);
  return ends;
}

}  // namespace nowcalls::net

#endif  // NOWCALLS_UNIT_NET_TLS_ENDS_H_
