// Phase: what a node is doing in its life (README).
//
// Thread: any. A node whose log has no claim leads once it has recovered, and is never deposed.
#ifndef NOWCALLS_NODE_PHASE_H_
#define NOWCALLS_NODE_PHASE_H_

namespace nowcalls::node {

enum class Phase {
  kStandby,        // Another node may be the writer: follows the log.
  kRecovering,     // Is the writer: reads the rest of the log, then loads the tables.
  kLeading,        // Decides and commits.
  kAnswering,      // The end has begun: nothing is read any more, requests that were are answered.
  kDisconnecting,  // Connections close behind their last replies.
  kClosing,        // The store is being closed; the engine is not called any more.
  kClosed,
  kDeposed,  // Another is the writer. Nothing is answered; the node becomes a standby.
};

}  // namespace nowcalls::node

#endif  // NOWCALLS_NODE_PHASE_H_
