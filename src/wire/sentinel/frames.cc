#include "wire/sentinel/frames.h"

#include "base/utf8.h"

namespace nowcalls::wire::sentinel {
namespace {

// A length beyond the data fails in ReadBytes; nothing is reserved for it.
bool ReadString(ByteReader* reader, std::string_view* bytes) {
  const auto size = reader->Read<int32_t>();
  if (size < 0) return false;
  *bytes = reader->ReadBytes(static_cast<size_t>(size));
  return reader->ok() && IsUtf8(*bytes);
}

// Java writes a boolean as 0 or 1 and reads any other byte as true. Each other byte would be a
// value with a limit of its own.
std::string_view OneOfTwo(std::string_view byte) {
  static constexpr std::string_view kFalse("\0", 1);
  static constexpr std::string_view kTrue("\1", 1);
  return byte == kFalse ? kFalse : kTrue;
}

bool ReadParam(ByteReader* reader, Param* param) {
  const auto type = reader->Read<uint8_t>();
  if (!reader->ok() || type >= kParamTypeCount) return false;
  param->type = static_cast<ParamType>(type);
  if (param->type == ParamType::kString) return ReadString(reader, &param->bytes);
  param->bytes = reader->ReadBytes(ParamWidth(param->type));
  if (!reader->ok()) return false;
  if (param->type == ParamType::kBoolean) param->bytes = OneOfTwo(param->bytes);
  return true;
}

}  // namespace

bool DecodePing(std::string_view data, std::string_view* name_space) {
  *name_space = {};
  if (data.empty()) return true;  // As released clients send a blank name.
  // A read behind the end leaves the reader not ok and yields an empty name.
  ByteReader reader(data);
  const auto size = reader.Read<int32_t>();
  if (size < 0) return false;
  *name_space = reader.ReadBytes(static_cast<size_t>(size));
  return reader.ok();
}

bool DecodeParamCall(std::string_view data, ParamRoom* room, ParamCallParams* params) {
  ByteReader reader(data);
  params->flow_id = reader.Read<int64_t>();
  params->count = reader.Read<int32_t>();
  const auto count = reader.Read<int32_t>();
  // The count is claimed, not proven: more than a full frame could hold is refused before the loop.
  if (!reader.ok() || count < 0 || static_cast<size_t>(count) > room->size()) return false;
  const auto values = std::span(*room).first(static_cast<size_t>(count));
  for (Param& value : values) {
    if (!ReadParam(&reader, &value)) return false;
  }
  params->values = values;
  return true;
}

void EncodePing(uint32_t xid, uint32_t connected_count, OutputBuffer* out) {
  constexpr size_t kDataBytes = 1;
  char bytes[kLengthBytes + kResponseHeadBytes + kDataBytes];
  *internal::StoreHead(bytes, kDataBytes, xid, static_cast<int8_t>(RequestType::kPing),
                       TokenStatus::kOk) =
      static_cast<char>(std::min(connected_count, kConnectedCountMax));
  out->write(bytes, sizeof(bytes));
}

// FLOW, PARAM_FLOW and ACQUIRE keep the length of their data in a refusal.
void EncodeRefusal(uint32_t xid, int8_t type, TokenStatus status, OutputBuffer* out) {
  switch (static_cast<RequestType>(type)) {
    case RequestType::kFlow:
    case RequestType::kParamFlow:
      return EncodeRate(xid, static_cast<RequestType>(type), status, 0, 0, out);
    case RequestType::kAcquire: return EncodeAcquire(xid, status, 0, out);
    case RequestType::kPing:
    case RequestType::kRelease:
    case RequestType::kKeep: break;
  }
  EncodeStatus(xid, type, status, out);
}

}  // namespace nowcalls::wire::sentinel
