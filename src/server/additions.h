// Additions: what a program adds to the server that it runs, and its way to the loop.
//
// Thread: as each member says.
#ifndef NOWCALLS_SERVER_ADDITIONS_H_
#define NOWCALLS_SERVER_ADDITIONS_H_

#include <uv.h>

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "nowcalls/server.h"
#include "server/config/config.h"

namespace nowcalls::server {

class Additions {
 public:
  // `of_program`: none in nowcalls-server itself.
  explicit Additions(ServerAdditions of_program) : of_program_(std::move(of_program)) {}
  Additions(const Additions&) = delete;
  Additions& operator=(const Additions&) = delete;

  void ApplyTo(ServerConfig* config) const;
  const std::vector<std::shared_ptr<RuleSource>>& rule_sources() const {
    return of_program_.rule_sources;
  }

  // Thread: any.
  void Post(std::function<void()> job);
  void Stop();
  std::vector<std::string> addresses() const;

  // Thread: loop. `stop` runs at most once.
  void Serve(uv_loop_t* loop, std::vector<std::string> addresses, std::function<void()> stop);
  void Close();

 private:
  void RunJobs();

  const ServerAdditions of_program_;
  std::function<void()> stop_;  // The loop's.
  uv_async_t async_{};

  mutable std::mutex mutex_;
  bool serving_ = false;  // async_ is open.
  bool stopping_ = false;
  std::vector<std::function<void()>> jobs_;
  std::vector<std::string> addresses_;
};

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_ADDITIONS_H_
