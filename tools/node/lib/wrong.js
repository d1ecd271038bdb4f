/** The peer does not speak the protocol. */
export class Wrong extends Error {}
