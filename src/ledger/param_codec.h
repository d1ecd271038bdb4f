// The parameter of a token as bytes (FORMAT.md).
//
// Thread: any.
#ifndef NOWCALLS_LEDGER_PARAM_CODEC_H_
#define NOWCALLS_LEDGER_PARAM_CODEC_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "nowcalls/param.h"

namespace nowcalls::ledger {

inline constexpr size_t kParamHeadBytes = 3;
inline constexpr size_t kParamCodedBytesMax = kParamHeadBytes + kParamBytesMax;
// In place of a type: no parameter.
inline constexpr uint8_t kNoParamType = 0xff;

// Why a ledger cannot hold the parameter; nullptr: it can.
const char* ParamProblem(const Param& param);

inline size_t ParamCodedBytes(const Param& param) { return kParamHeadBytes + param.bytes.size(); }

// `out` has room for ParamCodedBytes; returns the end. REQUIRES: ParamProblem is nullptr.
char* StoreParam(const Param& param, char* out);
void AppendParam(const Param& param, std::string* out);

// The caller checks reader->ok() and ParamProblem.
Param ReadParam(ByteReader* reader);

}  // namespace nowcalls::ledger

#endif  // NOWCALLS_LEDGER_PARAM_CODEC_H_
