#include "wire/admin_messages.h"

#include <algorithm>
#include <optional>
#include <string>

#include "base/text.h"
#include "wire/field_reader.h"
#include "wire/flow_field.h"
#include "wire/kind_field.h"
#include "wire/packing.h"
#include "wire/reader.h"

namespace nowcalls::wire {
namespace {

// A name of up to `bytes_max` bytes (base/text.h).
bool ReadName(std::string_view name, size_t bytes_max, FieldReader* fields,
              std::string_view* value) {
  if (!fields->Required(name, value)) return false;
  const Status checked = CheckName(*value, bytes_max);
  return checked.ok() || fields->Fail(name, checked.message());
}

// The reason of an act that needs none; checked like a required one, since logs show it.
bool ReadReason(FieldReader* fields, std::string_view* reason) {
  std::optional<std::string_view> given;
  if (!fields->Optional("reason", &given)) return false;
  if (!given) return true;
  *reason = *given;
  const Status checked = CheckName(*reason, kReasonBytesMax);
  return checked.ok() || fields->Fail("reason", checked.message());
}

// Bounds the tokens or rules of one request, and so its work; `more` or a cursor tells the client
// to ask again. A limit of 0 would make no progress.
bool ReadLimit(FieldReader* fields, uint32_t* limit) {
  uint64_t wanted = kReclaimTokensMax;
  if (!fields->Optional("limit", &wanted)) return false;
  if (wanted == 0 || wanted > kReclaimTokensMax) {
    return fields->Fail("limit", "must be 1.." + std::to_string(kReclaimTokensMax) + ", got " +
                                     std::to_string(wanted));
  }
  *limit = static_cast<uint32_t>(wanted);
  return true;
}

// A name of a file, which is no way out of the copy's directory.
bool IsNameInCopy(std::string_view name) {
  return !name.empty() && !name.starts_with('.') &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                  c == '.' || c == '-' || c == '_';
         });
}

// A drain has only these two answers.
bool ReadDrainStatus(FieldReader* fields, TokenStatus* status) {
  int64_t number = 0;
  if (!fields->Required("status", &number)) return false;
  for (const TokenStatus known : {TokenStatus::kOk, TokenStatus::kNoRuleExists}) {
    if (number != static_cast<int64_t>(known)) continue;
    *status = known;
    return true;
  }
  return fields->Fail("status", std::to_string(number) + " is not known");
}

// Where a piece begins. A flow id, so beyond 63 bits there is none.
bool ReadFirstFlow(FieldReader* fields, uint64_t* flow) {
  if (!fields->Optional("cursor", flow)) return false;
  return *flow <= static_cast<uint64_t>(INT64_MAX) ||
         fields->Fail("cursor", "must fit a signed 64-bit integer");
}

// How many parameters at the end hold the reason and the kind. Older servers refuse surplus ones,
// so neither is sent without need; a kind without a reason has nil before it.
template <typename AnyParams>
uint32_t ReasonAndKind(const AnyParams& params) {
  return params.kind ? 2 : params.reason.empty() ? 0 : 1;
}

template <typename AnyParams>
void PackReasonAndKind(const AnyParams& params, Packer* packer) {
  if (!params.reason.empty()) {
    PackString(params.reason, packer);
  } else if (params.kind) {
    packer->pack_nil();
  }
  if (params.kind) PackKind(*params.kind, packer);
}

}  // namespace

bool DecodeReclaimClient(std::string_view params, ReclaimClientParams* out, RequestError* error) {
  FieldReader fields(MethodName(Method::kReclaimClient), params, kStringBytesMax, error);
  *out = ReclaimClientParams{};
  return fields.OpenArray(5) &&
         ReadName("namespace", kNamespaceBytesMax, &fields, &out->name_space) &&
         ReadName("client_id", kClientIdBytesMax, &fields, &out->client_id) &&
         ReadName("reason", kReasonBytesMax, &fields, &out->reason) &&
         ReadLimit(&fields, &out->limit) && fields.Optional("instance", &out->instance) &&
         fields.Close();
}

bool DecodeReclaimFlow(std::string_view params, ReclaimFlowParams* out, RequestError* error) {
  FieldReader fields(MethodName(Method::kReclaimFlow), params, kStringBytesMax, error);
  *out = ReclaimFlowParams{};
  return fields.OpenArray(4) && ReadFlow(&fields, out) &&
         ReadName("reason", kReasonBytesMax, &fields, &out->reason) &&
         ReadLimit(&fields, &out->limit) && ReadKind("kind", &fields, &out->kind) && fields.Close();
}

bool DecodePurge(std::string_view params, PurgeParams* out, RequestError* error) {
  FieldReader fields(MethodName(Method::kPurge), params, kStringBytesMax, error);
  *out = PurgeParams{};
  return fields.OpenArray(4) && ReadFlow(&fields, out) && ReadLimit(&fields, &out->limit) &&
         ReadReason(&fields, &out->reason) && ReadKind("kind", &fields, &out->kind) &&
         fields.Close();
}

bool DecodeDrain(std::string_view params, DrainParams* out, RequestError* error) {
  FieldReader fields(MethodName(Method::kDrain), params, kStringBytesMax, error);
  *out = DrainParams{};
  return fields.OpenArray(4) && ReadFlow(&fields, out) && fields.Required("on", &out->on) &&
         ReadReason(&fields, &out->reason) && ReadKind("kind", &fields, &out->kind) &&
         fields.Close();
}

bool DecodeReclaimNamespace(std::string_view params, ReclaimNamespaceParams* out,
                            RequestError* error) {
  FieldReader fields(MethodName(Method::kReclaimNamespace), params, kStringBytesMax, error);
  *out = ReclaimNamespaceParams{};
  return fields.OpenArray(4) &&
         ReadName("namespace", kNamespaceBytesMax, &fields, &out->name_space) &&
         ReadName("reason", kReasonBytesMax, &fields, &out->reason) &&
         ReadLimit(&fields, &out->limit) && ReadFirstFlow(&fields, &out->first_flow) &&
         fields.Close();
}

bool DecodeDrainNamespace(std::string_view params, DrainNamespaceParams* out, RequestError* error) {
  FieldReader fields(MethodName(Method::kDrainNamespace), params, kStringBytesMax, error);
  *out = DrainNamespaceParams{};
  return fields.OpenArray(5) &&
         ReadName("namespace", kNamespaceBytesMax, &fields, &out->name_space) &&
         fields.Required("on", &out->on) && ReadReason(&fields, &out->reason) &&
         ReadLimit(&fields, &out->limit) && ReadFirstFlow(&fields, &out->first_flow) &&
         fields.Close();
}

bool DecodeBackup(std::string_view params, BackupParams* out, RequestError* error) {
  FieldReader fields(MethodName(Method::kBackup), params, kStringBytesMax, error);
  *out = BackupParams{};
  // A relative path would mean the server's working directory, which the client cannot know.
  if (!fields.OpenArray(1) || !ReadName("to", kStringBytesMax, &fields, &out->to)) return false;
  if (!out->to.starts_with('/')) {
    return fields.Fail("to",
                       "must be an absolute path on the server's machine, got " + Quoted(out->to));
  }
  return fields.Close();
}

bool DecodeCopyPiece(std::string_view params, CopyPieceParams* out, RequestError* error) {
  FieldReader fields(MethodName(Method::kCopyPiece), params, kStringBytesMax, error);
  *out = CopyPieceParams{};
  if (!fields.OpenArray(2) || !ReadName("file", kStringBytesMax, &fields, &out->file)) return false;
  const size_t slash = out->file.find('/');
  const bool inner = slash == std::string_view::npos || IsNameInCopy(out->file.substr(slash + 1));
  if (!inner || !IsNameInCopy(out->file.substr(0, slash))) {
    return fields.Fail("file", "must be the name of a file of a copy, got " + Quoted(out->file));
  }
  return fields.Required("offset", &out->offset) && fields.Close();
}

void EncodeReclaimClientRequest(uint32_t msgid, const ReclaimClientParams& params,
                                OutputBuffer* out) {
  Packer packer(*out);
  BeginRequest(msgid, Method::kReclaimClient, params.instance ? 5 : 4, &packer);
  PackString(params.name_space, &packer);
  PackString(params.client_id, &packer);
  PackString(params.reason, &packer);
  packer.pack_uint32(params.limit);
  if (params.instance) packer.pack_uint64(*params.instance);
}

void EncodeReclaimFlowRequest(uint32_t msgid, const ReclaimFlowParams& params, OutputBuffer* out) {
  Packer packer(*out);
  BeginRequest(msgid, Method::kReclaimFlow, params.kind ? 4 : 3, &packer);
  PackFlow(params.flow_id, params.flow_name, &packer);
  PackString(params.reason, &packer);
  packer.pack_uint32(params.limit);
  if (params.kind) PackKind(*params.kind, &packer);
}

void EncodePurgeRequest(uint32_t msgid, const PurgeParams& params, OutputBuffer* out) {
  Packer packer(*out);
  BeginRequest(msgid, Method::kPurge, 2 + ReasonAndKind(params), &packer);
  PackFlow(params.flow_id, params.flow_name, &packer);
  packer.pack_uint32(params.limit);
  PackReasonAndKind(params, &packer);
}

void EncodeDrainRequest(uint32_t msgid, const DrainParams& params, OutputBuffer* out) {
  Packer packer(*out);
  BeginRequest(msgid, Method::kDrain, 2 + ReasonAndKind(params), &packer);
  PackFlow(params.flow_id, params.flow_name, &packer);
  params.on ? packer.pack_true() : packer.pack_false();
  PackReasonAndKind(params, &packer);
}

void EncodeReclaimNamespaceRequest(uint32_t msgid, const ReclaimNamespaceParams& params,
                                   OutputBuffer* out) {
  Packer packer(*out);
  BeginRequest(msgid, Method::kReclaimNamespace, 4, &packer);
  PackString(params.name_space, &packer);
  PackString(params.reason, &packer);
  packer.pack_uint32(params.limit);
  PackCursor(params.first_flow, &packer);
}

void EncodeDrainNamespaceRequest(uint32_t msgid, const DrainNamespaceParams& params,
                                 OutputBuffer* out) {
  Packer packer(*out);
  BeginRequest(msgid, Method::kDrainNamespace, 5, &packer);
  PackString(params.name_space, &packer);
  params.on ? packer.pack_true() : packer.pack_false();
  if (params.reason.empty()) {
    packer.pack_nil();
  } else {
    PackString(params.reason, &packer);
  }
  packer.pack_uint32(params.limit);
  PackCursor(params.first_flow, &packer);
}

void EncodeBackupRequest(uint32_t msgid, const BackupParams& params, OutputBuffer* out) {
  Packer packer(*out);
  BeginRequest(msgid, Method::kBackup, 1, &packer);
  PackString(params.to, &packer);
}

void EncodeCopyPieceRequest(uint32_t msgid, const CopyPieceParams& params, OutputBuffer* out) {
  Packer packer(*out);
  BeginRequest(msgid, Method::kCopyPiece, 2, &packer);
  PackString(params.file, &packer);
  packer.pack_uint64(params.offset);
}

void EncodeReclaimed(uint32_t msgid, const ReclaimedReply& reply, OutputBuffer* out) {
  Packer packer(*out);
  BeginResult(msgid, &packer);
  packer.pack_array(2);
  packer.pack_uint64(reply.reclaimed);
  reply.more ? packer.pack_true() : packer.pack_false();
}

void EncodeDrain(uint32_t msgid, const DrainReply& reply, OutputBuffer* out) {
  Packer packer(*out);
  BeginResult(msgid, &packer);
  packer.pack_array(3);
  packer.pack_int64(static_cast<int64_t>(reply.status));
  packer.pack_uint64(reply.now_calls);
  packer.pack_uint64(reply.tokens);
}

void EncodeReclaimNamespace(uint32_t msgid, const ReclaimNamespaceReply& reply, OutputBuffer* out) {
  Packer packer(*out);
  BeginResult(msgid, &packer);
  packer.pack_array(2);
  packer.pack_uint64(reply.reclaimed);
  PackCursor(reply.next_flow, &packer);
}

void EncodeDrainNamespace(uint32_t msgid, const DrainNamespaceReply& reply, OutputBuffer* out) {
  Packer packer(*out);
  BeginResult(msgid, &packer);
  packer.pack_array(5);
  packer.pack_int64(static_cast<int64_t>(reply.status));
  packer.pack_uint64(reply.now_calls);
  packer.pack_uint64(reply.tokens);
  packer.pack_uint64(reply.rules);
  PackCursor(reply.next_flow, &packer);
}

void EncodeBackup(uint32_t msgid, const BackupReply& reply, OutputBuffer* out) {
  Packer packer(*out);
  BeginResult(msgid, &packer);
  packer.pack_array(8);
  // The order is the protocol's and that of DecodeBackupReply.
  for (const uint64_t value : {reply.batch_number, reply.tokens, reply.now_calls, reply.sessions,
                               reply.rules, reply.history, reply.files, reply.bytes}) {
    packer.pack_uint64(value);
  }
}

// Replies: elements of a later server are skipped by Close, missing ones are kCorruption. A cursor
// of nil leaves next_flow at 0: the last piece.
Result<ReclaimedReply> DecodeReclaimedReply(std::string_view result) {
  RequestError error;
  FieldReader fields("reclaim answer", result, kReplyBytesMax, &error);
  ReclaimedReply reply;
  const bool decoded = fields.OpenArray() && fields.Required("reclaimed", &reply.reclaimed) &&
                       fields.Required("more", &reply.more) && fields.Close();
  if (!decoded) return Status::Corruption(error.message);
  return reply;
}

Result<DrainReply> DecodeDrainReply(std::string_view result) {
  RequestError error;
  FieldReader fields("drain answer", result, kReplyBytesMax, &error);
  DrainReply reply;
  const bool decoded = fields.OpenArray() && ReadDrainStatus(&fields, &reply.status) &&
                       fields.Required("now_calls", &reply.now_calls) &&
                       fields.Required("tokens", &reply.tokens) && fields.Close();
  if (!decoded) return Status::Corruption(error.message);
  return reply;
}

Result<ReclaimNamespaceReply> DecodeReclaimNamespaceReply(std::string_view result) {
  RequestError error;
  FieldReader fields("reclaim answer", result, kReplyBytesMax, &error);
  ReclaimNamespaceReply reply;
  const bool decoded = fields.OpenArray() && fields.Required("reclaimed", &reply.reclaimed) &&
                       fields.Optional("next_cursor", &reply.next_flow) && fields.Close();
  if (!decoded) return Status::Corruption(error.message);
  return reply;
}

Result<DrainNamespaceReply> DecodeDrainNamespaceReply(std::string_view result) {
  RequestError error;
  FieldReader fields("drain answer", result, kReplyBytesMax, &error);
  DrainNamespaceReply reply;
  const bool decoded = fields.OpenArray() && ReadDrainStatus(&fields, &reply.status) &&
                       fields.Required("now_calls", &reply.now_calls) &&
                       fields.Required("tokens", &reply.tokens) &&
                       fields.Required("rules", &reply.rules) &&
                       fields.Optional("next_cursor", &reply.next_flow) && fields.Close();
  if (!decoded) return Status::Corruption(error.message);
  return reply;
}

Result<BackupReply> DecodeBackupReply(std::string_view result) {
  RequestError error;
  FieldReader fields("backup answer", result, kReplyBytesMax, &error);
  BackupReply reply;
  const bool decoded =
      fields.OpenArray() && fields.Required("batch_number", &reply.batch_number) &&
      fields.Required("tokens", &reply.tokens) && fields.Required("now_calls", &reply.now_calls) &&
      fields.Required("sessions", &reply.sessions) && fields.Required("rules", &reply.rules) &&
      fields.Required("history", &reply.history) && fields.Required("files", &reply.files) &&
      fields.Required("bytes", &reply.bytes) && fields.Close();
  if (!decoded) return Status::Corruption(error.message);
  return reply;
}

void EncodeCopyPiece(uint32_t msgid, std::string_view bytes, OutputBuffer* out) {
  Packer packer(*out);
  BeginResult(msgid, &packer);
  packer.pack_bin(static_cast<uint32_t>(bytes.size()));
  packer.pack_bin_body(bytes.data(), static_cast<uint32_t>(bytes.size()));
}

Result<std::string_view> DecodeCopyPieceReply(std::string_view result) {
  Reader reader(result);
  std::string_view bin;
  const bool is_bin = reader.Peek() == Kind::kBin;
  if (!is_bin || reader.Skip(&bin) != Reader::Outcome::kOk || !reader.AtEnd()) {
    return Status::Corruption("copy_piece answer: must be bin");
  }
  return bin.substr(1 + LengthBytes(static_cast<uint8_t>(bin.front())));
}

}  // namespace nowcalls::wire
