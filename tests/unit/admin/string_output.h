// StringOutput: an Output whose bytes a test can read.
//
// Thread: any.
#ifndef NOWCALLS_UNIT_ADMIN_STRING_OUTPUT_H_
#define NOWCALLS_UNIT_ADMIN_STRING_OUTPUT_H_

#include <string>
#include <string_view>

#include "admin/output.h"

namespace nowcalls::admin {

class StringOutput {
 public:
  StringOutput()
      : out_([this](std::string_view bytes) {
          text_ += bytes;
          return error_;
        }) {}
  StringOutput(const StringOutput&) = delete;
  StringOutput& operator=(const StringOutput&) = delete;

  Output* get() { return &out_; }
  // Everything written so far.
  const std::string& text() {
    out_.Flush();
    return text_;
  }
  // From now on every write fails with this errno.
  void FailWith(int error) { error_ = error; }

 private:
  std::string text_;
  int error_ = 0;
  Output out_;
};

}  // namespace nowcalls::admin

#endif  // NOWCALLS_UNIT_ADMIN_STRING_OUTPUT_H_
