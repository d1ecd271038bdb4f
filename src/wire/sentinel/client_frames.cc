#include "wire/sentinel/client_frames.h"

#include "base/check.h"

namespace nowcalls::wire::sentinel {
namespace {

// A request, put together on the stack; large enough for every frame. Put checks the room: a caller
// that breaks REQUIRES ends the process, not the frame.
class RequestFrame {
 public:
  // Bytes are written before they are read.
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init)
  RequestFrame(uint32_t xid, RequestType type) {
    Put(xid);
    Put(static_cast<int8_t>(type));
  }

  template <typename T>
  void Put(T number) {
    NOWCALLS_CHECK(sizeof(number) <= Room());
    end_ = StoreBigEndian(end_, number);
  }
  void Put(std::string_view text) {
    NOWCALLS_CHECK(text.size() <= Room());
    end_ = std::copy(text.begin(), text.end(), end_);
  }
  // The length is known last and goes in front.
  void AppendTo(OutputBuffer* out) {
    const auto size = static_cast<size_t>(end_ - bytes_);
    StoreBigEndian(bytes_, static_cast<uint16_t>(size - kLengthBytes));
    out->write(bytes_, size);
  }

 private:
  size_t Room() const { return static_cast<size_t>(bytes_ + sizeof(bytes_) - end_); }

  char bytes_[kLengthBytes + kPayloadBytesMax];
  char* end_ = bytes_ + kLengthBytes;
};

}  // namespace

void EncodePingRequest(uint32_t xid, std::string_view name_space, OutputBuffer* out) {
  RequestFrame frame(xid, RequestType::kPing);
  frame.Put(static_cast<int32_t>(name_space.size()));
  frame.Put(name_space);
  frame.AppendTo(out);
}

void EncodeCallRequest(uint32_t xid, RequestType type, const CallParams& params,
                       OutputBuffer* out) {
  RequestFrame frame(xid, type);
  frame.Put(params.flow_id);
  frame.Put(params.count);
  frame.Put(static_cast<uint8_t>(params.prioritized));
  frame.AppendTo(out);
}

void EncodeShortCallRequest(uint32_t xid, RequestType type, int64_t flow_id, int32_t count,
                            OutputBuffer* out) {
  RequestFrame frame(xid, type);
  frame.Put(flow_id);
  frame.Put(count);
  frame.AppendTo(out);
}

void EncodeParamCallRequest(uint32_t xid, int64_t flow_id, int32_t count,
                            std::span<const Param> values, OutputBuffer* out) {
  RequestFrame frame(xid, RequestType::kParamFlow);
  frame.Put(flow_id);
  frame.Put(count);
  frame.Put(static_cast<int32_t>(values.size()));
  // Only a string has a length; the type tells the width of the others.
  for (const Param& value : values) {
    frame.Put(static_cast<uint8_t>(value.type));
    if (value.type == ParamType::kString) frame.Put(static_cast<int32_t>(value.bytes.size()));
    frame.Put(value.bytes);
  }
  frame.AppendTo(out);
}

void EncodeTokenRequest(uint32_t xid, RequestType type, uint64_t token_id, OutputBuffer* out) {
  RequestFrame frame(xid, type);
  frame.Put(token_id);
  frame.AppendTo(out);
}

}  // namespace nowcalls::wire::sentinel
