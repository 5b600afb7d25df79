import { ParleyError } from '#contracts/errors.ts';

/** Says that Kysely has asked to share a connection whose one user begins and ends its transactions himself. */
export function notShared(): ParleyError {
  return new ParleyError(
    'internal',
    'This connection has one user; it begins no transaction through Kysely.',
  );
}
