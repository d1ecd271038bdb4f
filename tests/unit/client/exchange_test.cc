#include "client/exchange.h"

#include <doctest/doctest.h>

#include <string>

namespace nowcalls::client {
namespace {

uint32_t Ping(Exchange* exchange) {
  const Result<uint32_t> msgid = exchange->Request([](uint32_t id, wire::OutputBuffer* out) {
    wire::EncodePlainRequest(id, wire::Method::kPing, out);
  });
  REQUIRE(msgid.ok());
  return *msgid;
}

std::string Pong(uint32_t msgid, uint64_t ledger_ms) {
  wire::OutputBuffer out;
  wire::EncodePing(msgid, ledger_ms, &out);
  return std::string(out.view());
}

TEST_CASE("answers are matched to their requests in any order, however they arrive") {
  Exchange exchange;
  const uint32_t first = Ping(&exchange);
  const uint32_t second = Ping(&exchange);
  CHECK(first != second);
  CHECK(exchange.awaited() == 2);
  const std::string answers = Pong(second, 22) + Pong(first, 11);
  std::vector<std::pair<uint32_t, uint64_t>> seen;
  for (const char byte : answers) {
    exchange.Receive({&byte, 1});
    Result<std::optional<wire::Response>> response = exchange.TakeResponse();
    REQUIRE(response.ok());
    if (!response->has_value()) continue;
    seen.emplace_back((*response)->msgid, *wire::DecodeUintReply((*response)->result));
  }
  CHECK(seen == std::vector<std::pair<uint32_t, uint64_t>>{{second, 22}, {first, 11}});
  CHECK(exchange.awaited() == 0);
}

TEST_CASE("several answers that arrive at once are taken one by one") {
  Exchange exchange;
  const uint32_t first = Ping(&exchange);
  const uint32_t second = Ping(&exchange);
  exchange.Receive(Pong(first, 1) + Pong(second, 2));
  CHECK((*exchange.TakeResponse())->msgid == first);
  CHECK((*exchange.TakeResponse())->msgid == second);
  CHECK_FALSE(exchange.TakeResponse()->has_value());
}

TEST_CASE("an answer to nothing, or to a request that was answered, is corrupt") {
  Exchange exchange;
  const uint32_t msgid = Ping(&exchange);
  exchange.Receive(Pong(msgid, 1) + Pong(msgid, 1));
  CHECK(exchange.TakeResponse().ok());
  const Result<std::optional<wire::Response>> again = exchange.TakeResponse();
  CHECK(again.status().code() == StatusCode::kCorruption);
  CHECK(again.status().message() == "answer to msgid 1, which awaits none");
}

TEST_CASE("a stream that is no MessagePack-RPC is corrupt") {
  Exchange exchange;
  exchange.Receive("HTTP/1.1 400 Bad Request");
  CHECK(exchange.TakeResponse().status().code() == StatusCode::kCorruption);
  CHECK(exchange.peer_is_foreign());
}

TEST_CASE("a peer that speaks something else is told by what it speaks") {
  constexpr std::pair<std::string_view, std::string_view> kPeers[] = {
      {"HTTP/1.1 400 Bad Request\r\n", "it speaks HTTP; "},
      {std::string_view("\x15\x03\x01\x00\x02\x02\x46", 7), "it speaks TLS; "},
      {"SSH-2.0-OpenSSH_9.2p1\r\n", "it speaks SSH; "},
      {"-ERR unknown command\r\n", "it speaks Redis's protocol; "},
      {"220 mail.example.com", "byte 0x32 begins no MessagePack-RPC message, "},
  };
  for (const auto& [bytes, told] : kPeers) {
    Exchange exchange;
    exchange.Receive(bytes);
    CHECK(exchange.TakeResponse().status().message().starts_with(told));
  }
}

TEST_CASE("a peer that has sent a message, or begun one, is not foreign, whatever follows") {
  Exchange answered;
  answered.Receive(Pong(Ping(&answered), 1) + "HTTP");
  CHECK(answered.TakeResponse().ok());
  CHECK(answered.TakeResponse().status().code() == StatusCode::kCorruption);
  CHECK_FALSE(answered.peer_is_foreign());
  Exchange begun;
  static_cast<void>(Ping(&begun));
  begun.Receive("\x94\x01\xc1");
  CHECK(begun.TakeResponse().status().code() == StatusCode::kCorruption);
  CHECK_FALSE(begun.peer_is_foreign());
}

TEST_CASE("a request that no message can hold is not appended") {
  Exchange exchange;
  static_cast<void>(Ping(&exchange));
  const size_t before = exchange.output()->size();
  const Result<uint32_t> msgid = exchange.Request([](uint32_t id, wire::OutputBuffer* out) {
    wire::EncodeRulesLoadRequest(id, "shop", std::string(kMessageBytesMax, ' '), out);
  });
  CHECK(msgid.status().code() == StatusCode::kInvalidArgument);
  CHECK(msgid.status().message() == "the request of 65561 bytes exceeds the 65536 of a message");
  CHECK(exchange.output()->size() == before);
  CHECK(exchange.awaited() == 1);
}

}  // namespace
}  // namespace nowcalls::client
