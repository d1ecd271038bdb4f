// ReadmeClient: the README's Python example as a process, with a keyboard that the test has.
//
// Thread: that of the test. It takes one token of flow 1001 as worker-1 of the namespace shop, and
// releases it when Enter is pressed.
#ifndef NOWCALLS_INTEGRATION_README_CLIENT_H_
#define NOWCALLS_INTEGRATION_README_CLIENT_H_

#include <memory>
#include <string>

#include "support/process.h"

namespace nowcalls::testing {

class ReadmeClient {
 public:
  // Its files are in `dir`. Fails the test when the README has no example.
  ReadmeClient(const std::string& dir, const std::string& address);
  ~ReadmeClient();
  ReadmeClient(const ReadmeClient&) = delete;
  ReadmeClient& operator=(const ReadmeClient&) = delete;

  void PressEnter() const;
  Process& process() { return *process_; }
  std::string out() const { return ReadFileToString(dir_ + "/out"); }
  std::string err() const { return ReadFileToString(dir_ + "/err"); }

 private:
  const std::string dir_;
  int keyboard_ = -1;
  std::unique_ptr<Process> process_;
};

}  // namespace nowcalls::testing

#endif  // NOWCALLS_INTEGRATION_README_CLIENT_H_
