// The errors of the package. All derive from NowcallsError.

/** Base of all errors that a client raises on purpose. */
export class NowcallsError extends Error {
  get name() {
    return this.constructor.name;
  }
}

/**
 * The caller's own fault: wrong arguments, a closed client, or a server that is too old for it.
 *
 * `code` is the error code of PROTOCOL.md, or null if no server answered.
 */
export class BadRequest extends NowcallsError {
  constructor(message, code = null) {
    super(message);
    this.code = code;
  }
}

/** The server does not let this client in, or not to this flow. No fallback admits the call. */
export class PermissionDenied extends BadRequest {}

/** The same for another call: an error that is raised twice has the stack of one. */
export function again(error) {
  return new error.constructor(error.message, error.code);
}

/**
 * The server refused. Nothing is held and nothing is counted.
 *
 * status: 1 BLOCKED, -2 TOO_MANY_REQUEST, or 3 for NoRule.
 * refusedBy: the word of PROTOCOL.md for the limit, such as "level" or "queue_timeout", or null.
 * nowCalls, level: of the rule or of the parameter's value; 0 where the answer has none.
 * local: the fallback of this process refused, not the server.
 */
export class Refused extends NowcallsError {
  constructor(message, fields = {}) {
    super(message);
    this.flowId = fields.flowId ?? 0;
    this.status = fields.status ?? 1;
    this.refusedBy = fields.refusedBy ?? null;
    this.nowCalls = fields.nowCalls ?? 0;
    this.level = fields.level ?? 0;
    this.local = fields.local ?? false;
  }
}

/** No rule has this flow id, so nothing limits the call. The caller decides what that means. */
export class NoRule extends Refused {}

/** No server could be asked in time. The request was surely not carried out. */
export class Unavailable extends NowcallsError {}

/**
 * The request was sent, and its answer did not come in time. Perhaps it was carried out.
 *
 * The client cancels an acquire as soon as it can, so that no token stays behind.
 */
export class OutcomeUnknown extends NowcallsError {}
