/** Preprocesses an optional id for its schema: other vendors' servers send "" or null if there is none. */
export function noId(value: unknown): unknown {
  return value === '' || value === null ? undefined : value;
}
