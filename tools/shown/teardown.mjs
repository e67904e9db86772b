// Jest's global tear-down: says that all tests were run, whatever their result.
export { end as default } from './setup.mjs';
