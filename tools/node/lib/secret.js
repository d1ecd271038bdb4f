// Secret: what a client shows its server, which knows the client by it. Nobody else sees it.
//
// No error of this module has the secret, and none has another error that does.

import fs from 'node:fs';
import net from 'node:net';

import { BadRequest } from './errors.js';
import { bytesOf, hasControls, systemWords } from './text.js';

const SECRET_BYTES_MAX = 256;
const FILE_BYTES_MAX = 4096;
const VARIABLE = 'NOWCALLS_SECRET_FILE';
export const PLAIN =
  'the secret needs TLS, or a server on this machine: over a plain connection anybody on the way ' +
  'could read it';

/** A text, or a function that tells it anew for each connection. */
export class Secret {
  #source;

  constructor(source) {
    this.#source = source;
  }

  /** Throws BadRequest if the function fails. */
  read() {
    if (typeof this.#source !== 'function') return this.#source;
    let value;
    try {
      value = this.#source();
    } catch (error) {
      const name = error instanceof Error ? error.name : typeof error;
      throw new BadRequest(`secret: its function threw ${name}`); // Its text may have the secret.
    }
    const wrong = wrongIn(value);
    if (wrong === null) return value;
    throw new BadRequest(`secret: its function returned what is no secret: it ${wrong}`);
  }
}

/** A text with dots for the secret; or an array whose texts are such; or what is neither. */
export function masked(told, secret) {
  const cover = (part) => (typeof part === 'string' ? part.replaceAll(secret, '...') : part);
  return Array.isArray(told) ? told.map(cover) : cover(told);
}

/** From the setting, or else the file of the environment. Throws BadRequest. */
export function makeSecret(secret) {
  if (secret === null) {
    const path = process.env[VARIABLE];
    return path ? new Secret(ofFile(path)) : null;
  }
  if (secret?.constructor?.name === 'AsyncFunction') {
    throw new BadRequest('secret must be a string or a function, not an async function');
  }
  const wrong = typeof secret === 'function' ? null : wrongIn(secret);
  if (wrong !== null) throw new BadRequest(`secret ${wrong}`);
  return new Secret(secret);
}

function wrongIn(value) {
  if (typeof value !== 'string') {
    return `must be a string, not ${value === null ? 'null' : typeof value}`;
  }
  if (bytesOf(value) < 1 || bytesOf(value) > SECRET_BYTES_MAX) {
    return `must have 1 to ${SECRET_BYTES_MAX} bytes`;
  }
  if (hasControls(value)) {
    return 'must not have control characters, such as the end of a line, or surrogates';
  }
  return null;
}

function ofFile(path) {
  let data;
  try {
    data = readOwn(path);
  } catch (error) {
    if (error instanceof BadRequest) throw error;
    throw new BadRequest(`${VARIABLE}: cannot read ${path}: ${systemWords(error)}`);
  }
  if (data.length > FILE_BYTES_MAX) {
    throw new BadRequest(`${VARIABLE}: ${path} has more than ${FILE_BYTES_MAX} bytes`);
  }
  const [first] = data.toString('latin1').split('\n', 1);
  const bytes = Buffer.from(first.endsWith('\r') ? first.slice(0, -1) : first, 'latin1');
  if (bytes.length === 0) {
    throw new BadRequest(`${VARIABLE}: ${path} has no secret in its first line`);
  }
  const line = bytes.toString();
  const wrong = Buffer.from(line).equals(bytes) ? wrongIn(line) : 'must be UTF-8';
  if (wrong !== null) throw new BadRequest(`${VARIABLE}: the first line of ${path} ${wrong}`);
  return line;
}

/** Kubernetes gives a mounted secret to root and to the group of fsGroup. */
export function isPrivate(info, groups = [process.getegid?.(), ...(process.getgroups?.() ?? [])]) {
  if (process.platform === 'win32') return true; // It has no such bits.
  const others = info.mode & 0o077;
  const ownGroup = info.uid === 0 && groups.includes(info.gid);
  return others === 0 || (others === 0o040 && ownGroup);
}

/** The file is judged by its descriptor, so that it cannot be replaced in between. */
function readOwn(path) {
  const file = fs.openSync(path, 'r');
  try {
    if (!isPrivate(fs.fstatSync(file))) {
      throw new BadRequest(
        `${VARIABLE}: others than its owner may read or write ${path}, which has a secret; ` +
          `run: chmod 600 ${path}`,
      );
    }
    const buffer = Buffer.alloc(FILE_BYTES_MAX + 1);
    return buffer.subarray(0, fs.readSync(file, buffer, 0, buffer.length, 0));
  } finally {
    fs.closeSync(file);
  }
}

/** Whether the peer of a plain connection is on this machine, as the server judges it. */
export function staysHere(socket) {
  const { remoteAddress: peer, localAddress: own } = socket;
  if (peer === undefined || own === undefined) return true; // It broke: nothing leaves.
  const plain = peer.replace(/^::ffff:/i, '');
  return peer === own || peer === '::1' || (net.isIPv4(plain) && plain.startsWith('127.'));
}
