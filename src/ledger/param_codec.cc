#include "ledger/param_codec.h"

#include <limits>

#include "base/check.h"
#include "base/utf8.h"

namespace nowcalls::ledger {
namespace {

static_assert(kParamBytesMax <= std::numeric_limits<uint16_t>::max());
static_assert(kNoParamType >= kParamTypeCount);

}  // namespace

const char* ParamProblem(const Param& param) {
  if (static_cast<int>(param.type) >= kParamTypeCount)
    return "the type of its parameter is unknown";
  if (param.type == ParamType::kString) {
    if (param.bytes.size() > kParamBytesMax) return "its parameter is too long";
    if (!IsUtf8(param.bytes)) return "its parameter is not UTF-8";
    // A run of zero bytes in the log is taken for a sector that a power cut left unwritten.
    if (param.bytes.find('\0') != std::string_view::npos) return "its parameter holds a zero byte";
    return nullptr;
  }
  if (param.bytes.size() != ParamWidth(param.type)) {
    return "its parameter has not the size of its type";
  }
  // Equal parameters have equal bytes: a boolean is 0 or 1.
  if (param.type == ParamType::kBoolean && static_cast<uint8_t>(param.bytes[0]) > 1) {
    return "its parameter is neither true nor false";
  }
  return nullptr;
}

char* StoreParam(const Param& param, char* out) {
  NOWCALLS_CHECK(ParamProblem(param) == nullptr);
  out = StoreBigEndian(out, static_cast<uint8_t>(param.type));
  out = StoreBigEndian(out, static_cast<uint16_t>(param.bytes.size()));
  return out + param.bytes.copy(out, param.bytes.size());
}

void AppendParam(const Param& param, std::string* out) {
  const size_t before = out->size();
  out->resize(before + ParamCodedBytes(param));
  StoreParam(param, out->data() + before);
}

Param ReadParam(ByteReader* reader) {
  // A short read leaves zero or nothing; the caller sees it by ok().
  Param param;
  param.type = static_cast<ParamType>(reader->Read<uint8_t>());
  param.bytes = reader->ReadBytes(reader->Read<uint16_t>());
  return param;
}

}  // namespace nowcalls::ledger
