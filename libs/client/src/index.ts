export { AmbitError, Unreachable } from './ambit-error.js';
export type { Item } from './answer.js';
export { AmbitClient, type ClientOptions } from './client.js';
export type { FollowOptions } from './follow.js';
export type { Arguments, RequestOptions } from './request.js';
export { hasEnded, type FollowedEvent } from './run-event.js';
export { digestOfBytes, PART_BYTES, type BlobKind } from './upload.js';
