// ScanThread: walks the expired range, beside commits.
//
// Thread: loop; Tables::Scan runs on the scan thread, for some ms.
#ifndef NOWCALLS_SERVER_THREADS_SCAN_THREAD_H_
#define NOWCALLS_SERVER_THREADS_SCAN_THREAD_H_

#include <sched.h>

#include <functional>

#include "base/background_thread.h"
#include "ledger/scan.h"
#include "server/threads/cpu_apart.h"
#include "server/threads/worker_thread.h"
#include "store/tables.h"

namespace nowcalls::server {

class ScanThread {
 public:
  // `done`: on the loop thread; the result ends with the call.
  ScanThread(uv_loop_t* loop, store::Tables* tables,
             const std::function<void(const ledger::ScanResult&)>& done)
      : tables_(tables),
        worker_(
            loop, "nc-scan", [this](bool) { return Work(); }, [this, done] { done(result_); }),
        apart_(worker_.thread()) {}

  // REQUIRES: !busy().
  void Scan(const ledger::ScanRequest& request) {
    request_ = request;
    apart_.CallerIsOn(sched_getcpu());
    worker_.Submit();
  }

  bool busy() const { return worker_.busy(); }
  void Stop() { worker_.Stop(); }

 private:
  int64_t Work() {
    StepBack();  // The first time; then it has.
    result_ = {};
    tables_->Scan(request_, &result_);
    return WorkerThread::kUntilSubmit;
  }

  store::Tables* const tables_;
  ledger::ScanRequest request_;
  ledger::ScanResult result_;
  WorkerThread worker_;  // After all that its thread uses.
  CpuApart apart_;
};

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_THREADS_SCAN_THREAD_H_
