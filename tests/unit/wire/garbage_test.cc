// Bytes that nobody meant to send. Every buffer is a heap block of its exact size, so that a
// sanitizer sees any look behind it.
#include <doctest/doctest.h>

#include <memory>
#include <msgpack.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/limits.h"
#include "base/prng.h"
#include "support/golden.h"
#include "wire/admin_messages.h"
#include "wire/client_messages.h"
#include "wire/json.h"
#include "wire/messages.h"
#include "wire/namespace_rows.h"
#include "wire/param_list.h"
#include "wire/rows.h"
#include "wire/splitter.h"

namespace nowcalls::wire {
namespace {

using Outcome = MessageSplitter::Outcome;

constexpr int kBuffers = 100'000;

std::vector<std::string> Corpus() {
  std::vector<std::string> corpus;
  for (const char* name : {"wire_requests.hex", "wire_replies.hex", "wire_refused.hex"}) {
    for (auto& [key, bytes] : testing::LoadGolden(testing::GoldenPath(name))) {
      corpus.push_back(std::move(bytes));
    }
  }
  return corpus;
}

std::string RandomBytes(Prng* prng) {
  std::string bytes(prng->Below(64), '\0');
  for (char& byte : bytes) byte = static_cast<char>(prng->Next());
  if (!bytes.empty() && prng->Below(4) != 0) bytes[0] = prng->Below(2) == 0 ? '\x93' : '\x94';
  return bytes;
}

std::string Damaged(std::string bytes, Prng* prng) {
  for (uint64_t times = 1 + prng->Below(4); times > 0 && !bytes.empty(); --times) {
    const size_t at = prng->Below(bytes.size());
    switch (prng->Below(4)) {
      case 0: bytes[at] = static_cast<char>(bytes[at] ^ 1 << prng->Below(8)); break;
      case 1: bytes[at] = static_cast<char>(prng->Next()); break;
      case 2: bytes.erase(at, 1 + prng->Below(4)); break;
      default: bytes.insert(at, 1 + prng->Below(3), static_cast<char>(prng->Next()));
    }
  }
  return bytes;
}

// What msgpack-c makes of the front of the buffer: the bytes of a whole value, or 0.
size_t WholeValueBytes(std::string_view bytes) {
  const msgpack::unpack_limit limit(kElementsMax, kElementsMax, kMessageBytesMax, kMessageBytesMax,
                                    kMessageBytesMax, kNestingMax);
  size_t offset = 0;
  try {
    msgpack::unpack(bytes.data(), bytes.size(), offset, nullptr, nullptr, limit);
    return offset;
  } catch (const msgpack::unpack_error&) {
    return 0;
  }
}

// How many of the parameter decoders take the bytes. Each that does not must say why.
int TryParams(std::string_view params) {
  HelloParams hello;
  IdentifyParams identify;
  AcquireParams acquire;
  AcquireAllParams acquire_all;
  TokenParams token;
  ReclaimParams reclaim;
  FlowParams flow;
  PageParams page;
  RulesListParams rules_list;
  TokensParams tokens;
  ValuesParams values_of_flow;
  WaitersParams waiters;
  RulesLoadParams rules_load;
  CancelParams cancel;
  RateParams rate;
  ValueRateParams value_rate;
  ParamList values;
  ReclaimClientParams reclaim_client;
  ReclaimFlowParams reclaim_flow;
  PurgeParams purge;
  DrainParams drain;
  ReclaimNamespaceParams reclaim_namespace;
  DrainNamespaceParams drain_namespace;
  BackupParams backup;
  int taken = 0;
  const auto count = [&taken](bool decoded, RequestError* error) {
    CHECK(decoded == error->message.empty());
    *error = RequestError{};
    taken += decoded ? 1 : 0;
  };
  RequestError error;
  count(DecodeHello(params, &hello, &error), &error);
  count(DecodeIdentify(params, &identify, &error), &error);
  count(DecodeNoParams(Method::kPing, params, &error), &error);
  count(DecodeAcquire(params, &acquire, &error), &error);
  count(DecodeAcquireAll(params, &acquire_all, &error), &error);
  count(DecodeToken(Method::kKeep, params, &token, &error), &error);
  count(DecodeReclaim(params, &reclaim, &error), &error);
  count(DecodeFlow(params, &flow, &error), &error);
  count(DecodePage(Method::kFlows, params, &page, &error), &error);
  count(DecodeRulesList(params, &rules_list, &error), &error);
  count(DecodeTokens(params, &tokens, &error), &error);
  count(DecodeParams(params, &values_of_flow, &error), &error);
  count(DecodeWaiters(params, &waiters, &error), &error);
  count(DecodeRulesLoad(params, &rules_load, &error), &error);
  count(DecodeCancel(params, &cancel, &error), &error);
  count(DecodeRequest(params, &rate, &error), &error);
  count(DecodeRequestParam(params, &value_rate, &values, &error), &error);
  count(DecodeReclaimClient(params, &reclaim_client, &error), &error);
  count(DecodeReclaimFlow(params, &reclaim_flow, &error), &error);
  count(DecodeReclaimNamespace(params, &reclaim_namespace, &error), &error);
  count(DecodeDrainNamespace(params, &drain_namespace, &error), &error);
  count(DecodePurge(params, &purge, &error), &error);
  count(DecodeDrain(params, &drain, &error), &error);
  count(DecodeBackup(params, &backup, &error), &error);
  return taken;
}

int TryAnswers(std::string_view result) {
  const std::vector<Status> statuses = {
      DecodeHelloReply(result).status(),    DecodeAcquireReply(result).status(),
      DecodeStatusReply(result).status(),   DecodeKeepReply(result).status(),
      DecodeUintReply(result).status(),     DecodeTokenPage(result).status(),
      DecodeFlowPage(result).status(),      DecodeSessionPage(result).status(),
      DecodeFlowRow(result).status(),       JsonFromMessagePack(result).status(),
      DecodeResponse(result).status(),      DecodeHistoryPage(result).status(),
      DecodeNamespacePage(result).status(), DecodeReclaimedReply(result).status(),
      DecodeDrainReply(result).status(),    DecodeBackupReply(result).status(),
      DecodeRateReply(result).status(),     DecodeParamRows(result).status(),
      DecodeWaiterRows(result).status(),    DecodeAcquireAllReply(result).status(),
  };
  int taken = 0;
  for (const Status& status : statuses) {
    CHECK(status.ok() == status.message().empty());
    taken += status.ok() ? 1 : 0;
  }
  return taken;
}

struct Seen {
  int messages = 0;
  int refused = 0;
  int envelopes = 0;
  int params = 0;
  int acquires = 0;
  int releases = 0;
  int answers = 0;
};

// Who looks ahead sees the flow or token that the decoder will find.
void TrySubjectAhead(std::string_view message, const Envelope& envelope, Seen* seen) {
  if (envelope.notification) return;
  RequestError error;
  AcquireParams params;
  if (envelope.method == Method::kAcquire && DecodeAcquire(envelope.params, &params, &error)) {
    ++seen->acquires;
    CHECK(SubjectAhead(message).flow == params.flow_id);
  }
  TokenParams token;
  if (envelope.method == Method::kRelease &&
      DecodeToken(Method::kRelease, envelope.params, &token, &error)) {
    ++seen->releases;
    CHECK(SubjectAhead(message).token == token.token_id);
  }
}

void TryMessage(std::string_view message, Seen* seen) {
  ++seen->messages;
  Envelope envelope;
  RequestError error;
  if (DecodeEnvelope(message, &envelope, &error)) {
    ++seen->envelopes;
    seen->params += TryParams(envelope.params);
    TrySubjectAhead(message, envelope, seen);
  } else {
    CHECK_FALSE(error.message.empty());
  }
  const Result<Response> response = DecodeResponse(message);
  if (response.ok()) seen->answers += TryAnswers(response->result);
}

void Try(const std::string& bytes, Seen* seen) {
  const std::unique_ptr<char[]> exact(new char[bytes.size()]);
  std::copy(bytes.begin(), bytes.end(), exact.get());
  const std::string_view buffer(exact.get(), bytes.size());
  MessageSplitter splitter;
  size_t size = 0;
  switch (splitter.Next(buffer, &size)) {
    case Outcome::kMessage:
      CHECK(size == WholeValueBytes(buffer));
      TryMessage(buffer.substr(0, size), seen);
      break;
    case Outcome::kIncomplete: CHECK(WholeValueBytes(buffer) == 0); break;
    case Outcome::kInvalid: CHECK_FALSE(splitter.error().empty()); ++seen->refused;
  }
  // The decoders stand on their own, too.
  TryParams(buffer);
  TryAnswers(buffer);
  static_cast<void>(SubjectAhead(buffer));
  Envelope envelope;
  RequestError error;
  const bool decoded = DecodeEnvelope(buffer, &envelope, &error);
  CHECK(decoded == error.message.empty());
}

TEST_CASE("random and damaged bytes are taken apart or refused, never believed") {
  const std::vector<std::string> corpus = Corpus();
  Prng prng(7'777'777);
  Seen seen;
  for (int i = 0; i < kBuffers; ++i) {
    CAPTURE(i);
    const bool random = prng.Below(4) == 0;
    Try(random ? RandomBytes(&prng) : Damaged(corpus[prng.Below(corpus.size())], &prng), &seen);
  }
  // The buffers reached every stage.
  CHECK(seen.messages > 10'000);
  CHECK(seen.refused > 10'000);
  CHECK(seen.envelopes > 5'000);
  CHECK(seen.params > 1'000);
  CHECK(seen.acquires > 50);
  CHECK(seen.releases > 50);
  CHECK(seen.answers > 1'000);
}

TEST_CASE("hostile requests fail at their envelope or at a named parameter") {
  Seen seen;
  const std::string hostile[] = {
      std::string("\x94\x00\x01\xa7"
                  "acquire\x92\x01\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00",
                  22),
      std::string("\x94\x00\x01\xa7"
                  "acquire\x92\x01\xff",
                  14),
      std::string("\x94\x00\x01\xa7"
                  "acquire\x90",
                  12),
      std::string("\x94\x00\x01\xa7"
                  "acquire\x9f",
                  12) +
          std::string(15, '\x01'),
      std::string("\x93\x02\xa7"
                  "acquire\x92\x01\x01",
                  13),
  };
  for (const std::string& bytes : hostile) {
    CAPTURE(bytes.size());
    Try(bytes, &seen);
  }
  CHECK(seen.messages == 5);
  CHECK(seen.envelopes == 5);
}

}  // namespace
}  // namespace nowcalls::wire
