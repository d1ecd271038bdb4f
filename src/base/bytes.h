// Big-endian integers to and from bytes.
//
// Thread: any.
#ifndef NOWCALLS_BASE_BYTES_H_
#define NOWCALLS_BASE_BYTES_H_

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

namespace nowcalls {

template <typename T>
constexpr T ToBigEndian(T v) {
  static_assert(std::is_unsigned_v<T>);
  static_assert(std::endian::native == std::endian::little);
  if constexpr (sizeof(T) == 1) return v;
  if constexpr (sizeof(T) == 2) return __builtin_bswap16(v);
  if constexpr (sizeof(T) == 4) return __builtin_bswap32(v);
  if constexpr (sizeof(T) == 8) return __builtin_bswap64(v);
}

// `out` has room for sizeof(T) bytes. Returns the byte behind them.
template <typename T>
char* StoreBigEndian(char* out, T v) {
  const auto be = ToBigEndian(static_cast<std::make_unsigned_t<T>>(v));
  std::memcpy(out, &be, sizeof(be));
  return out + sizeof(be);
}

template <typename T>
T LoadBigEndian(const char* in) {
  std::make_unsigned_t<T> be;
  std::memcpy(&be, in, sizeof(be));
  return static_cast<T>(ToBigEndian(be));
}

template <typename T>
void AppendBigEndian(std::string* out, T v) {
  char bytes[sizeof(T)];
  StoreBigEndian(bytes, v);
  out->append(bytes, sizeof(T));
}

// Reads off the front of a view, never past its end. After the first read that does not fit, ok()
// is false and every read yields zero or empty.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}

  template <typename T>
  T Read() {
    if (rest_.size() < sizeof(T)) {
      ok_ = false;
      rest_ = {};
      return T{};
    }
    const T v = LoadBigEndian<T>(rest_.data());
    rest_.remove_prefix(sizeof(T));
    return v;
  }

  std::string_view ReadBytes(size_t size) {
    if (rest_.size() < size) {
      ok_ = false;
      rest_ = {};
      return {};
    }
    const std::string_view bytes = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return bytes;
  }

  std::string_view rest() const { return rest_; }
  bool ok() const { return ok_; }
  // Every read fitted and nothing is left.
  bool Finished() const { return ok_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

}  // namespace nowcalls

#endif  // NOWCALLS_BASE_BYTES_H_
