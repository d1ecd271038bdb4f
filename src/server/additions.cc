#include "server/additions.h"

#include "base/check.h"
#include "server/main.h"

namespace nowcalls::server {

void Additions::ApplyTo(ServerConfig* config) const {
  if (of_program_.expire_strategy == nullptr) return;
  config->core.expire_strategy = of_program_.expire_strategy;
  config->expire_strategy_name = of_program_.expire_strategy_name;
}

void Additions::Post(std::function<void()> job) {
  const std::lock_guard lock(mutex_);
  jobs_.push_back(std::move(job));
  if (serving_) uv_async_send(&async_);
}

void Additions::Stop() {
  const std::lock_guard lock(mutex_);
  stopping_ = true;
  if (serving_) uv_async_send(&async_);
}

std::vector<std::string> Additions::addresses() const {
  const std::lock_guard lock(mutex_);
  return addresses_;
}

void Additions::Serve(uv_loop_t* loop, std::vector<std::string> addresses,
                      std::function<void()> stop) {
  stop_ = std::move(stop);
  async_.data = this;
  NOWCALLS_CHECK(uv_async_init(loop, &async_, [](uv_async_t* async) {
                   static_cast<Additions*>(async->data)->RunJobs();
                 }) == 0);
  const std::lock_guard lock(mutex_);
  serving_ = true;
  addresses_ = std::move(addresses);
  // Jobs and a stop of before.
  uv_async_send(&async_);
}

void Additions::Close() {
  {
    const std::lock_guard lock(mutex_);
    serving_ = false;
    addresses_.clear();
  }
  uv_close(reinterpret_cast<uv_handle_t*>(&async_), nullptr);
}

// Without the mutex: a job may post another one, which comes in the next turn.
void Additions::RunJobs() {
  std::vector<std::function<void()>> jobs;
  bool stops = false;
  {
    const std::lock_guard lock(mutex_);
    jobs.swap(jobs_);
    stops = std::exchange(stopping_, false);
  }
  for (const auto& job : jobs) job();
  if (stops) stop_();
}

}  // namespace nowcalls::server

namespace nowcalls {

struct Server::Impl {
  explicit Impl(ServerAdditions of_program) : additions(std::move(of_program)) {}

  server::Additions additions;
};

Server::Server(ServerAdditions additions) : impl_(std::make_unique<Impl>(std::move(additions))) {}
Server::~Server() = default;

int Server::Run(const std::vector<std::string>& arguments) {
  std::vector<const char*> argv = {"nowcalls-server"};
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());
  return server::RunWithin(static_cast<int>(argv.size()), argv.data(), &impl_->additions);
}

void Server::Post(std::function<void()> job) { impl_->additions.Post(std::move(job)); }
void Server::Stop() { impl_->additions.Stop(); }
std::vector<std::string> Server::addresses() const { return impl_->additions.addresses(); }

}  // namespace nowcalls
