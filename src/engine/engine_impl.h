// Engine::Impl: the parts of the engine. Internal to src/engine.
//
// Thread: loop. Each part knows the parts it is given.
#ifndef NOWCALLS_ENGINE_ENGINE_IMPL_H_
#define NOWCALLS_ENGINE_ENGINE_IMPL_H_

#include "core/core.h"
#include "engine/batches.h"
#include "engine/buffer_pool.h"
#include "engine/closing.h"
#include "engine/connections.h"
#include "engine/disk_room.h"
#include "engine/driver.h"
#include "engine/engine.h"
#include "engine/figures.h"
#include "engine/identities.h"
#include "engine/inputs.h"
#include "engine/late_answers.h"
#include "engine/outputs.h"
#include "engine/protocols.h"
#include "engine/rpc/service.h"
#include "engine/rule_intake.h"
#include "engine/sentinel/service.h"

namespace nowcalls::engine {

struct Engine::Impl {
  Impl(EngineOptions engine_options, core::Core* the_core, Driver* the_driver, Instant now);

  // An end is a record: none into a full batch, none while the server ends.
  bool due_may_end() const { return !batches.full() && !shutting_down; }
  void CloseTooSlow();
  void LogNotices() const;

  EngineOptions options;
  core::Core* const core;
  Driver* const driver;
  const Instant started;
  DiskRoom disk;
  SweepCounters sweep;
  bool shutting_down = false;

  Batches batches;
  Connections connections;
  BufferPool buffers;
  Outputs outputs;
  LateAnswers late;
  Closing closing;
  Identities identities;
  RuleIntake intake;
  rpc::Service rpc;
  sentinel::Service sentinel;
  Protocols protocols;
  Inputs inputs;
};

}  // namespace nowcalls::engine

#endif  // NOWCALLS_ENGINE_ENGINE_IMPL_H_
