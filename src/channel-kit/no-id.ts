/** For the schema of an id that may be absent: servers of other makers write "" or null where there is none. */
export function noId(value: unknown): unknown {
  return value === '' || value === null ? undefined : value;
}
