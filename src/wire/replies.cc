#include "wire/messages.h"
#include "wire/packing.h"
#include "wire/param_list.h"

namespace nowcalls::wire {
namespace {

// Sent as its word. A client takes a word that it does not know for kOther.
void PackRefusedBy(RefusedBy limit, Packer* packer) {
  if (limit == RefusedBy::kNone) {
    packer->pack_nil();
  } else {
    PackString(RefusedByName(limit), packer);
  }
}

// The last element, absent for most: the array's head must count it.
void PackValue(const std::optional<Param>& value, Packer* packer) {
  if (value.has_value()) PackParam(*value, packer);
}

void PackTerms(const Terms& terms, Packer* packer) {
  packer->pack_array(3);
  packer->pack_uint64(terms.strategy);
  packer->pack_uint64(terms.resource_timeout_ms);
  packer->pack_uint64(terms.client_offline_ms);
}

}  // namespace

void EncodeError(uint32_t msgid, const RequestError& error, OutputBuffer* out) {
  Packer packer(*out);
  // Not BeginResult: an error stands in the third element and the result is nil.
  packer.pack_array(4);
  packer.pack_int64(kResponseType);
  packer.pack_uint32(msgid);
  packer.pack_array(3);
  packer.pack_int64(static_cast<int64_t>(error.code));
  PackString(ErrorCodeName(error.code), &packer);
  PackString(error.message, &packer);
  packer.pack_nil();
}

void EncodeHello(uint32_t msgid, const HelloReply& reply, OutputBuffer* out) {
  Packer packer(*out);
  BeginResult(msgid, &packer);
  packer.pack_array(4);
  PackString(reply.server_version, &packer);
  packer.pack_uint64(reply.session);
  packer.pack_uint64(reply.sessions_online);
  packer.pack_uint64(reply.resumed_tokens);
}

void EncodeIdentify(uint32_t msgid, const IdentifyReply& reply, OutputBuffer* out) {
  Packer packer(*out);
  BeginResult(msgid, &packer);
  packer.pack_array(4);
  PackString(reply.name, &packer);
  PackString(reply.role, &packer);
  PackString(reply.proof, &packer);
  if (!reply.namespaces.has_value()) {
    packer.pack_nil();
    return;
  }
  packer.pack_array(static_cast<uint32_t>(reply.namespaces->size()));
  for (const std::string& pattern : *reply.namespaces) PackString(pattern, &packer);
}

void EncodePing(uint32_t msgid, uint64_t ledger_ms, OutputBuffer* out) {
  Packer packer(*out);
  BeginResult(msgid, &packer);
  packer.pack_array(1);
  packer.pack_uint64(ledger_ms);
}

// The only message that a server sends unasked: a notification has no msgid and no answer.
void EncodeLost(uint64_t token_id, int64_t flow_id, EndReason reason, OutputBuffer* out) {
  Packer packer(*out);
  packer.pack_array(3);
  packer.pack_int64(kNotificationType);
  PackString("lost", &packer);
  packer.pack_array(3);
  packer.pack_uint64(token_id);
  packer.pack_int64(flow_id);
  PackString(EndReasonName(reason), &packer);
}

// Flat, as the other replies of frequent calls: each of the dozen writes is then a store inline.
// Calls of memcpy cost 100 instructions an operation.
[[gnu::flatten]] void EncodeAcquire(uint32_t msgid, const AcquireReply& reply, OutputBuffer* out) {
  Packer packer(*out);
  BeginResult(msgid, &packer);
  // Seven elements, then the value of a refusal, then the terms of a grant: never both. The common
  // forms are those that common_reply.cc reads.
  packer.pack_array(reply.terms.has_value() ? 9 : reply.value.has_value() ? 8 : 7);
  packer.pack_int64(static_cast<int64_t>(reply.status));
  packer.pack_uint64(reply.token_id);
  packer.pack_uint64(reply.fence);
  packer.pack_uint64(reply.now_calls);
  packer.pack_uint64(reply.level);
  packer.pack_uint64(reply.hold_ms);
  PackRefusedBy(reply.refused_by, &packer);
  PackValue(reply.value, &packer);
  if (!reply.terms.has_value()) return;
  packer.pack_nil();  // For the value.
  PackTerms(*reply.terms, &packer);
}

void EncodeAcquireAll(uint32_t msgid, const AcquireAllReply& reply, OutputBuffer* out) {
  Packer packer(*out);
  BeginResult(msgid, &packer);
  packer.pack_array(reply.value.has_value() ? 7 : 6);
  packer.pack_int64(static_cast<int64_t>(reply.status));
  packer.pack_array(static_cast<uint32_t>(reply.tokens.size()));
  // Terms lengthen their token's array only for connections that asked for them.
  for (const AcquireAllReply::Token& token : reply.tokens) {
    packer.pack_array(token.terms.has_value() ? 4 : 3);
    packer.pack_uint64(token.token_id);
    packer.pack_uint64(token.fence);
    packer.pack_uint64(token.hold_ms);
    if (token.terms.has_value()) PackTerms(*token.terms, &packer);
  }
  PackRefusedBy(reply.refused_by, &packer);
  packer.pack_int64(reply.flow_id);
  packer.pack_uint64(reply.now_calls);
  packer.pack_uint64(reply.level);
  PackValue(reply.value, &packer);
}

[[gnu::flatten]] void EncodeRate(uint32_t msgid, const RateReply& reply, OutputBuffer* out) {
  Packer packer(*out);
  BeginResult(msgid, &packer);
  packer.pack_array(reply.value.has_value() ? 5 : 4);
  packer.pack_int64(static_cast<int64_t>(reply.status));
  packer.pack_int64(reply.remaining);
  packer.pack_uint64(reply.wait_ms);
  PackRefusedBy(reply.refused_by, &packer);
  PackValue(reply.value, &packer);
}

[[gnu::flatten]] void EncodeStatus(uint32_t msgid, TokenStatus status, OutputBuffer* out) {
  Packer packer(*out);
  BeginResult(msgid, &packer);
  packer.pack_array(1);
  packer.pack_int64(static_cast<int64_t>(status));
}

void EncodeKeep(uint32_t msgid, const KeepReply& reply, OutputBuffer* out) {
  Packer packer(*out);
  BeginResult(msgid, &packer);
  // Terms only for connections that asked for them in hello, as in grants.
  packer.pack_array(reply.terms.has_value() ? 3 : 2);
  packer.pack_int64(static_cast<int64_t>(reply.status));
  packer.pack_uint64(reply.hold_ms);
  if (reply.terms.has_value()) PackTerms(*reply.terms, &packer);
}

void EncodeRulesLoad(uint32_t msgid, uint64_t loaded, OutputBuffer* out) {
  Packer packer(*out);
  BeginResult(msgid, &packer);
  packer.pack_array(1);
  packer.pack_uint64(loaded);
}

}  // namespace nowcalls::wire
