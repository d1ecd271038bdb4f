// The edge of the token port: bytes into a channel that is told by its first byte, with a client of
// TLS whose bytes arrive whole, in pieces or changed.
#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "fuzz/byte_source.h"
#include "fuzz/targets.h"
#include "net/channel.h"
#include "net/tls.h"
#include "net/tls_channel.h"
#include "support/certificates.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace nowcalls::fuzz {
namespace {

// Made once: keys cost more than all else here.
struct Contexts {
  std::shared_ptr<const net::TlsServer> server;
  std::shared_ptr<const net::TlsClient> client;

  Contexts() {
    const testing::TempDir dir;
    const testing::Authority ca("CA");
    testing::WriteStringToFile(dir.Sub("ca"), ca.certificate());
    const auto own =
        testing::WriteCertificate(dir.path(), "server", ca.Issue({.names = {{'D', "db"}}}));
    const auto of_client =
        testing::WriteCertificate(dir.path(), "client", ca.Issue({.common_name = "client"}));
    const auto serving = net::TlsServer::Load({.certificate = own.certificate,
                                               .key = own.key,
                                               .client_ca = dir.Sub("ca"),
                                               .clients = net::ClientCertificates::kOptional,
                                               .version = net::TlsVersion::k12});
    const auto asking = net::TlsClient::Load(
        {.ca = dir.Sub("ca"), .certificate = of_client.certificate, .key = of_client.key});
    REQUIRE(serving.ok());
    REQUIRE(asking.ok());
    server = *serving;
    client = *asking;
  }
};

class EdgeScript {
 public:
  explicit EdgeScript(std::string_view input, const Contexts& contexts) : input_(input) {
    const uint8_t how = input_.Byte();
    const bool tls = (how & 1) != 0;
    server_ = net::MakeChannelByFirstByte(tls ? contexts.server : nullptr, (how & 2) != 0);
    client_ = contexts.client->MakeChannel("db");
    TakeOfClient(client_->Receive(""));
  }

  void Run() {
    while (!input_.empty()) Step(input_.Byte());
    // A client whose bytes were all its own is understood.
    if (forged_ || server_failed_ || client_failed_ || closed_) return;
    CHECK(std::string_view(said_).starts_with(heard_));
  }

 private:
  void Step(uint8_t step) {
    switch (step & 7) {
      case 0: Forge(input_.Sized()); break;
      case 1: Pass(step >> 3); break;
      case 2: PassChanged(input_.Byte(), input_.Byte()); break;
      case 3: Answer(); break;
      case 4: Say(input_.Sized()); break;
      case 5: Serve(server_->Send(input_.Sized())); break;
      case 6:
        Serve(server_->Close());
        closed_ = true;
        break;
      default: server_->Trim();
    }
  }

  void Forge(std::string_view bytes) {
    forged_ = forged_ || !bytes.empty();
    ToServer(bytes);
  }

  // Of the client's bytes all, or a few.
  void Pass(size_t few) {
    const size_t size = few == 0 ? of_client_.size() : std::min(few, of_client_.size());
    const std::string bytes = of_client_.substr(0, size);
    of_client_.erase(0, size);
    ToServer(bytes);
  }

  void PassChanged(size_t at, uint8_t by) {
    if (of_client_.empty()) return;
    char& changed = of_client_[at % of_client_.size()];
    changed = static_cast<char>(changed ^ by);
    forged_ = forged_ || by != 0;
    Pass(0);
  }

  void ToServer(std::string_view bytes) {
    const bool shook = server_->shakes_hands();
    const auto received = server_->Receive(bytes);
    if (server_failed_) {
      CHECK(received.failed);
      CHECK(received.bytes.empty());
      CHECK(received.reply.empty());
    }
    CHECK((shook || !server_->shakes_hands()));  // Hands are shaken once.
    // Answers are no more than a handshake's for what costs the peer as much.
    CHECK(received.reply.size() <= net::kHandshakeBytesMax);
    heard_ += received.bytes;
    Serve(received.reply);
    if (received.failed) CHECK_FALSE(server_->error().empty());
    server_failed_ = received.failed;
    if (!server_failed_ && !server_->shakes_hands() && server_->encrypted() && !forged_) {
      CHECK(server_->peer() == "client");
    }
  }

  void Serve(std::string_view bytes) { of_server_ += bytes; }

  void Answer() { TakeOfClient(client_->Receive(std::exchange(of_server_, {}))); }

  void TakeOfClient(const net::Channel::Received& received) {
    of_client_ += received.reply;
    client_failed_ = received.failed;
  }

  void Say(std::string_view bytes) {
    said_ += bytes;
    of_client_ += client_->Send(bytes);
  }

  ByteSource input_;
  std::unique_ptr<net::Channel> server_;
  std::unique_ptr<net::Channel> client_;
  std::string of_client_;  // On its way.
  std::string of_server_;
  std::string said_;
  std::string heard_;
  bool forged_ = false;
  bool closed_ = false;
  bool server_failed_ = false;
  bool client_failed_ = false;
};

}  // namespace

void FuzzTls(std::string_view input) {
  static const Contexts contexts;
  EdgeScript(input, contexts).Run();
}

}  // namespace nowcalls::fuzz
