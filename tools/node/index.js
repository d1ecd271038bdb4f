// Client of nowcalls, a durable token server for cluster concurrency control. See index.d.ts.

export { Client } from './lib/client.js';
export { now } from './lib/clock.js';
export {
  BadRequest,
  NoRule,
  NowcallsError,
  OutcomeUnknown,
  PermissionDenied,
  Refused,
  Unavailable,
} from './lib/errors.js';
export { rate } from './lib/items.js';
export { Permit } from './lib/permit.js';
